"""SQLite as the database of a replica: what is deterministic, what is rejected."""

from contextlib import suppress

import pytest

from priocast.core.errors import (
    PayloadTooLarge,
    StatementRejected,
    TransactionAborted,
    TransactionConflict,
)
from priocast.sql import sqlite_engine
from priocast.sql.engine import SqlValue, StatementResult, TransactionContext
from priocast.sql.sqlite_engine import SqliteEngine
from sql.databases import CONTEXT, open_engine
from sql.seats import transact, with_seats


def test_clocks_and_random_numbers_come_from_the_context() -> None:
    engines = [with_seats(), with_seats("b")]
    for engine in engines:
        transact(engine, "INSERT INTO shops VALUES (1, 'x')", "INSERT INTO seats (price) VALUES (3), (4)")
    assert list(engines[0].dump()) == list(engines[1].dump())
    (row,) = engines[0].query("SELECT sold, number FROM seats WHERE id = 1", ()).rows
    assert row[0] == "2023-11-14 22:13:20"
    numbers = engines[0].query("SELECT DISTINCT number FROM seats", ()).rows
    assert len(numbers) == 2, "each call gives another number"
    engines[1].begin(TransactionContext(CONTEXT.time_ns, CONTEXT.seed + 1))
    assert engines[1].execute("SELECT random()", ()) != transact(engines[0], "SELECT random()")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("datetime('now')", "2023-11-14 22:13:20"),
        ("datetime()", "2023-11-14 22:13:20"),
        ("date('NOW', '+1 day')", "2023-11-15"),
        ("CURRENT_DATE", "2023-11-14"),
        ("CURRENT_TIME", "22:13:20"),
        ("strftime('%s')", "1700000000"),
        ("strftime('%f', 'now')", "20.123"),
        ("unixepoch()", 1_700_000_000),
        ("time('now', 'subsec')", "22:13:20.123"),
        ("timediff('now', '2023-11-14')", "+0000-00-00 22:13:20.123"),
        ("date('2020-02-29', '+1 year')", "2021-03-01"),
        ("date(NULL)", None),
        ("unixepoch('subsec')", 1_700_000_000.123),
        ("datetime(x'6e6f77')", "2023-11-14 22:13:20"),
        ("date('now' || char(0) || 'x')", "2023-11-14"),
        ("length(randomblob(100))", 100),
    ],
)
def test_times_are_those_of_the_order(expression: str, value: SqlValue) -> None:
    assert transact(open_engine(), f"SELECT {expression}").rows == ((value,),)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FROM shops LIMIT 1", "LIMIT without ORDER BY"),
        ("DELETE FROM shops WHERE id IN (SELECT id FROM shops LIMIT 1)", "LIMIT without ORDER BY"),
        ("VACUUM", "VACUUM is not replicated"),
        ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys is not replicated"),
        ("ATTACH 'x.db' AS x", "ATTACH is not replicated"),
        ("DETACH main", "DETACH is not replicated"),
        ("BEGIN", "BEGIN, COMMIT or ROLLBACK"),
        ("COMMIT", "BEGIN, COMMIT or ROLLBACK"),
        ("SAVEPOINT x", "SAVEPOINT is not replicated"),
        ("ANALYZE", "ANALYZE is not replicated"),
        ("EXPLAIN SELECT 1", "EXPLAIN depends on the version"),
        ("CREATE TEMP TABLE x (id INTEGER PRIMARY KEY)", "a temporary table"),
        ("CREATE TEMP VIEW x AS SELECT 1", "a temporary view"),
        ("CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE VIRTUAL TABLE"),
        ("SELECT load_extension('x')", r"load_extension\(\) loads code"),
        ("SELECT last_insert_rowid()", r"last_insert_rowid\(\) depends on what this replica did"),
        ("SELECT changes()", r"changes\(\) depends on what this replica did"),
        ("SELECT sqlite_version()", r"sqlite_version\(\) depends on the version"),
        ("SELECT sin(1)", r"sin\(\) depends on the machine"),
        ("SELECT datetime('now', 'localtime')", "depends on the time zone of the machine"),
        ("SELECT datetime('now', x'757463')", "depends on the time zone of the machine"),
        ("SELECT date('now', 'LOCALTIME' || char(0) || 'x')", "depends on the time zone of the machine"),
        ("SELECT rowid FROM history", "the rowid of history is not replicated"),
        ("SELECT * FROM pragma_table_list", "pragma_table_list depends on this replica"),
        ("CREATE TABLE x (a)", "table x has no primary key"),
        ("CREATE TABLE x (a TEXT PRIMARY KEY)", r"x\.a is part of the primary key and may be NULL"),
        ("CREATE TABLE priocast_x (id INTEGER PRIMARY KEY)", "belongs to the replication"),
        ("ALTER TABLE history RENAME TO priocast_x", "names must not begin with priocast_"),
        ("UPDATE priocast_database SET position = 0", "belongs to the replication"),
        ("DELETE FROM sqlite_schema", "may not be modified"),
        ("SELECT randomblob(1000000000)", "randomblob gives at most"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT ?", "1 bindings"),
        ("SELEC", "syntax error"),
        ("SELECT 1; SELECT 2", "one statement is expected"),
        ("SELECT CAST(x'ff' AS TEXT)", "decode"),
        ('SELECT "text"', "no such column"),
    ],
)
def test_what_could_differ_is_rejected_by_name(sql: str, reason: str) -> None:
    engine = with_seats()
    before = list(engine.dump())
    with pytest.raises(StatementRejected, match=reason):
        transact(engine, sql)
    assert list(engine.dump()) == before
    transact(engine, "INSERT INTO shops VALUES (1, 'still works')")


