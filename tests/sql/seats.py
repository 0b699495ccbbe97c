"""A small database of seats, for tests of one engine."""

from priocast.core.errors import PriocastError
from priocast.sql.engine import StatementResult
from priocast.sql.sqlite_engine import SqliteEngine
from sql.databases import CONTEXT, open_engine

SCHEMA = (
    "CREATE TABLE shops (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE seats (
        id INTEGER PRIMARY KEY,
        shop INTEGER REFERENCES shops ON DELETE CASCADE,
        price INTEGER NOT NULL CONSTRAINT positive CHECK (price >= 0),
        sold TEXT DEFAULT CURRENT_TIMESTAMP,
        number INTEGER DEFAULT (random())
    )""",
    "CREATE TABLE history (line TEXT PRIMARY KEY NOT NULL)",
    """CREATE TRIGGER sale AFTER INSERT ON seats BEGIN
        INSERT INTO history VALUES ('seat ' || new.id || ' at ' || datetime('now') || hex(randomblob(4)));
    END""",
)


def transact(engine: SqliteEngine, *statements: str, position: int | None = None) -> StatementResult:
    """Execute and commit a transaction; roll it back on an error."""
    engine.begin(CONTEXT)
    try:
        results = [engine.execute(sql, ()) for sql in statements]
        engine.commit(engine.position + 1 if position is None else position)
    except PriocastError:
        engine.rollback()
        raise
    return results[-1]


def with_seats(member: str = "a") -> SqliteEngine:
    engine = open_engine(member)
    transact(engine, *SCHEMA)
    return engine
