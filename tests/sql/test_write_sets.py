"""A write-set does what the statements of its transaction did, with constraints, triggers and cascades."""

import random

import msgspec

from priocast.core.errors import PriocastError
from priocast.sql.engine import SqlValue
from priocast.sql.requests import Committed
from sql.databases import LocalClient, LocalMachine

SCHEMA = (
    """CREATE TABLE staff (
        id INTEGER PRIMARY KEY,
        name TEXT UNIQUE,
        desk INTEGER UNIQUE,
        boss INTEGER REFERENCES staff ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED
    )""",
    """CREATE TABLE shifts (
        day TEXT NOT NULL,
        hour INTEGER NOT NULL,
        who INTEGER REFERENCES staff ON DELETE CASCADE ON UPDATE CASCADE,
        minute INTEGER GENERATED ALWAYS AS (hour * 60) STORED,
        PRIMARY KEY (day, hour)
    ) WITHOUT ROWID""",
    "CREATE TABLE cards (id TEXT PRIMARY KEY NOT NULL, value REAL, code BLOB) WITHOUT ROWID",
    """CREATE TRIGGER hired AFTER INSERT ON staff BEGIN
        INSERT OR IGNORE INTO cards VALUES ('card ' || new.id, random(), randomblob(3));
    END""",
    """CREATE TRIGGER left BEFORE DELETE ON staff BEGIN
        UPDATE cards SET value = value + 1 WHERE id = 'card ' || old.id;
    END""",
    """CREATE TRIGGER moved AFTER UPDATE OF desk ON staff BEGIN
        DELETE FROM cards WHERE id = 'card ' || (new.id + 1);
    END""",
    "INSERT INTO staff (id, name, desk) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    "INSERT INTO shifts (day, hour, who) VALUES ('x', 1, 1), ('y', 2, 2)",
)
WITHOUT_PARAMETERS = (
    "UPDATE staff SET desk = -desk",
    "UPDATE staff SET desk = desk + 1 WHERE desk > 2",
    "UPDATE staff SET name = CASE name WHEN 'a' THEN 'z' WHEN 'b' THEN 'a' ELSE name END",
    "UPDATE staff SET name = 'b' WHERE name = 'z'",
    "UPDATE staff SET boss = id - 1 WHERE id > 1",
    "UPDATE shifts SET day = 't' WHERE day = 'x'",
    "UPDATE shifts SET day = 'x' WHERE day = 'y'",
    "SELECT count(*), sum(desk) FROM staff",
    "DELETE FROM cards",
)
HISTORIES = 60


def draw_statement(numbers: random.Random) -> tuple[str, tuple[SqlValue, ...]]:
    name, number, other = numbers.choice("abcdefg"), numbers.randrange(1, 6), numbers.randrange(8)
    drawn: list[tuple[str, tuple[SqlValue, ...]]] = [
        ("INSERT INTO staff (name, desk, boss) VALUES (?, ?, ?)", (name, other, number)),
        ("INSERT OR REPLACE INTO staff (id, name, desk) VALUES (?, ?, ?)", (number, name, other)),
        ("UPDATE staff SET name = ? WHERE id = ?", (name, number)),
        ("UPDATE staff SET id = id + 10 WHERE id = ?", (number,)),
        ("DELETE FROM staff WHERE id = ?", (number,)),
        ("INSERT INTO shifts (day, hour, who) VALUES (?, ?, ?)", (name, other, number)),
        ("UPDATE shifts SET hour = hour + 1 WHERE day = ?", (name,)),
    ]
    return numbers.choice([*drawn, *((sql, ()) for sql in WITHOUT_PARAMETERS)])


def test_a_write_set_does_what_its_statements_did() -> None:
    compared = 0
    for seed in range(HISTORIES):
        numbers = random.Random(seed)
        applied = LocalMachine(SCHEMA)
        for _ in range(numbers.randrange(6)):
            sql, parameters = draw_statement(numbers)
            applied.run(sql, *parameters)
        repeated = LocalMachine(member="b")
        repeated.restore(applied.snapshot())
        repeated.next_position = applied.next_position
        client = LocalClient(applied, seed)
        try:
            for _ in range(numbers.randrange(1, 7)):
                sql, parameters = draw_statement(numbers)
                client.execute(sql, *parameters)
            request = client.finish()
        except PriocastError:
            continue
        if request is not None:
            verdicts = (
                applied.request(request),
                repeated.request(msgspec.structs.replace(request, snapshot=-1)),
            )
            assert verdicts[0] == verdicts[1], f"seed {seed}"
            assert applied.lines() == repeated.lines(), f"seed {seed}"
            compared += isinstance(verdicts[0], Committed)
    assert compared > HISTORIES / 4