def test_functions_within_triggers_are_judged_when_they_are_used() -> None:
    engine = with_seats()
    transact(
        engine, "CREATE TRIGGER bad AFTER INSERT ON shops BEGIN DELETE FROM seats WHERE id = changes(); END"
    )
    with pytest.raises(StatementRejected, match=r"changes\(\)"):
        transact(engine, "INSERT INTO shops VALUES (1, 'x')")
    transact(engine, "DROP TRIGGER bad")
    transact(engine, "INSERT INTO shops VALUES (1, 'x')")


def test_a_statement_is_checked_before_it_is_broadcast() -> None:
    engine = with_seats()
    engine.check("SELECT * FROM nowhere")  # this copy may be behind
    engine.check("INSERT INTO shops VALUES (1, 'x')")
    with pytest.raises(StatementRejected, match="PRAGMA"):
        engine.check("PRAGMA user_version = 1")
    with pytest.raises(StatementRejected, match="LIMIT"):
        engine.check("SELECT 1 LIMIT 1")


@pytest.mark.parametrize(
    ("sql", "constraint"),
    [
        ("INSERT INTO shops VALUES (1, 'x')", "shops.id"),
        ("INSERT INTO shops VALUES (2, 'first')", "shops.name"),
        ("INSERT INTO shops VALUES (2, NULL)", "shops.name"),
        ("INSERT INTO seats (price) VALUES (-1)", "positive"),
        ("INSERT INTO seats (price, shop) VALUES (1, 77)", "FOREIGN KEY"),
        ("INSERT OR ROLLBACK INTO shops VALUES (1, 'x')", "shops.id"),
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", "steps"),
    ],
)
def test_a_constraint_aborts_and_is_named(sql: str, constraint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_engine, "STEPS_MAX", 2_000_000)
    engine = with_seats()
    transact(engine, "INSERT INTO shops VALUES (1, 'first')")
    before = list(engine.dump())
    with pytest.raises(TransactionAborted) as raised:
        transact(engine, "INSERT INTO shops VALUES (9, 'rolled back, too')", sql)
    assert raised.value.constraint == constraint
    assert list(engine.dump()) == before


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO shops VALUES (9223372036854775807, 'last')",
        "INSERT INTO shops VALUES (9223372036854775807, 'last'), (NULL, 'random')",
        "UPDATE shops SET id = 9223372036854775807",
        "INSERT INTO history VALUES ('by a trigger')",
    ],
)
def test_sqlite_has_no_reason_to_choose_random_keys(sql: str) -> None:
    engine = with_seats()
    transact(
        engine,
        "INSERT INTO shops VALUES (1, 'first')",
        "CREATE TRIGGER late AFTER INSERT ON history WHEN new.line LIKE 'by%' "
        "BEGIN INSERT INTO shops VALUES (9223372036854775807, 'last'); END",
    )
    with pytest.raises(TransactionAborted) as raised:
        transact(engine, sql)
    assert raised.value.constraint == "shops"
    assert "9223372036854775807" in str(raised.value)


