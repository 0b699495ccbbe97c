"""PostgreSQL as the database of a replica: what is deterministic, what is rejected, what a snapshot holds."""

from collections.abc import Iterator

import psycopg
import pytest

from priocast.core.errors import (
    DatabaseUnusable,
    InvalidInput,
    PayloadTooLarge,
    PriocastError,
    StatementRejected,
    TransactionAborted,
    TransactionConflict,
)
from priocast.sql.engine import NO_POSITION, DatabaseIdentity, SqlValue, StatementResult, TransactionContext
from priocast.sql.postgres_engine import PostgresEngine
from priocast.testing.postgres_server import end_connections
from sql.conftest import MakeDatabase
from sql.databases import CONTEXT

SCHEMA = (
    "CREATE TABLE shops (id int PRIMARY KEY, name text NOT NULL UNIQUE, since timestamptz DEFAULT now())",
    """CREATE TABLE seats (
        id int PRIMARY KEY,
        shop int REFERENCES shops ON DELETE CASCADE,
        price numeric NOT NULL CONSTRAINT positive CHECK (price >= 0),
        double_price numeric GENERATED ALWAYS AS (2 * price) STORED,
        note text
    )""",
    'CREATE TABLE "Odd ""names""" ("a b" int PRIMARY KEY, above int REFERENCES "Odd ""names""")',
)
FILLED = (
    "INSERT INTO shops (id, name) VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    "INSERT INTO seats VALUES (1, 1, 5.50, DEFAULT, 'x'), (2, 1, 6, DEFAULT, NULL), (3, 2, 7, DEFAULT, '')",
    'INSERT INTO "Odd ""names""" VALUES (1, NULL), (2, 1)',
)
BASE: dict[str, bytes] = {}


@pytest.fixture(scope="module")
def opened(make_database: MakeDatabase) -> Iterator[list[PostgresEngine]]:
    found = [PostgresEngine(make_database()) for _ in "ab"]
    yield found
    for engine in found:
        engine.close()


@pytest.fixture
def engines(opened: list[PostgresEngine]) -> list[PostgresEngine]:
    """Two replicas with the same tables and rows."""
    for engine, member in zip(opened, "ab", strict=True):
        if engine._opened is None:
            engine.open(DatabaseIdentity("bank", member))
            transact(engine, *SCHEMA)
            transact(engine, *FILLED)
            BASE.setdefault("snapshot", engine.snapshot())
        elif engine.position != 1:
            engine.restore(BASE["snapshot"])
    return opened


def transact(
    engine: PostgresEngine, *statements: str, context: TransactionContext = CONTEXT
) -> StatementResult:
    """Execute and commit a transaction; roll it back on an error."""
    engine.begin(context)
    try:
        results = [engine.execute(sql, ()) for sql in statements]
        engine.commit(engine.position + 1)
    except PriocastError:
        engine.rollback()
        raise
    return results[-1]


def write_set_of(engine: PostgresEngine, *statements: str) -> bytes:
    """What an interactive transaction changes; it is not committed."""
    engine.begin(CONTEXT, recording=True)
    try:
        for sql in statements:
            engine.execute(sql, ())
        return engine.write_set()
    finally:
        engine.rollback()


def apply(engine: PostgresEngine, write_set: bytes) -> None:
    engine.begin(CONTEXT)
    try:
        engine.apply_write_set(write_set)
        engine.commit(engine.position + 1)
    except PriocastError:
        engine.rollback()
        raise


