"""SQLite as the database of a replica: snapshots, files, and what its schema says."""

from pathlib import Path

import apsw
import pytest

from priocast.core.errors import (
    DatabaseUnusable,
)
from priocast.sql.engine import NO_POSITION, DatabaseIdentity
from priocast.sql.sqlite_engine import SqliteEngine
from sql.databases import CONTEXT, open_engine
from sql.seats import SCHEMA, transact, with_seats


def test_a_snapshot_is_the_whole_database() -> None:
    first, second = with_seats(), open_engine("b")
    transact(first, "INSERT INTO history VALUES ('z'), ('a')", position=41)
    second.restore(first.snapshot())
    assert list(second.dump()) == list(first.dump())
    assert second.position == 41
    for engine in (first, second):
        transact(engine, "INSERT INTO seats (price) VALUES (3)")
    assert list(second.dump()) == list(first.dump())


def test_damaged_and_foreign_snapshots_are_rejected() -> None:
    engine = with_seats()
    snapshot = engine.snapshot()
    before = list(engine.dump())
    for place in range(0, len(snapshot), len(snapshot) // 50):
        damaged = bytearray(snapshot)
        damaged[place] ^= 4
        with pytest.raises(DatabaseUnusable):
            engine.restore(bytes(damaged))
    with pytest.raises(DatabaseUnusable, match="a snapshot is of group other"):
        engine.restore(open_engine(group="other").snapshot())
    assert list(engine.dump()) == before


def test_a_file_belongs_to_one_member(tmp_path: Path) -> None:
    path = tmp_path / "bank.a.db"
    engine = SqliteEngine(path)
    engine.open(DatabaseIdentity("bank", "a"))
    transact(engine, *SCHEMA)
    with pytest.raises(DatabaseUnusable, match="another process uses it"):
        SqliteEngine(path).open(DatabaseIdentity("bank", "a"))
    engine.close()
    engine.close()
    with pytest.raises(DatabaseUnusable, match=r"is the database of member a of group bank, not of member b"):
        SqliteEngine(path).open(DatabaseIdentity("bank", "b"))
    again = SqliteEngine(path)
    again.open(DatabaseIdentity("bank", "a"))
    assert (again.position, list(again.dump())) == (NO_POSITION, []), "the log has everything"
    again.close()


def test_the_directory_of_a_copy_is_made(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "state" / "a" / "bank.a.db")
    engine.open(DatabaseIdentity("bank", "a"))
    transact(engine, *SCHEMA)
    engine.close()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DatabaseUnusable, match="cannot be made"):
        SqliteEngine(tmp_path / "file" / "bank.a.db").open(DatabaseIdentity("bank", "a"))


def test_foreign_and_older_files_are_left_alone(tmp_path: Path) -> None:
    foreign, older, text = tmp_path / "foreign.db", tmp_path / "older.db", tmp_path / "text.db"
    connection = apsw.Connection(str(foreign))
    connection.execute("CREATE TABLE precious (a); INSERT INTO precious VALUES (1)")
    connection.close()
    text.write_bytes(b"not a database " * 100)
    engine = SqliteEngine(older)
    engine.open(DatabaseIdentity("bank", "a"))
    engine.close()
    connection = apsw.Connection(str(older))
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    for path, reason in (
        (foreign, "is not a database of Priocast"),
        (older, r"another version of Priocast \(format 0, not 1\)"),
        (text, "is not a database of Priocast"),
    ):
        before = path.read_bytes()
        with pytest.raises(DatabaseUnusable, match=reason):
            SqliteEngine(path).open(DatabaseIdentity("bank", "a"))
        assert path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 100, 4096, 5000])
def test_a_copy_that_a_crash_has_damaged_is_made_anew(size: int, tmp_path: Path) -> None:
    path = tmp_path / "bank.a.db"
    engine = SqliteEngine(path)
    engine.open(DatabaseIdentity("bank", "a"))
    transact(engine, *SCHEMA)
    engine.close()
    path.write_bytes(path.read_bytes()[:size] + b"\xff" * 9000 * (size > 0))
    engine.open(DatabaseIdentity("bank", "a"))
    assert engine.position == NO_POSITION
    tables = engine._connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'priocast%'")
    assert tables.fetchall() == [], "nothing of the damaged copy is left"
    transact(engine, *SCHEMA)
    engine.close()


def test_a_full_disk_stops_the_replica(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "bank.a.db")
    engine.open(DatabaseIdentity("bank", "a"))
    transact(engine, *SCHEMA)
    engine._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(DatabaseUnusable, match="full"):
        transact(engine, "INSERT INTO shops VALUES (1, hex(zeroblob(50000)))")
    engine.close()
    with pytest.raises(DatabaseUnusable, match="not open"):
        engine.begin(CONTEXT)


def test_columns_that_are_bounded_below() -> None:
    engine = open_engine()
    transact(
        engine,
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER CHECK (b >= 0), c INTEGER CHECK (c < 5), "
        "d INTEGER, e INTEGER DEFAULT (7 > 3), f INTEGER, CONSTRAINT both CHECK (0 <= d AND f > 1))",
    )
    assert engine.lower_bounds() == [("a", "b"), ("a", "d"), ("a", "f")]
