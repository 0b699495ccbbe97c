"""Databases of a group: calls, transactions and queries from several members, and what goes wrong."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import priocast
from priocast.network.memory import MemoryHub
from priocast.sql import (
    Database,
    PriorityPolicy,
    ProcedureCursor,
    ProcedureRule,
    RaisesFirst,
    Transaction,
    connect,
)
from priocast.sql.database_machine import DatabaseMachine
from sql.databases import databases, dumps
from support.waiting import run

SCHEMA = """
    CREATE TABLE accounts (
        id INTEGER PRIMARY KEY,
        balance INTEGER NOT NULL CONSTRAINT solvent CHECK (balance >= 0),
        changed TEXT DEFAULT CURRENT_TIMESTAMP
    );
    INSERT INTO accounts (id, balance) VALUES (1, 100), (2, 50);
"""
TOTAL = {"total": "SELECT sum(balance) FROM accounts HAVING sum(balance) > 1000"}


def transfer(cursor: ProcedureCursor, source: int, target: int, amount: int) -> int:
    cursor.execute("UPDATE accounts SET balance = balance - ? WHERE id = ?", (amount, source))
    cursor.execute("UPDATE accounts SET balance = balance + ? WHERE id = ?", (amount, target))
    ((left,),) = cursor.execute("SELECT balance FROM accounts WHERE id = ?", (source,))
    assert isinstance(left, int)
    return left


async def balances(database: Database) -> list[Any]:
    return (await database.execute("SELECT balance FROM accounts ORDER BY id")).fetchall()


def test_members_call_procedures_and_have_the_same_database() -> None:
    async def test() -> None:
        hub = MemoryHub()
        opened = [
            connect("bank", member=name, hub=hub, size=3, schema=SCHEMA, invariants=TOTAL) for name in "abc"
        ]
        for each in opened:
            each.procedure(transfer)
            each.procedure(
                "deposit", "UPDATE accounts SET balance = balance + :n WHERE id = :id RETURNING balance"
            )
        a, b, c = await asyncio.gather(*opened)
        assert await a.call("transfer", source=1, target=2, amount=30) == 70
        deposited = await b.call("deposit", id=1, n=5, priority=priocast.URGENT)
        assert (deposited.fetchone(), deposited.fetchone(), deposited.rowcount) == ((75,), None, 1)
        assert deposited.columns == ("balance",)
        with pytest.raises(priocast.TransactionAborted, match="solvent") as aborted:
            await c.call("transfer", source=1, target=2, amount=300)
        assert aborted.value.constraint == "solvent"
        with pytest.raises(priocast.TransactionAborted) as aborted:
            await c.call("deposit", id=2, n=5000)
        assert aborted.value.constraint == "total"
        with pytest.raises(priocast.InvalidInput, match="before the database is opened"):
            a.procedure(transfer)
        assert await balances(c) == [(75,), (80,)]
        copies = await dumps(opened)
        assert copies[0] == copies[1] == copies[2]
        assert a.position == b.position == c.position == deposited.position
        await asyncio.gather(*(each.close() for each in opened))

    run(test)


def test_transactions_of_all_members_are_serialised() -> None:
    async def increment(transaction: Transaction) -> None:
        ((balance,),) = await transaction.execute("SELECT balance FROM accounts WHERE id = 1")
        await asyncio.sleep(0)
        assert isinstance(balance, int)
        await transaction.execute("UPDATE accounts SET balance = ? WHERE id = 1", (balance + 1,))

    async def test() -> None:
        async with databases("abc", schema=SCHEMA) as opened:
            await asyncio.gather(*(each.in_transaction(increment, attempts=100) for each in opened * 4))
            assert await balances(opened[0]) == [(112,), (50,)]
            copies = await dumps(opened)
            assert copies[0] == copies[1] == copies[2]

    run(test)


def test_a_transaction_is_all_or_nothing_and_tells_its_place() -> None:
    async def test() -> None:
        async with databases("ab", schema=SCHEMA) as (a, b):
            with pytest.raises(KeyError):
                async with a.transaction() as transaction:
                    await transaction.execute("UPDATE accounts SET balance = 0")
                    raise KeyError("changed my mind")
            assert await balances(b) == [(100,), (50,)]
            async with a.transaction(priority=200) as transaction:
                assert (await transaction.execute("UPDATE accounts SET balance = 1")).rowcount == 2
                assert await balances(a) == [(100,), (50,)], "not committed yet"
            assert (transaction.position, transaction.decision and transaction.decision.priority) == (
                a.position,
                200,
            )
            assert await balances(b) == [(1,), (1,)]
            async with b.transaction() as reading:
                await reading.execute("SELECT * FROM accounts")
            assert reading.position is None
            for misuse in (reading.__aenter__(), a.transaction().execute("SELECT 1")):
                with pytest.raises(priocast.InvalidInput):
                    await misuse

    run(test)


def test_a_conflict_is_raised_and_tried_again() -> None:
    async def test() -> None:
        async with databases("ab", schema=SCHEMA) as (a, b):
            tried = 0

            async def disturbed(transaction: Transaction) -> None:
                nonlocal tried
                tried += 1
                await transaction.execute("SELECT balance FROM accounts WHERE id = 1")
                if tried < 3:
                    await b.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
                await transaction.execute("UPDATE accounts SET balance = 7 WHERE id = 1")

            with pytest.raises(priocast.TransactionConflict, match="another transaction was first"):
                await a.in_transaction(disturbed, attempts=1)
            await a.in_transaction(disturbed, attempts=2)
            assert (tried, await balances(b)) == (3, [(7,), (50,)])
            with pytest.raises(priocast.InvalidInput, match="attempts must be at least 1"):
                await a.in_transaction(disturbed, attempts=0)

    run(test)


def test_statements_are_rejected_at_the_call() -> None:
    async def test() -> None:
        async with databases("a", schema=SCHEMA) as (a,):
            before = a.replica.position
            for sql, reason in (
                ("DELETE FROM accounts WHERE id IN (SELECT id FROM accounts LIMIT 1)", "LIMIT"),
                ("PRAGMA foreign_keys = OFF", "PRAGMA"),
                ("DELETE FROM accounts; DELETE FROM accounts", "one statement"),
            ):
                with pytest.raises(priocast.StatementRejected, match=reason):
                    await a.execute(sql)
            assert a.replica.position == before, "nothing was broadcast"
            with pytest.raises(priocast.StatementRejected, match="only queries are allowed"):
                await a.query("DELETE FROM accounts")
            with pytest.raises(priocast.StatementRejected, match="only queries are allowed"):
                await a.read(lambda cursor: cursor.execute("DELETE FROM accounts"))
            with pytest.raises(priocast.StatementRejected, match="no such table"):
                await a.execute("DELETE FROM nowhere")
            with pytest.raises(priocast.StatementRejected, match="has no primary key"):
                await a.define("CREATE TABLE x (a)")
            await a.define("CREATE TABLE notes (text TEXT PRIMARY KEY NOT NULL)")
            with pytest.raises(priocast.PayloadTooLarge, match="a transaction must have at most"):
                async with a.transaction() as transaction:
                    for number in range(3):
                        await transaction.execute("INSERT INTO notes VALUES (?)", (f"{number}" * 400_000,))
            with pytest.raises(priocast.PayloadTooLarge, match="a transaction must have at most"):
                await a.execute("INSERT INTO notes VALUES (?)", ("x" * 2_000_000,))
            assert (await a.execute("SELECT count(*) FROM notes")).fetchall() == [(0,)]

    run(test)


def test_priorities_are_explained() -> None:
    policy = PriorityPolicy(ProcedureRule("stop", priocast.URGENT), RaisesFirst(raising=170, lowering=90))

    async def test() -> None:
        async with databases("a", schema=SCHEMA, priorities=policy) as (a,):
            a.procedure("stop", "UPDATE accounts SET balance = 0")
            raised = await a.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
            lowered = await a.execute("UPDATE accounts SET balance = balance - ?", (1,))
            stopped = await a.call("stop")
            given = await a.execute("DELETE FROM accounts", priority=7)
            results = (raised, lowered, stopped, given)
            decisions = [each.decision for each in results if each.decision is not None]
            assert [each.priority for each in decisions] == [170, 90, priocast.URGENT, 7]
            assert decisions[0].reason == "can only raise accounts.balance, which is bounded below"
            async with a.transaction() as transaction:
                await transaction.execute("INSERT INTO accounts (id, balance) VALUES (9, 9)")
                await transaction.execute("UPDATE accounts SET balance = balance + 1")
            assert transaction.decision is not None
            assert transaction.decision.priority == 170

    run(test)


def test_a_member_that_joins_later_receives_the_database() -> None:
    async def test() -> None:
        hub = MemoryHub()
        async with databases("ab", hub, schema=SCHEMA, invariants=TOTAL) as (a, b):
            await a.execute("UPDATE accounts SET balance = 3")
            async with connect("bank", member="c", hub=hub, size=2) as c:
                assert await balances(c) == [(3,), (3,)]
                with pytest.raises(priocast.TransactionAborted, match="total"):
                    await c.execute("UPDATE accounts SET balance = 3000")
                copies = await dumps([a, b, c])
                assert copies[0] == copies[1] == copies[2]

    run(test)


def test_a_member_with_other_functions_does_not_open_and_the_others_go_on() -> None:
    def other_transfer(cursor: ProcedureCursor, source: int, target: int, amount: int) -> int:
        return transfer(cursor, source, target, 2 * amount)

    async def test() -> None:
        hub = MemoryHub()
        a, b, newer, without = (
            connect("bank", member=name, hub=hub, size=2, schema=SCHEMA) for name in "abcd"
        )
        a.procedure(transfer)
        b.procedure(transfer)
        await asyncio.gather(a, b)
        assert await a.call("transfer", source=1, target=2, amount=0) == 100
        newer.procedure("transfer")(other_transfer)
        with pytest.raises(priocast.StatementRejected, match="another source in the group"):
            await newer
        with pytest.raises(priocast.InvalidInput, match="procedures that this member has not: transfer"):
            await without
        assert await a.call("transfer", source=1, target=2, amount=30) == 70
        await asyncio.gather(a.close(), b.close())

    run(test)


def test_a_function_that_not_all_members_have_can_be_called_later() -> None:
    async def test() -> None:
        hub = MemoryHub()
        a, b = (connect("bank", member=name, hub=hub, size=2, schema=SCHEMA) for name in "ab")
        a.procedure(transfer)
        await asyncio.gather(a, b)
        with pytest.raises(priocast.StatementRejected, match=r"not the same at every member \(see b\)"):
            await a.call("transfer", source=1, target=2, amount=30, timeout_seconds=0.2)
        calling = asyncio.create_task(a.call("transfer", source=1, target=2, amount=30))
        await asyncio.sleep(0)
        await b.close()
        assert await calling == 70
        await a.close()

    run(test)


def test_a_damaged_snapshot_stops_the_member_that_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DatabaseMachine.snapshot

    def damaged(self: DatabaseMachine) -> bytes:
        data = bytearray(honest(self))
        data[len(data) // 2] ^= 1
        return bytes(data)

    async def test() -> None:
        hub = MemoryHub()
        async with databases("ab", hub, schema=SCHEMA) as (a, b):
            monkeypatch.setattr(DatabaseMachine, "snapshot", damaged)
            with pytest.raises(priocast.DatabaseUnusable, match="damaged on its way"):
                await connect("bank", member="c", hub=hub, size=2, schema=SCHEMA)
            monkeypatch.undo()
            async with connect("bank", member="d", hub=hub, size=2, schema=SCHEMA) as d:
                copies = await dumps([a, b, d])
                assert copies[0] == copies[1] == copies[2]

    run(test)


def test_all_members_start_again_from_their_disks(tmp_path: Path) -> None:
    async def one_start(expected: list[Any], add: int) -> None:
        hub = MemoryHub()
        opened = [
            connect(
                "bank",
                member=name,
                hub=hub,
                size=3,
                schema=SCHEMA,
                durability="disk",
                state_directory=tmp_path / name,
            )
            for name in "abc"
        ]
        for each in opened:
            each.procedure(transfer)
        await asyncio.gather(*(each.__aenter__() for each in opened))
        assert await balances(opened[0]) == expected
        await opened[1].execute("UPDATE accounts SET balance = balance + ? WHERE id = 1", (add,))
        async with opened[2].transaction() as transaction:
            await transaction.execute("UPDATE accounts SET balance = balance + ? WHERE id = 2", (add,))
        copies = await dumps(opened)
        assert copies[0] == copies[1] == copies[2]
        await asyncio.gather(*(each.close() for each in opened))

    async def test() -> None:
        for name in "abc":
            (tmp_path / name).mkdir()
        await one_start([(100,), (50,)], 1)
        await one_start([(101,), (51,)], 2)
        swapped = tmp_path / "a" / "bank.a.db"
        swapped.write_bytes((tmp_path / "b" / "bank.b.db").read_bytes())
        with pytest.raises(priocast.DatabaseUnusable, match="is the database of member b of group bank"):
            await connect(
                "bank",
                member="a",
                hub=MemoryHub(),
                size=3,
                durability="disk",
                state_directory=tmp_path / "a",
            )
        swapped.unlink()  # the log has everything
        await one_start([(103,), (53,)], 0)

    run(test)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"engine": "oracle"}, "choose 'sqlite'"),
        ({"priorities": "urgent"}, "must be a PriorityPolicy"),
        ({"durability": "disk"}, "needs a state_directory"),
        ({"speed": 5}, "speed"),
    ],
)
def test_options_are_checked_at_the_call(options: dict[str, Any], reason: str) -> None:
    with pytest.raises((priocast.InvalidInput, TypeError), match=reason):
        connect("bank", member="a", hub=MemoryHub(), **options)


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("priocast.sql.sqlite")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "apsw", None)
    with pytest.raises(priocast.ExtraMissing, match=r"apsw.*pip install 'priocast\[sql\]'"):
        connect("bank", member="a", hub=MemoryHub())
