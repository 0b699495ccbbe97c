"""A bank whose members are cut off again and again: no money is lost, and every answer stays true."""

import asyncio
import random
from functools import partial

import priocast
from priocast.network.memory import MemoryHub
from priocast.sql import Database, ProcedureCursor, QueryCursor, SqlValue, Transaction, connect
from sql.databases import dumps
from support.groups import quick
from support.waiting import run

ACCOUNTS, EACH = 5, 100
SCHEMA = """
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
    CREATE TABLE payments (key TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
    INSERT INTO accounts VALUES (0, 100), (1, 100), (2, 100), (3, 100), (4, 100);
"""
OPERATIONS = 25
CUTS = 4


def move(cursor: ProcedureCursor, key: str, source: int, target: int, amount: int) -> None:
    cursor.execute("INSERT INTO payments VALUES (?)", (key,))
    cursor.execute("UPDATE accounts SET balance = balance - ? WHERE id = ?", (amount, source))
    cursor.execute("UPDATE accounts SET balance = balance + ? WHERE id = ?", (amount, target))


class BankClient:
    """Pays and checks at one member; `answered` has the payments of all clients that were committed."""

    def __init__(self, database: Database, name: str, numbers: random.Random, answered: set[str]) -> None:
        self.database = database
        self.name = name
        self.numbers = numbers
        self.answered = answered

    async def work(self) -> None:
        for number in range(OPERATIONS):
            key, kind = f"{self.name}/{number}", self.numbers.randrange(3)
            try:
                if kind == 0:
                    await self._check()
                elif kind == 1:
                    await self._call(key)
                else:
                    await self.database.in_transaction(partial(self._pay, key), attempts=3)
            except priocast.TransactionAborted:
                continue
            if kind:
                self.answered.add(key)

    async def _call(self, key: str) -> None:
        source, target = self.numbers.sample(range(ACCOUNTS), 2)
        amount = self.numbers.randrange(1, 60)
        await self.database.call("move", key=key, source=source, target=target, amount=amount)

    async def _pay(self, key: str, transaction: Transaction) -> None:
        source, target = self.numbers.sample(range(ACCOUNTS), 2)
        before = dict([*await transaction.execute("SELECT id, balance FROM accounts")])
        assert sum(each for each in before.values() if isinstance(each, int)) == ACCOUNTS * EACH
        await asyncio.sleep(0)
        await transaction.execute("INSERT INTO payments VALUES (?)", (key,))
        for account, change in ((source, -7), (target, 7)):
            ((balance,),) = await transaction.execute("SELECT balance FROM accounts WHERE id = ?", (account,))
            assert isinstance(balance, int)
            assert balance == before[account], "it sees one state"
            parameters = (balance + change, account)
            await transaction.execute("UPDATE accounts SET balance = ? WHERE id = ?", parameters)

    async def _check(self) -> None:
        answered = set(self.answered)

        def read(cursor: QueryCursor) -> set[SqlValue]:
            balances = cursor.execute("SELECT balance FROM accounts")
            assert sum(each for (each,) in balances if isinstance(each, int)) == ACCOUNTS * EACH
            assert cursor.execute("SELECT sum(balance) FROM accounts") == [(ACCOUNTS * EACH,)]
            return {key for (key,) in cursor.execute("SELECT key FROM payments")}

        paid = await self.database.read(read)
        assert answered <= paid, "a query sees everything that was answered before it, anywhere"


async def cut_members_off(hub: MemoryHub, names: str, numbers: random.Random) -> None:
    for _ in range(CUTS):
        await asyncio.sleep(numbers.random() * 0.2)
        name = numbers.choice(names)
        for other in names.replace(name, ""):
            hub.cut(name, other)
            hub.cut(other, name)
        await asyncio.sleep(numbers.random() * 0.4)
        hub.heal()


def test_no_money_is_lost_and_every_answer_stays_true() -> None:
    async def test() -> None:
        hub, numbers, answered = MemoryHub(), random.Random(7), set[str]()
        opened = [
            connect("bank", member=name, hub=hub, size=3, schema=SCHEMA, membership=quick(3))
            for name in "abc"
        ]
        for each in opened:
            each.procedure(move)
        await asyncio.gather(*opened)
        clients = [
            BankClient(each, f"{member}{number}", numbers, answered)
            for member, each in zip("abc", opened, strict=True)
            for number in range(3)
        ]
        await asyncio.gather(*(each.work() for each in clients), cut_members_off(hub, "abc", numbers))
        copies = await dumps(opened)
        assert copies[0] == copies[1] == copies[2]
        paid = {key for (key,) in await opened[0].query("SELECT key FROM payments")}
        assert paid == answered
        await asyncio.gather(*(each.close() for each in opened))

    run(test)
