"""Databases for tests: engines, machines without a group, and groups of members in one process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from priocast.core.identity import ProcessId
from priocast.network.memory import MemoryHub
from priocast.replication.commands import CommandId
from priocast.replication.state_machine import Applied
from priocast.sql import Database, connect
from priocast.sql.database_machine import DatabaseMachine
from priocast.sql.engine import DatabaseIdentity, Engine, SqlValue, TransactionContext
from priocast.sql.requests import (
    BoundStatement,
    DefineSchema,
    ExecuteStatements,
    SqlRequest,
    Verdict,
    decode_verdict,
    encode_request,
)
from priocast.sql.sqlite_engine import SqliteEngine
from priocast.sql.workspace import LocalTransaction

CONTEXT = TransactionContext(1_700_000_000_123_000_000, 5)
SENDER = ProcessId("a", 1)


def open_engine(member: str = "a", group: str = "bank") -> SqliteEngine:
    """An engine with an empty database in memory."""
    engine = SqliteEngine()
    engine.open(DatabaseIdentity(group, member))
    return engine


class LocalMachine(DatabaseMachine):
    """The state machine of a database, applied to by hand: each request gets the next position."""

    def __init__(self, schema: Sequence[str] = (), member: str = "a", engine: Engine | None = None) -> None:
        super().__init__(engine or open_engine(member))
        self.next_position = 0
        if schema:
            self.request(DefineSchema(tuple(schema), {}))

    def request(self, request: SqlRequest) -> Verdict:
        """Apply a request; return its verdict."""
        position, self.next_position = self.next_position, self.next_position + 1
        at = Applied(position, CommandId("a#1", position), SENDER, 96, 1_700_000_000_000_000_000 + position)
        return decode_verdict(self.apply(encode_request(request), at))

    def run(self, sql: str, *parameters: SqlValue) -> Verdict:
        """Apply one statement."""
        return self.request(ExecuteStatements((BoundStatement(sql, list(parameters)),)))

    def rows(self, sql: str) -> list[Any]:
        """What a query returns now."""
        return [list(row) for row in self.query(sql, ()).rows]

    def lines(self) -> list[str]:
        """The whole database as text."""
        self.workspace.suspend()
        return list(self.engine.dump())


class LocalClient:
    """An interactive transaction on a machine, step by step."""

    def __init__(self, machine: LocalMachine, seed: int = 1) -> None:
        self.machine = machine
        self.local = LocalTransaction(TransactionContext(1_700_000_000_000_000_000, seed))

    def execute(self, sql: str, *parameters: SqlValue) -> list[tuple[SqlValue, ...]]:
        """Execute a statement of the transaction."""
        return list(self.machine.workspace.execute(self.local, sql, list(parameters)).rows)

    def finish(self) -> Any:
        """What would be broadcast at commit."""
        return self.machine.workspace.finish(self.local)

    def commit(self) -> Verdict | None:
        """Commit here, as the next transaction of the order."""
        request = self.finish()
        return None if request is None else self.machine.request(request)


@asynccontextmanager
async def databases(
    names: str, hub: MemoryHub | None = None, **options: Any
) -> AsyncIterator[list[Database]]:
    """Members of one group in this process, all of them founders."""
    hub = hub or MemoryHub()
    opened = [connect("bank", member=name, hub=hub, size=len(names), **options) for name in names]
    await asyncio.gather(*(each.__aenter__() for each in opened))
    try:
        yield opened
    finally:
        await asyncio.gather(*(each.close() for each in opened))


async def dumps(opened: Sequence[Database]) -> list[list[str]]:
    """The copies of all members as text, each with everything that was answered before."""
    for each in opened:
        await each.query("SELECT 1")
    return [list(each.replica.machine.engine.dump()) for each in opened]