def test_the_clock_is_that_of_the_order(engines: list[PostgresEngine]) -> None:
    for engine in engines:
        transact(engine, "UPDATE shops SET since = clock_timestamp() WHERE id = 2")
    assert list(engines[0].dump()) == list(engines[1].dump())
    assert engines[0].query("SELECT DISTINCT since FROM shops", ()).rows == (("2023-11-14 22:13:20.123+00",),)
    (row,) = engines[0].query("SELECT now() > ?::timestamptz", ("2026-01-01",)).rows
    assert row == (1,), "a query without a context has the clock of this process"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT random()", "random.. is not deterministic"),
        ("SELECT gen_random_uuid()", "not deterministic"),
        ("SELECT current_timestamp", "write now"),
        ("CREATE TABLE t (id int PRIMARY KEY, at date DEFAULT CURRENT_DATE)", "write now"),
        ("INSERT INTO shops VALUES (9, 'x', 'now')", "may read the clock"),
        ("SELECT timestamptz ' Tomorrow'", "may read the clock"),
        ("SELECT name::date FROM shops", "may read the clock"),
        ("SELECT CAST(name AS timestamp) FROM shops", "may read the clock"),
        ("SELECT date(name) FROM shops", "may read the clock"),
        ("SELECT name::shops FROM shops", "not known to be deterministic"),
        ("SELECT jsonb_populate_record(shops, '{}') FROM shops", "may read the clock"),
        ("SELECT id FROM shops LIMIT 1", "LIMIT without ORDER BY"),
        ("DELETE FROM shops WHERE id = (SELECT id FROM shops ORDER BY name LIMIT 1)", "primary key"),
        ("SELECT s.id FROM shops s, seats ORDER BY s.id LIMIT 1", "one table"),
        ("SELECT 1 FROM (SELECT 2) x ORDER BY 1 LIMIT 1", "primary key"),
        ("SELECT DISTINCT ON (shop) id FROM seats", "DISTINCT ON"),
        ("SELECT array_agg(id) FROM shops", "depends on where rows are stored"),
        ("SELECT row_number() OVER () FROM shops", "depends on where rows are stored"),
        ("SELECT exp(1)", "depends on the machine"),
        ("SELECT 1::float8", "use numeric"),
        ("CREATE TABLE t (id int PRIMARY KEY, v double precision)", "use numeric"),
        ("CREATE TABLE t (id serial PRIMARY KEY)", "is a sequence"),
        ("CREATE TABLE t (id int)", "has no primary key"),
        ("CREATE TEMP TABLE t (id int PRIMARY KEY)", "not replicated"),
        ("CREATE TABLE t (id int PRIMARY KEY REFERENCES shops ON UPDATE CASCADE)", "only ON DELETE CASCADE"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "not replicated"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "not replicated"),
        ("CREATE EXTENSION pgcrypto", "not replicated"),
        ("DO 'BEGIN END'", "not replicated"),
        ("SELECT id INTO t FROM shops", "not replicated"),
        ("SELECT * FROM pg_class", "belongs to this replica"),
        ("SELECT * FROM priocast.database", "belongs to this replica"),
        ("SELECT ctid FROM shops", "depends on this replica"),
        ("SELECT nextval('s')", "not deterministic"),
        ("SELECT E'no\\'w'", "escapes"),
        ("SET timezone = 'CET'", "not replicated"),
        ("COMMIT", "not replicated"),
        ("COPY shops TO STDOUT", "not replicated"),
        ("VACUUM", "not replicated"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT 1 / 0", "DivisionByZero"),
        ("SELECT nothing FROM shops", "UndefinedColumn"),
        ("SELECTED", "not replicated"),
    ],
)
def test_what_could_differ_is_rejected_by_name(sql: str, reason: str, engines: list[PostgresEngine]) -> None:
    before = list(engines[0].dump())
    with pytest.raises(StatementRejected, match=reason):
        transact(engines[0], sql)
    assert list(engines[0].dump()) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM shops ORDER BY name, id LIMIT 1",
        "SELECT string_agg(name, ',' ORDER BY id) FROM shops",
        "UPDATE seats SET price = price * 1.1 WHERE note <> 'now or forever'",
        "INSERT INTO shops VALUES (7, 'log', '2024-02-03 04:05:06+00') ON CONFLICT (id) DO NOTHING",
        "CREATE INDEX by_price ON seats (price)",
        "CREATE VIEW cheap AS SELECT id FROM seats WHERE price < 6",
        "WITH sold AS (DELETE FROM seats WHERE id = 3 RETURNING shop) SELECT shop FROM sold",
        "ALTER TABLE shops ADD COLUMN opened timestamptz DEFAULT now()",
    ],
)
def test_what_is_deterministic_is_executed(sql: str, engines: list[PostgresEngine]) -> None:
    results = [transact(engine, sql) for engine in engines]
    assert results[0] == results[1]
    assert list(engines[0].dump()) == list(engines[1].dump())


