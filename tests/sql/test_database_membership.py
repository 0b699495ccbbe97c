"""Databases whose members are evicted, or whose own database fails: copies stay equal, answers stay true."""

import asyncio

import pytest

import priocast
from priocast.network.memory import MemoryHub
from priocast.sql import Database, Transaction, connect
from priocast.sql.sqlite_engine import SqliteEngine
from sql.databases import databases, dumps
from support.groups import quick
from support.waiting import run, wait_until

SCHEMA = """
    CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
    CREATE TABLE lines (text TEXT PRIMARY KEY NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP);
    INSERT INTO counters VALUES (1, 0);
"""
INCREMENT = "UPDATE counters SET n = n + 1 WHERE id = 1"


def names(database: Database) -> str:
    return "".join(member.name for member in database.view.members) if database.view else ""


def isolate(hub: MemoryHub, name: str, *others: str) -> None:
    for other in others:
        hub.cut(name, other)
        hub.cut(other, name)


async def read_and_increment(transaction: Transaction) -> None:
    ((value,),) = await transaction.execute("SELECT n FROM counters WHERE id = 1")
    assert isinstance(value, int)
    await transaction.execute("UPDATE counters SET n = ? WHERE id = 1", (value + 1,))


def test_transactions_of_an_evicted_member_are_certified_after_those_that_it_missed() -> None:
    async def test() -> None:
        hub = MemoryHub()
        async with databases("abc", hub, schema=SCHEMA, membership=quick(3)) as (a, b, c):
            doomed, lucky = [await c.transaction().__aenter__() for _ in range(2)]
            await read_and_increment(doomed)
            await lucky.execute("INSERT INTO lines (text) VALUES ('from c')")
            isolate(hub, "c", "a", "b")
            waiting: list[asyncio.Task[object]] = [
                asyncio.create_task(c.execute(INCREMENT)) for _ in range(5)
            ]
            waiting.append(asyncio.create_task(c.in_transaction(read_and_increment)))
            await wait_until(lambda: names(a) == names(b) == "ab")
            await a.execute(INCREMENT)
            hub.heal()
            await asyncio.gather(*waiting)
            with pytest.raises(priocast.TransactionConflict):
                await doomed.__aexit__(None, None, None)
            await lucky.__aexit__(None, None, None)
            copies = await dumps([a, b, c])
            assert copies[0] == copies[1] == copies[2]
            assert (await b.execute("SELECT n FROM counters")).fetchall() == [(7,)]
            assert (await b.execute("SELECT text FROM lines")).fetchall() == [("from c",)]

    run(test)


def test_what_became_of_a_transaction_can_be_asked_for_later() -> None:
    async def test() -> None:
        hub = MemoryHub()
        async with databases("abc", hub, schema=SCHEMA, membership=quick(3)) as (a, b, c):
            await c.execute(INCREMENT)
            isolate(hub, "c", "a", "b")
            with pytest.raises(priocast.OutcomeUnknown) as unknown:
                await c.execute(INCREMENT, timeout_seconds=0.3)
            hub.heal()
            position = await c.settle(unknown.value)
            expected = 1 if position is None else 2
            for each in (a, b, c):
                assert (await each.execute("SELECT n FROM counters")).fetchall() == [(expected,)]
            assert await a.settle(unknown.value) == position, "the answer is final, at any member"

    run(test)


def test_a_member_whose_database_fails_stops_and_the_others_go_on() -> None:
    async def test() -> None:
        hub = MemoryHub()
        async with databases("ab", hub, schema=SCHEMA) as (a, b):
            broken = connect("bank", member="c", hub=hub, size=2)
            await broken
            await broken.query("SELECT 1")
            engine = broken.replica.machine.engine
            assert isinstance(engine, SqliteEngine)
            engine._connection.execute("PRAGMA max_page_count = 1")
            filled = "INSERT INTO lines (text) VALUES (hex(zeroblob(20000)))"
            assert (await a.execute(filled)).rowcount == 1
            with pytest.raises(priocast.GroupClosed, match="FullError: database or disk is full"):
                await broken.execute(INCREMENT)
            with pytest.raises(priocast.DatabaseUnusable, match="FullError: database or disk is full"):
                await broken.close()
            await b.execute(INCREMENT)
            copies = await dumps([a, b])
            assert copies[0] == copies[1]

    run(test)