def test_the_limit_of_steps_does_not_depend_on_what_was_executed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite_engine, "STEPS_MAX", 10_000)
    monkeypatch.setattr(sqlite_engine, "_STEPS_AT_ONCE", 1_000)
    count = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {}) SELECT count(*) FROM n"
    )

    def is_aborted(engine: SqliteEngine, sql: str) -> bool:
        try:
            transact(engine, sql)
        except TransactionAborted:
            return True
        return False

    new, used = open_engine, open_engine()
    for rows in range(600, 1_000, 7):
        sql = count.format(rows)
        outcomes = {is_aborted(used, sql) for _ in range(5)} | {is_aborted(new(), sql)}
        assert len(outcomes) == 1, f"{rows} rows"


def test_the_steps_of_all_statements_of_a_transaction_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_engine, "STEPS_MAX", 10_000)
    monkeypatch.setattr(sqlite_engine, "_STEPS_AT_ONCE", 1_000)
    engine = open_engine()
    count = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) SELECT count(*) FROM n"
    )
    for _ in range(5):
        transact(engine, count)
    with pytest.raises(TransactionAborted) as raised:
        transact(engine, *[count] * 5)
    assert raised.value.constraint == "steps"
    assert engine.query(count, ()).rows == ((300,),)


def test_deferred_foreign_keys_are_checked_at_commit() -> None:
    engine = with_seats()
    child = "CREATE TABLE late (id INTEGER PRIMARY KEY, shop REFERENCES shops DEFERRABLE INITIALLY DEFERRED)"
    transact(engine, child)
    with pytest.raises(TransactionAborted) as raised:
        transact(engine, "INSERT INTO late VALUES (1, 5)")
    assert raised.value.constraint == "FOREIGN KEY"
    transact(engine, "INSERT INTO late VALUES (1, 5)", "INSERT INTO shops VALUES (5, 'in time')")


def test_rows_and_values_have_limits() -> None:
    engine = open_engine()
    with pytest.raises(PayloadTooLarge, match="at most 524,288 bytes"):
        transact(engine, "SELECT hex(zeroblob(400000))")
    with pytest.raises(PayloadTooLarge, match="too long"):
        transact(engine, "SELECT length(zeroblob(100000000))")


def test_queries_only_read() -> None:
    engine = with_seats()
    assert engine.query("SELECT count(*) AS n FROM shops LIMIT 1", ()) == StatementResult(("n",), ((0,),), 0)
    for sql in (
        "DELETE FROM shops",
        "PRAGMA user_version",
        "ATTACH 'x' AS y",
        "INSERT INTO shops VALUES (1, 2)",
    ):
        with pytest.raises(StatementRejected):
            engine.query(sql, ())
    assert engine.query("SELECT sqlite_version(), sin(1)", ()).rows