def test_a_parameter_reads_no_clock(engines: list[PostgresEngine]) -> None:
    engine = engines[0]
    engine.begin(CONTEXT)
    result = engine.execute(
        "INSERT INTO shops VALUES (:id, :name, :since::timestamptz) RETURNING name, since",
        {"id": 9, "name": "n", "since": "2024-01-01"},
    )
    assert result.rows == (("n", "2024-01-01 00:00:00+00"),)
    with pytest.raises(StatementRejected, match="reads the clock"):
        engine.execute("UPDATE shops SET since = ?::timestamptz", (" now",))
    engine.rollback()


VALUES = (None, 5, -(1 << 63), 1.25, 'it\'s \\ "text" \n✓', b"\x00\xff", "now")


@pytest.mark.parametrize("value", VALUES)
def test_values_come_back_as_they_went(value: SqlValue, engines: list[PostgresEngine]) -> None:
    (row,) = engines[0].query("SELECT ?", (value,)).rows
    assert row == ("1.25" if value == 1.25 else value,)


def test_parameters_must_fit(engines: list[PostgresEngine]) -> None:
    for parameters in ((), (1, 2), {"other": 1}):
        with pytest.raises(StatementRejected, match="parameter"):
            engines[0].query("SELECT ?", parameters)
    with pytest.raises(StatementRejected):
        engines[0].query("SELECT ?", ("\0",))
    with pytest.raises(PayloadTooLarge):
        engines[0].query("SELECT repeat('x', 600000)", ())


@pytest.mark.parametrize(
    ("sql", "constraint"),
    [
        ("INSERT INTO shops VALUES (1, 'other')", "shops_pkey"),
        ("INSERT INTO shops VALUES (8, 'one')", "shops_name_key"),
        ("UPDATE seats SET price = price - 6", "positive"),
        ("INSERT INTO seats VALUES (8, 77, 1)", "seats_shop_fkey"),
        ("UPDATE shops SET name = NULL", "name"),
    ],
)
def test_a_constraint_aborts_and_is_named(sql: str, constraint: str, engines: list[PostgresEngine]) -> None:
    with pytest.raises(TransactionAborted) as raised:
        transact(engines[0], "UPDATE shops SET since = now()", sql)
    assert raised.value.constraint == constraint
    assert list(engines[0].dump()) == list(engines[1].dump()), "nothing of the transaction is left"


def test_queries_only_read(engines: list[PostgresEngine]) -> None:
    for sql in ("DELETE FROM shops", "WITH x AS (DELETE FROM seats RETURNING id) SELECT id FROM x"):
        with pytest.raises(StatementRejected, match="only queries"):
            engines[0].query(sql, ())
    assert engines[0].query("SELECT count(*) FROM seats", ()).rows == ((3,),)


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE seats SET price = price + 1", "UPDATE seats SET note = 'a,\"b\"\\'"),
        ("DELETE FROM shops WHERE id = 1",),
        ("DELETE FROM seats", "DELETE FROM shops"),
        ("INSERT INTO shops (id, name) VALUES (9, 'nine')", "INSERT INTO seats VALUES (9, 9, 1)"),
        ('INSERT INTO "Odd ""names""" VALUES (5, 6), (6, 5)',),
        ("UPDATE shops SET id = id + 10 WHERE id = 3", "DELETE FROM shops WHERE id = 13"),
        ("DELETE FROM seats WHERE id = 1", "INSERT INTO seats VALUES (1, 2, 3)"),
    ],
)
def test_a_write_set_makes_the_same_changes(
    statements: tuple[str, ...], engines: list[PostgresEngine]
) -> None:
    write_set = write_set_of(engines[0], *statements)
    assert list(engines[0].dump()) == list(engines[1].dump()), "it was rolled back"
    transact(engines[0], *statements)
    apply(engines[1], write_set)
    assert list(engines[0].dump()) == list(engines[1].dump())
    with pytest.raises((TransactionConflict, TransactionAborted)):
        apply(engines[1], write_set)


