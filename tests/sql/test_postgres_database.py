"""A group whose members have PostgreSQL: one order, serial executions, and a server that is killed."""

import asyncio
import random
from collections.abc import Callable

import pytest

from priocast.core.errors import PriocastError, TransactionAborted
from priocast.network.memory import MemoryHub
from priocast.sql import Database, connect
from priocast.sql.engine import DatabaseIdentity
from priocast.sql.postgres_engine import PostgresEngine
from priocast.testing.postgres_server import end_connections
from sql.conftest import MakeDatabase
from sql.databases import LocalMachine, dumps
from sql.histories import violations_of
from support.groups import quick
from support.waiting import run

SCHEMA = (
    "CREATE TABLE accounts (id int PRIMARY KEY, v int NOT NULL CONSTRAINT solvent CHECK (v >= 0))",
    """CREATE TABLE notes (
        name text NOT NULL, n int NOT NULL, r int DEFAULT 7, at timestamptz DEFAULT now(),
        PRIMARY KEY (name, n)
    )""",
    "CREATE TABLE touched (id int PRIMARY KEY REFERENCES accounts ON DELETE CASCADE, times int NOT NULL)",
    "INSERT INTO accounts VALUES (1, 3), (2, 3), (3, 5)",
    "INSERT INTO touched VALUES (1, 0), (3, 0)",
)
HISTORIES = 8


def test_random_histories_are_serial_executions(make_database: MakeDatabase) -> None:
    addresses = {member: make_database() for member in "abcd"}
    engines: list[PostgresEngine] = []

    def on_postgres(member: str) -> LocalMachine:
        engine = PostgresEngine(addresses[member])
        engine.open(DatabaseIdentity("bank", member))
        engines.append(engine)
        return LocalMachine(SCHEMA, engine=engine)

    for seed in range(HISTORIES):
        numbers = random.Random(seed)
        choices = [numbers.randrange(8 * 18) for _ in range(40)]
        assert violations_of(choices, on_postgres) == [], f"seed {seed}"
        while engines:
            engines.pop().close()


def connected(addresses: dict[str, str]) -> Callable[[str], Database]:
    hub = MemoryHub()

    def member(name: str) -> Database:
        return connect(
            "bank",
            member=name,
            engine=addresses[name],
            schema=";".join(SCHEMA),
            hub=hub,
            membership=quick(len(addresses)),
            size=len(addresses),
        )

    return member


def test_a_database_that_is_killed_executes_everything_once(make_database: MakeDatabase) -> None:
    """Its server drops the connection in the middle of the work; the member starts again, from the others."""
    addresses = {name: make_database() for name in "abc"}

    async def test() -> None:
        member = connected(addresses)
        a, b, c = (member(name) for name in "abc")
        await asyncio.gather(*(each.__aenter__() for each in (a, b, c)))
        working = asyncio.create_task(_add(a, 60))
        while a.position < 10:
            await asyncio.sleep(0.001)
        end_connections(addresses["c"])
        with pytest.raises(PriocastError, match="database of this replica failed"):
            async with asyncio.timeout(60):
                while True:
                    await c.execute("UPDATE accounts SET v = v + 0 WHERE id = 2")
        with pytest.raises(PriocastError):
            await c.close()
        again = member("c")
        await again.__aenter__()
        await working
        async with again.transaction() as transaction:
            (row,) = await transaction.execute("SELECT v FROM accounts WHERE id = 1")
            await transaction.execute("UPDATE accounts SET v = ? WHERE id = 3", (row[0],))
        with pytest.raises(TransactionAborted) as aborted:
            await again.execute("UPDATE accounts SET v = v - 100 WHERE id = 2")
        assert aborted.value.constraint == "solvent"
        copies = await dumps([a, b, again])
        assert copies[0] == copies[1] == copies[2]
        assert "accounts: (1,63)" in copies[0], "each of the 60 additions once"
        assert "accounts: (3,63)" in copies[0]
        await asyncio.gather(*(each.close() for each in (a, b, again)))

    run(test)


async def _add(database: Database, times: int) -> None:
    for _ in range(times):
        await database.execute("UPDATE accounts SET v = v + 1 WHERE id = 1", timeout_seconds=60)