def test_a_write_set_makes_the_same_changes_without_triggers_and_cascades() -> None:
    first, second = with_seats(), with_seats("b")
    for engine in (first, second):
        transact(
            engine,
            "INSERT INTO shops VALUES (1, 'x'), (2, 'y')",
            "INSERT INTO seats (shop, price) VALUES (1, 3)",
        )
    first.begin(CONTEXT, recording=True)
    assert first.write_set() == b""
    first.execute("INSERT INTO seats (shop, price) VALUES (2, 5)", ())
    first.execute("DELETE FROM shops WHERE id = 1", ())
    first.execute("UPDATE shops SET name = 'z' WHERE id = 2", ())
    write_set = first.write_set()
    expected = list(first.dump())
    first.commit(9)
    second.begin(CONTEXT)
    second.apply_write_set(write_set)
    second.commit(9)
    assert list(second.dump()) == expected
    assert (first.position, second.position) == (9, 9)
    transact(second, "INSERT INTO seats (shop, price) VALUES (2, 5)")  # triggers work again


def _recorded(*statements: str) -> bytes:
    """The write-set of a transaction on one shop with one seat."""
    engine = with_seats()
    transact(
        engine, "INSERT INTO shops VALUES (1, 'x')", "INSERT INTO seats (id, shop, price) VALUES (1, 1, 3)"
    )
    engine.begin(CONTEXT, recording=True)
    for sql in statements:
        engine.execute(sql, ())
    return engine.write_set()


@pytest.mark.parametrize(
    ("changed", "written", "error"),
    [
        ("UPDATE seats SET price = 4", "UPDATE seats SET price = 5", TransactionConflict),
        ("DELETE FROM seats", "UPDATE seats SET price = 5", TransactionConflict),
        ("DELETE FROM seats", "DELETE FROM seats", TransactionConflict),
        ("INSERT INTO shops VALUES (2, 'y')", "INSERT INTO shops VALUES (2, 'z')", TransactionConflict),
        ("INSERT INTO shops VALUES (3, 'y')", "INSERT INTO shops VALUES (2, 'y')", TransactionAborted),
        ("DELETE FROM shops", "INSERT INTO seats (id, shop, price) VALUES (2, 1, 1)", TransactionAborted),
    ],
)
def test_a_write_set_applies_to_the_rows_that_it_saw_only(
    changed: str, written: str, error: type[Exception]
) -> None:
    write_set = _recorded(written)
    engine = with_seats()
    transact(
        engine, "INSERT INTO shops VALUES (1, 'x')", "INSERT INTO seats (id, shop, price) VALUES (1, 1, 3)"
    )
    transact(engine, changed)
    before = list(engine.dump())
    engine.begin(CONTEXT)
    with pytest.raises(error):
        engine.apply_write_set(write_set)
    engine.rollback()
    assert list(engine.dump()) == before


def test_no_damage_of_a_write_set_stops_a_replica() -> None:
    """A replica that broadcasts nonsense must not stop the others."""
    write_set = _recorded(
        "INSERT INTO shops VALUES (2, 'y')", "UPDATE seats SET price = 5", "DELETE FROM history"
    )
    engine = with_seats()
    transact(
        engine, "INSERT INTO shops VALUES (1, 'x')", "INSERT INTO seats (id, shop, price) VALUES (1, 1, 3)"
    )
    before = list(engine.dump())
    rejected = 0
    for place in range(len(write_set)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(write_set)
            damaged[place] ^= change
            engine.begin(CONTEXT)
            try:
                engine.apply_write_set(bytes(damaged))
            except (TransactionAborted, StatementRejected):
                rejected += 1
            engine.rollback()
    assert rejected > len(write_set)
    for size in range(len(write_set)):
        engine.begin(CONTEXT)
        with suppress(TransactionAborted, StatementRejected):
            engine.apply_write_set(write_set[:size])
        engine.rollback()
    assert list(engine.dump()) == before
    assert engine._connection.execute("PRAGMA integrity_check").get == "ok"


def test_the_schema_is_not_changed_in_a_recorded_transaction() -> None:
    engine = with_seats()
    engine.begin(CONTEXT, recording=True)
    with pytest.raises(StatementRejected, match="interactive transaction"):
        engine.execute("CREATE TABLE x (id INTEGER PRIMARY KEY)", ())
    engine.rollback()
