"""The release: source distributions do not depend on who builds them and when; examples and interpreters."""

import gzip
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from tools.release.compiled_wheel import check_module
from tools.release.distributions import check_complete, normalised
from tools.release.installation import VERSIONS, examples, find_interpreters


def _archive(owner: str, time: int, names: list[str]) -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(f"priocast-1/{name}")
            member.uname, member.uid, member.mtime, member.size = owner, time % 1000, time, len(name)
            member.mode = 0o700 if name.endswith(".sh") else 0o600
            archive.addfile(member, BytesIO(name.encode()))
    return packed.getvalue()


def test_a_source_distribution_does_not_depend_on_the_disk() -> None:
    one = normalised(_archive("me", 1_700_000_000, ["a.py", "run.sh"]), 1_600_000_000)
    other = normalised(_archive("you", 1_800_000_001, ["run.sh", "a.py"]), 1_600_000_000)
    assert one == other
    with tarfile.open(fileobj=BytesIO(gzip.decompress(one))) as archive:
        assert {(each.name, each.mode, each.mtime) for each in archive} == {
            ("priocast-1/a.py", 0o644, 1_600_000_000),
            ("priocast-1/run.sh", 0o755, 1_600_000_000),
        }
    assert one != normalised(_archive("me", 1_700_000_000, ["a.py"]), 1_600_000_000)


def test_a_source_distribution_that_lacks_files_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "priocast-1.tar.gz"
    path.write_bytes(_archive("me", 1, ["README.md"]))
    with pytest.raises(SystemExit, match=r"priocast-1.tar.gz lacks .*files\)"):
        check_complete(path)


def test_this_interpreter_is_of_a_version_that_is_tried() -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert here in VERSIONS
    assert set(find_interpreters()) <= set(VERSIONS)


def test_examples_with_databases_are_tried_with_the_extra() -> None:
    with_database, without = examples(of_sql=True), examples(of_sql=False)
    assert {path.name for path in with_database} >= {"bank.py", "ticket_sales.py", "sql_database.py"}
    assert "tickets.py" in {path.name for path in without}
    assert not set(with_database) & set(without)


def test_a_compiled_wheel_must_import_what_was_chosen() -> None:
    check_module("/packages/priocast/link.py", pure=True)
    check_module("/packages/priocast/link.cpython-311-x86_64-linux-gnu.so", pure=False)
    with pytest.raises(SystemExit, match=r"the compiled wheel imports /packages/link.py"):
        check_module("/packages/link.py", pure=False)
    with pytest.raises(SystemExit, match=r"PRIOCAST_PURE=1 imports /packages/link.so"):
        check_module("/packages/link.so", pure=True)