def test_a_write_set_applies_to_the_rows_that_it_saw_only(engines: list[PostgresEngine]) -> None:
    write_set = write_set_of(engines[0], "UPDATE seats SET price = 1 WHERE id = 1")
    transact(engines[1], "UPDATE seats SET note = 'other' WHERE id = 1")
    with pytest.raises(TransactionConflict):
        apply(engines[1], write_set)
    with pytest.raises(StatementRejected):
        apply(engines[1], b"\xc1")
    assert write_set_of(engines[0], "UPDATE seats SET price = 1 WHERE id = 99") == b""


def test_the_schema_is_not_changed_in_a_recorded_transaction(engines: list[PostgresEngine]) -> None:
    with pytest.raises(StatementRejected, match="interactive"):
        write_set_of(engines[0], "CREATE TABLE t (id int PRIMARY KEY)")


def test_a_snapshot_is_the_whole_database(engines: list[PostgresEngine]) -> None:
    one, other = engines
    transact(one, "INSERT INTO shops SELECT g, 'n' || g FROM generate_series(100, 2300) g")
    transact(one, "ALTER TABLE seats DROP COLUMN note")
    other.restore(one.snapshot())
    assert other.position == one.position
    assert list(other.dump()) == list(one.dump())
    for engine in engines:
        with pytest.raises(TransactionAborted, match="seats_shop_fkey"):
            transact(engine, "INSERT INTO seats VALUES (8, 77, 1)")
        apply(engine, write_set_of(engine, "DELETE FROM shops WHERE id = 1"))
    assert list(other.dump()) == list(one.dump())
    assert other.lower_bounds() == one.lower_bounds() == [("seats", "price")]


def test_damaged_and_foreign_snapshots_are_rejected(engines: list[PostgresEngine]) -> None:
    snapshot = engines[0].snapshot()
    before = list(engines[1].dump())
    for byte in range(0, len(snapshot), 7):
        damaged = bytearray(snapshot)
        damaged[byte] ^= 1
        with pytest.raises(DatabaseUnusable):
            engines[1].restore(bytes(damaged))
    foreign = PostgresEngine(engines[0]._address)
    engines[0].close()
    foreign.open(DatabaseIdentity("bank", "a"))
    foreign._identity = DatabaseIdentity("other", "a")
    with pytest.raises(DatabaseUnusable, match="group other"):
        engines[1].restore(foreign.snapshot())
    foreign.close()
    assert list(engines[1].dump()) == before


def test_a_database_belongs_to_one_member(make_database: MakeDatabase) -> None:
    address = make_database()
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("CREATE TABLE mine (id int)")
        engine = PostgresEngine(address)
        with pytest.raises(DatabaseUnusable, match="not Priocast's"):
            engine.open(DatabaseIdentity("bank", "a"))
        other.execute("DROP TABLE mine")
        engine.open(DatabaseIdentity("bank", "a"))
        transact(engine, *SCHEMA)
        engine.close()
        with pytest.raises(DatabaseUnusable, match="swapped"):
            PostgresEngine(address).open(DatabaseIdentity("bank", "b"))
        engine.open(DatabaseIdentity("bank", "a"))
        assert (engine.position, list(engine.dump())) == (NO_POSITION, [])
        engine.close()
        other.execute("UPDATE priocast.database SET format = 0")
        with pytest.raises(DatabaseUnusable, match="another version"):
            engine.open(DatabaseIdentity("bank", "a"))


def test_a_database_has_one_user(engines: list[PostgresEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.sql.postgres_engine._LOCK_SECONDS", 0.05)
    with pytest.raises(DatabaseUnusable, match="another process"):
        PostgresEngine(engines[0]._address).open(DatabaseIdentity("bank", "a"))


def test_a_server_that_is_gone_stops_the_replica(engines: list[PostgresEngine]) -> None:
    engine = engines[0]
    engine.begin(CONTEXT)
    engine.execute("DELETE FROM seats", ())
    end_connections(engine._address)
    with pytest.raises(DatabaseUnusable):
        engine.commit(99)
    assert engine.position != 99
    for use in (engine.rollback, lambda: engine.query("SELECT 1", ()), engine.snapshot):
        with pytest.raises(DatabaseUnusable):
            use()
    engine.close()
    with pytest.raises(DatabaseUnusable, match="cannot connect"):
        PostgresEngine("host=/nowhere").open(DatabaseIdentity("bank", "a"))
    with pytest.raises(InvalidInput):
        PostgresEngine("")
