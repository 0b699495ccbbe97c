"""Builds the distributions of the committed sources, and makes them depend on nothing else.

They are built from an export of the commit, with the commit's time as `SOURCE_DATE_EPOCH`. Setuptools takes
the owner and the times of a source distribution's files from the disk, so that archive is written again
without them.
"""

import gzip
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def build_reproducibly(out: Path) -> list[Path]:
    """Build twice; the distributions are in `out`. Exits if the two builds differ."""
    epoch = _git("log", "-1", "--format=%ct").strip()
    with TemporaryDirectory() as again:
        built, repeated = _build(out, epoch), _build(Path(again), epoch)
        for first, second in zip(built, repeated, strict=True):
            if digest_of(first) != digest_of(second):
                sys.exit(f"error: {first.name} is not reproducible: two builds differ")
    return built


def check_complete(source_distribution: Path) -> int:
    """The number of files under version control; exits if the source distribution lacks one of them."""
    with tarfile.open(source_distribution) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    committed = set(_git("ls-tree", "-r", "--name-only", "HEAD").split("\n")) - {""}
    if missing := sorted(committed - packed):
        sys.exit(f"error: {source_distribution.name} lacks {', '.join(missing[:5])} ({len(missing)} files)")
    return len(committed)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def normalised(archive: bytes, epoch: int) -> bytes:
    """A source distribution with the same files in order, without owners, and with one time for all."""
    packed = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(archive)) as given,
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as written,
    ):
        for member in sorted(given.getmembers(), key=lambda each: each.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            written.addfile(member, given.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


@contextmanager
def exported_sources() -> Iterator[str]:
    """A directory with the sources of the last commit, as long as it is needed."""
    with TemporaryDirectory() as sources:
        exported = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=BytesIO(exported)) as archive:
            archive.extractall(sources, filter="data")
        yield sources


def _build(out: Path, epoch: str) -> list[Path]:
    with exported_sources() as sources:
        subprocess.run(
            [sys.executable, "-m", "build", "--outdir", out, sources],
            env=os.environ | {"SOURCE_DATE_EPOCH": epoch, "PIP_CONSTRAINT": str(CONSTRAINTS)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    built = sorted(path for path in out.iterdir() if path.suffix in {".whl", ".gz"})
    source_distribution = next(path for path in built if path.suffix == ".gz")
    source_distribution.write_bytes(normalised(source_distribution.read_bytes(), int(epoch)))
    return built


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
