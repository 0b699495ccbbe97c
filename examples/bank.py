"""A replicated bank: the policy orders deposits before withdrawals, so fewer of them are aborted."""

import asyncio

import priocast
from priocast.sql import Database, PriorityPolicy, RaisesFirst, connect

SCHEMA = """
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER CONSTRAINT solvent CHECK (balance >= 0));
    INSERT INTO accounts VALUES (1, 0);
"""
DEPOSIT = "UPDATE accounts SET balance = balance + ? WHERE id = 1"
WITHDRAW = "UPDATE accounts SET balance = balance - ? WHERE id = 1"


async def payments(database: Database) -> int:
    """Withdraw and deposit the same sums; return how many withdrawals were aborted."""
    withdrawals = [database.execute(WITHDRAW, (10,)) for _ in range(20)]
    deposits = [database.execute(DEPOSIT, (10,)) for _ in range(20)]
    results = await asyncio.gather(*withdrawals, *deposits, return_exceptions=True)
    return sum(isinstance(each, priocast.TransactionAborted) for each in results)


async def main() -> None:
    for name, priorities in (("plain", PriorityPolicy()), ("prioritised", PriorityPolicy(RaisesFirst()))):
        hub = priocast.MemoryHub()
        members = [
            connect("bank", member=member, hub=hub, size=3, schema=SCHEMA, priorities=priorities)
            for member in "abc"
        ]
        await asyncio.gather(*members)
        aborted = sum(await asyncio.gather(*map(payments, members)))
        balances = [(await each.execute("SELECT balance FROM accounts")).fetchone() for each in members]
        print(f"{name}: {aborted} of 60 withdrawals aborted, balances {balances}")
        await asyncio.gather(*(each.close() for each in members))


asyncio.run(main())
