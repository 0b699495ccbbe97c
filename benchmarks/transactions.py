"""Transactions per second on replicated databases, as a ratio to one database that is not replicated.

Every transaction moves money between two accounts: two updates under `CHECK (balance >= 0)`, as a stored
procedure that all members call, `CLIENTS` at once each. At the end the copies must be equal. The database
that is not replicated executes the same updates, in one process: SQLite in memory, PostgreSQL on the server
that the replicas use, over `CLIENTS` connections. The server does not sync: what is durable in a replicated
database is its log, and each copy is made anew from it.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec
import psycopg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.closed_loop import MeasuredCalls, call_for_a_while, hash_of, measure
from benchmarks.members import Load, MemberContext
from priocast.sql import connect
from priocast.testing.postgres_server import postgres_server

SIZES = (3, 5)
CLIENTS = 64
ACCOUNTS = 1000
SCHEMA = """
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
    INSERT INTO accounts VALUES
""" + ", ".join(f"({number}, 1000000)" for number in range(ACCOUNTS))
_FROM = "UPDATE accounts SET balance = balance - 1 WHERE id = "
_TO = "UPDATE accounts SET balance = balance + 1 WHERE id = "


class Subject(NamedTuple):
    """What is measured. Without `replicas`, the database is not replicated.

    `alone` and `addresses` are the addresses of databases on a server, that of one that is not replicated and
    those of the replicas; there are none with SQLite.
    """

    database: str
    alone: str
    addresses: list[str]
    replicas: int = 0
    is_durable: bool = False


async def replicated(
    context: MemberContext, load: Load, addresses: list[str], directory: str
) -> MeasuredCalls:
    """One member with a copy; with a directory, answers wait for the disks of a majority."""
    task = context.task
    database = connect(
        "transfers",
        member=task.member,
        engine=addresses[context.rank] if addresses else "sqlite",
        schema=SCHEMA,
        durability="disk" if directory else "memory",
        listen=task.listen,
        peers=task.peers,
        state_directory=Path(directory) / task.member if directory else None,
    )
    database.procedure("transfer", f"{_FROM}:source; {_TO}:target")
    async with database:

        async def transfer(number: int) -> None:
            source, target = _accounts(number, context.rank)
            await database.call("transfer", source=source, target=target)

        measured = await call_for_a_while(context, load.burst, transfer)
        rows = (await database.execute("SELECT id, balance FROM accounts")).fetchall()
        await context.barrier()
        return msgspec.structs.replace(measured, copy_hash=hash_of(rows))


async def sqlite_alone(context: MemberContext, load: Load) -> MeasuredCalls:
    """One process with a database in memory; its clients take turns."""
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)

    async def transfer(number: int) -> None:
        source, target = _accounts(number, 0)
        with connection:
            connection.execute(f"{_FROM}?", (source,))
            connection.execute(f"{_TO}?", (target,))

    return await call_for_a_while(context, load.burst, transfer)


async def postgres_alone(context: MemberContext, load: Load, address: str) -> MeasuredCalls:
    """One process whose clients have a connection each."""
    async with AsyncExitStack() as stack:
        free = [
            await stack.enter_async_context(await psycopg.AsyncConnection.connect(address, autocommit=True))
            for _ in range(load.burst)
        ]

        async def transfer(number: int) -> None:
            accounts = _accounts(number, 0)
            connection = free.pop()
            async with connection.transaction():
                for account in sorted(accounts):  # otherwise two of them may wait for each other
                    sql = _FROM if account == accounts[0] else _TO
                    await connection.execute(f"{sql}%s".encode(), (account,))
            free.append(connection)

        return await call_for_a_while(context, load.burst, transfer)


def _accounts(number: int, rank: int) -> tuple[int, int]:
    source = (7 * number + 331 * rank) % ACCOUNTS
    return source, (source + 1 + number % (ACCOUNTS - 1)) % ACCOUNTS


def transactions_table(rounds: int, console: Console) -> Table:
    """A row for each database, number of replicas and durability."""
    table = Table(title=f"transactions per second, all members, {CLIENTS} clients each")
    for heading in ("database", "replicas", "durable log", "transactions/s", "of one database"):
        table.add_column(heading, justify="left" if heading == "database" else "right")
    with _subjects() as subjects, Progress(console=console, transient=True) as progress:
        rates: dict[int, list[float]] = {index: [] for index in range(len(subjects))}
        task = progress.add_task("transactions", total=rounds * len(subjects))
        for _ in range(rounds):
            for index, subject in enumerate(subjects):
                rates[index].append(_rate(subject))
                progress.advance(task)
    alone: list[float] = []
    for subject, measured in zip(subjects, rates.values(), strict=True):
        if not subject.replicas:
            alone = measured
        ratio = statistics.median(one / other for one, other in zip(measured, alone, strict=True))
        durable = {True: "on", False: "off"}[subject.is_durable] if subject.replicas else ""
        replicas = str(subject.replicas) if subject.replicas else "one database"
        table.add_row(
            subject.database, replicas, durable, f"{statistics.median(measured):,.0f}", f"{ratio:.3f}"
        )
    return table


@contextmanager
def _subjects() -> Iterator[list[Subject]]:
    """Everything that is measured; a database that is not replicated comes before its replicated ones."""
    with ExitStack() as stack:
        create = stack.enter_context(postgres_server())
        alone = create("alone")
        with psycopg.connect(alone, autocommit=True) as connection:
            connection.execute(SCHEMA.encode())
        replicas = [create(f"replica_{number}") for number in range(max(SIZES))]
        databases: tuple[tuple[str, str, list[str]], ...] = (
            ("SQLite", "", []),
            ("PostgreSQL", alone, replicas),
        )
        yield [
            Subject(*database, *chosen)
            for database in databases
            for chosen in ((0, False), *product(SIZES, (False, True)))
        ]


def _rate(subject: Subject) -> float:
    load = Load(subject.replicas or 1, 0, 0, burst=CLIENTS, window=0, frame_messages=0)
    if not subject.replicas:
        if subject.alone:
            return measure(postgres_alone, load, subject.alone).rate
        return measure(sqlite_alone, load).rate
    with tempfile.TemporaryDirectory() as directory:
        durable = directory if subject.is_durable else ""
        return measure(replicated, load, subject.addresses, durable).rate
