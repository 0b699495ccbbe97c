"""Room for the traces of a study: runs of an earlier study go, and whatever else is there stays."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tools.reorder_page import figure_2

from priocast.core.errors import InvalidOption
from priocast.study.earlier_runs import prepare
from priocast.trace.columns import MESSAGES, SERVICES
from priocast.trace.run_directory import MANIFEST, write_manifest


def run_of_study(directory: Path, **labels: str) -> Path:
    """A run directory like those of the demo, with segments, a journal, and one that was not finished."""
    group = figure_2("reorder")
    manifest = msgspec.structs.replace(group.manifest("plain"), labels=labels)
    write_manifest(directory, manifest)
    group.write(directory, "plain")
    (directory / MESSAGES / "a-1.journal").write_bytes(b"rows")
    (directory / MESSAGES / ".a-1-000001.part").write_bytes(b"rows")
    return directory


def everything(directory: Path) -> dict[Path, bytes | None]:
    """All that is there, with its content."""
    return {path: path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


def test_runs_of_an_earlier_study_are_replaced(tmp_path: Path) -> None:
    traces = tmp_path / "deep" / "traces"
    prepare(traces)
    run_of_study(traces / "plain", title="plain")
    run_of_study(traces / "prioritised", title="prioritised")
    prepare(traces)
    assert list(traces.iterdir()) == []


def test_runs_that_are_kept_stay(tmp_path: Path) -> None:
    prepare(tmp_path)
    for name in ("plain", "prioritised"):
        run_of_study(tmp_path / name, title=name)
    prepare(tmp_path, keep={"plain"})
    assert [each.name for each in tmp_path.iterdir()] == ["plain"]


def test_a_run_with_qualities_of_service_is_replaced(tmp_path: Path) -> None:
    prepare(tmp_path)
    run = run_of_study(tmp_path / "plain", title="plain")
    (run / SERVICES).mkdir()
    (run / SERVICES / "a-1-000000.parquet").write_bytes(b"rows")
    prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []


def letter_beside(traces: Path) -> Path:
    path = traces / "letter.txt"
    path.write_text("dear diary")
    return path


def letter_in_a_run(traces: Path) -> Path:
    path = traces / "plain" / "letter.txt"
    path.write_text("dear diary")
    return path


def table_among_the_rows(traces: Path) -> Path:
    path = traces / "plain" / MESSAGES / "mine.parquet"
    path.write_text("years of work")
    return path


def directory_among_the_rows(traces: Path) -> Path:
    path = traces / "plain" / MESSAGES / "a-1-000007.parquet"
    path.mkdir()
    return path


def link_to_elsewhere(traces: Path) -> Path:
    elsewhere = run_of_study(traces.parent / "elsewhere", title="elsewhere")
    path = traces / "linked"
    path.symlink_to(elsewhere, target_is_directory=True)
    return path


def manifest_of_another_program(traces: Path) -> Path:
    project = traces / "website"
    project.mkdir()
    (project / MANIFEST).write_text('{"name": "a website", "icons": []}')
    return project / MANIFEST


def recorded_by_a_node(traces: Path) -> Path:
    return run_of_study(traces / "recorded")


@pytest.mark.parametrize(
    "put",
    [
        letter_beside,
        letter_in_a_run,
        table_among_the_rows,
        directory_among_the_rows,
        link_to_elsewhere,
        manifest_of_another_program,
        recorded_by_a_node,
    ],
)
def test_whatever_is_no_run_of_a_study_is_named_and_nothing_is_lost(
    put: Callable[[Path], Path], tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    run_of_study(traces / "plain", title="plain")
    foreign = put(traces)
    before = everything(tmp_path)
    with pytest.raises(InvalidOption, match="it is left alone; move it away") as rejected:
        prepare(traces)
    assert str(rejected.value).startswith(f"{foreign} is ")
    assert everything(tmp_path) == before
