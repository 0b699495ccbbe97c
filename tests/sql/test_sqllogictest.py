"""The runner for sqllogictest: our files pass on both databases, and a wrong result is found."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tools.sqllogictest.records import LogicRecord, difference, read_records, result_values
from tools.sqllogictest.runner import LogicReport, run_records

from priocast.core.errors import InvalidInput
from priocast.sql.engine import Engine, SqlValue
from priocast.sql.postgres_engine import PostgresEngine
from priocast.sql.sqlite_engine import SqliteEngine
from sql.conftest import MakeDatabase

FILES = sorted((Path(__file__).parent / "logic").glob("*.test"))
ROOT = Path(__file__).parents[2]


def run(path: Path, engines: list[Engine], name: str = "sqlite") -> LogicReport:
    return asyncio.run(run_records(read_records(path, name), engines))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_our_files_pass_on_sqlite(path: Path) -> None:
    report = run(path, [SqliteEngine() for _ in range(3)])
    assert report.found == []
    assert report.statements > 3
    assert report.queries > 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_our_files_pass_on_postgresql(path: Path, make_database: MakeDatabase) -> None:
    report = run(path, [PostgresEngine(make_database()) for _ in range(2)], "postgresql")
    assert report.found == []


WRONG = """
statement ok
CREATE TABLE t (id INTEGER PRIMARY KEY)

statement error
INSERT INTO t VALUES (1)

statement ok
INSERT INTO missing VALUES (1)

query I nosort
SELECT id FROM t
----
2

query II nosort
SELECT id FROM t
----
1

query I nosort label
SELECT id FROM t

query I nosort label
SELECT id + 1 FROM t

query I nosort
SELECT id FROM t
----
1 values hashing to 00000000000000000000000000000000
"""


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.test"
    path.write_text(WRONG)
    found = run(path, [SqliteEngine()]).found
    assert [each.partition(":")[0] for each in found] == [f"line {line}" for line in (5, 8, 11, 16, 24, 27)]
    assert "succeeded, and should have failed" in found[0]
    assert "1 instead of 2" in found[2]
    assert "label" in found[4]


def test_copies_that_differ_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "right.test"
    path.write_text("statement ok\nCREATE TABLE t (id INTEGER PRIMARY KEY)\n")
    monkeypatch.setattr(SqliteEngine, "dump", lambda engine: iter([str(id(engine))]))
    assert run(path, [SqliteEngine(), SqliteEngine()]).found == ["the copies differ"]


def test_values_are_written_as_the_format_says() -> None:
    record = LogicRecord(1, "", types="TIRT", sort="rowsort", expected=("x",))
    rows: list[tuple[SqlValue, ...]] = [("b\n", 2.9, 1, None), ("", 1, "0.12345", b"z")]
    assert result_values(record, rows) == ["(empty)", "1", "0.123", "z", "b@", "2", "1.000", "NULL"]
    assert difference(record, ["x"]) == ""


def test_other_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "other.test"
    path.write_text("statement ok\nSELECT 1\n\nquery Z\nSELECT 1\n")
    with pytest.raises(InvalidInput, match=r"other\.test:4"):
        list(read_records(path, "sqlite"))


def test_the_command_reports_each_file() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.sqllogictest", *map(str, FILES[:1])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 failures" in ran.stdout
