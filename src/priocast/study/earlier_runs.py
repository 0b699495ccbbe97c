"""Empties the directory of a study: removes the runs of an earlier study, and nothing else."""

import re
from collections.abc import Collection
from pathlib import Path

from priocast.core.errors import InvalidOption, TraceFault
from priocast.trace.columns import GROUP_EVENTS, MESSAGES, SERVICES
from priocast.trace.run_directory import JOURNALS, MANIFEST, read_manifest

#: Segments, whole and begun, and journals, as members name them: a-1-000000.parquet.
_ROWS = re.compile(r".+-\d+-\d{6}\.parquet|\..+-\d+-\d{6}\.part|.+-\d+\.journal")
#: Only runs of a study have this label in their manifest.
_LABEL = "title"
_FOLDERS = (MESSAGES, GROUP_EVENTS, SERVICES, JOURNALS)


def prepare(directory: Path, keep: Collection[str] = ()) -> None:
    """Make an empty directory for traces; removes runs of an earlier study if nothing else is there.

    Everything is checked before anything is removed. The runs with the names to `keep` stay.
    """
    directory.mkdir(parents=True, exist_ok=True)
    runs = sorted(each for each in directory.iterdir() if each.name not in keep)
    files = [file for run in runs for file in _files_of(run)]
    for file in files:
        file.unlink()
    for run in runs:
        for folder in _FOLDERS:
            if (run / folder).exists():
                (run / folder).rmdir()
        run.rmdir()


def _files_of(run: Path) -> list[Path]:
    """The files of a run of a study; rejects other directories, and runs with other files."""
    if run.is_symlink() or not (run / MANIFEST).is_file():
        raise _rejection(run, "is no run")
    try:
        manifest = read_manifest(run)
    except TraceFault as error:
        raise _rejection(run / MANIFEST, f"is not of a run ({error})") from error
    if _LABEL not in manifest.labels:
        raise _rejection(run, "is a run, but not of a study")
    folders = [run / folder for folder in _FOLDERS]
    rows = [
        path
        for folder in folders
        if folder.is_dir() and not folder.is_symlink()
        for path in sorted(folder.iterdir())
    ]
    for path in (*sorted(run.iterdir()), *rows):
        known = path in (run / MANIFEST, *folders) or (path.parent in folders and _ROWS.fullmatch(path.name))
        if not known or path.is_symlink() or path.is_dir() != (path in folders):
            raise _rejection(path, "is not of a run")
    return [run / MANIFEST, *rows]


def _rejection(path: Path, what: str) -> InvalidOption:
    return InvalidOption(f"{path} {what}: it is left alone; move it away, or name another directory")
