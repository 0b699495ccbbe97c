"""What transactions are executed on: a replicated object, or a replicated SQL database."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from priocast.core.errors import TransactionAborted
from priocast.replication.opening import open_replica
from priocast.replication.replica import Replica
from priocast.replication.state_machine import Applied
from priocast.sql import Database, ProcedureCursor, SqlValue, connect
from priocast.sql.engine import Engine
from priocast.sql.requests import (
    CallProcedure,
    Committed,
    CommitTransaction,
    SqlRequest,
    decode_request,
    decode_verdict,
)
from priocast.trace.transaction_history import APPEND, rank_of
from tools.judge.transaction_table import TransactionTable, decode_answer, encode_transaction
from tools.judge.transactions import Result, Transaction, TransactionAnswer
from tools.judge.witness import WitnessLog

ANSWER_SECONDS = 5.0
_SCHEMA = """
    CREATE TABLE lists (k BIGINT PRIMARY KEY NOT NULL, items TEXT NOT NULL);
    CREATE TABLE registers (k BIGINT PRIMARY KEY NOT NULL, v BIGINT NOT NULL CHECK (v >= 0));
    CREATE TABLE marks (process BIGINT PRIMARY KEY NOT NULL, number BIGINT NOT NULL);
"""
_MARK = "INSERT INTO marks VALUES (?, ?) ON CONFLICT (process) DO UPDATE SET number = excluded.number"
_STATEMENTS = {
    APPEND: "INSERT INTO lists VALUES (?, ?) "
    "ON CONFLICT (k) DO UPDATE SET items = lists.items || ',' || excluded.items",
    "w": "INSERT INTO registers VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    "take": "UPDATE registers SET v = v - ? WHERE k = ? RETURNING k",
    "give": "UPDATE registers SET v = v + ? WHERE k = ? RETURNING k",
}
_LIST = "SELECT items FROM lists WHERE k = ?"
_REGISTER = "SELECT v FROM registers WHERE k = ?"


class TransactionStore(ABC):
    """What the clients of one member use."""

    def __init__(self, replica: Replica[Any]) -> None:
        self.replica = replica

    @abstractmethod
    async def execute(
        self, transaction: Transaction, priority: int, *, another_way: bool
    ) -> TransactionAnswer:
        """Execute a transaction, in the usual way or in another one: what it reads must be the same."""


class ObjectStore(TransactionStore):
    """Transactions are commands; those that only read can also be reads of the replica."""

    def __init__(self, replica: Replica[TransactionTable], staleness_seconds: float) -> None:
        super().__init__(replica)
        self._staleness_seconds = staleness_seconds

    async def execute(
        self, transaction: Transaction, priority: int, *, another_way: bool
    ) -> TransactionAnswer:
        """Have a transaction executed in the order, or read here if that is enough."""
        if another_way and transaction.only_reads:
            return await self.replica.read(
                lambda table: table.read(transaction),
                priority,
                staleness_seconds=self._staleness_seconds,
                timeout_seconds=ANSWER_SECONDS,
            )
        command = encode_transaction(transaction)
        return decode_answer(await self.replica.submit(command, priority, timeout_seconds=ANSWER_SECONDS))


class SqlStore(TransactionStore):
    """Transactions are stored procedures, or interactive; both in the same tables."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.replica)
        self._database = database

    async def execute(
        self, transaction: Transaction, priority: int, *, another_way: bool
    ) -> TransactionAnswer:
        """Call the procedure, or execute the statements one by one; a transfer that is not covered aborts."""
        try:
            if another_way:
                return await self._execute_interactively(transaction, priority)
            position, results = await self._database.call(
                "transact",
                priority=priority,
                timeout_seconds=ANSWER_SECONDS,
                process=transaction.process,
                number=transaction.number,
                steps=json.dumps(transaction.steps),
            )
        except (TransactionAborted, LookupError):  # conflicts, too: it had no effect
            return TransactionAnswer(None, None)
        return TransactionAnswer(rank_of(position), results)

    async def _execute_interactively(self, transaction: Transaction, priority: int) -> TransactionAnswer:
        database = self._database
        async with database.transaction(priority=priority, timeout_seconds=ANSWER_SECONDS) as running:
            results: list[Result] = []
            for step in transaction.steps:
                rows = [(await running.execute(*statement)).fetchall() for statement in _statements_of(*step)]
                results.append(_result_of(step[0], rows))
            if not transaction.only_reads:
                await running.execute(_MARK, (transaction.process, transaction.number))
        if running.position is not None:
            return TransactionAnswer(rank_of(running.position), results)
        return TransactionAnswer(rank_of(running.snapshot, after=True), results)


def transact(cursor: ProcedureCursor, process: int, number: int, steps: str) -> Any:
    """The procedure that executes a transaction: its position, and the result of each step."""
    cursor.execute(_MARK, (process, number))
    results = []
    for step in json.loads(steps):
        rows = [cursor.execute(*statement) for statement in _statements_of(*step)]
        results.append(_result_of(step[0], rows))
    return cursor.at.position, results


def _statements_of(kind: str, key: int, value: int) -> list[tuple[str, tuple[SqlValue, ...]]]:
    if kind == "r":
        return [(_LIST, (key,)), (_REGISTER, (key,))]
    if kind in ("take", "give"):
        return [(_STATEMENTS[kind], (value, key))]
    return [(_STATEMENTS[kind], (key, str(value) if kind == APPEND else value))]


def _result_of(kind: str, rows: list[list[tuple[Any, ...]]]) -> Result:
    """The result of a step; a transfer from or to an account that does not exist is an error."""
    if kind in ("take", "give") and not rows[0]:
        raise LookupError("there is no such account")
    if kind != "r":
        return None
    lists, registers = rows
    if lists:
        return [int(item) for item in lists[0][0].split(",")]
    return int(registers[0][0]) if registers else None


@asynccontextmanager
async def open_object_store(
    witness: WitnessLog, stale_reads: bool, **parameters: Any
) -> AsyncIterator[ObjectStore]:
    """Join the group with a replicated object."""
    table = TransactionTable(witness.record)
    async with open_replica("judged", table, **parameters) as replica:
        yield ObjectStore(replica, math.inf if stale_reads else 0)


@asynccontextmanager
async def open_sql_store(witness: WitnessLog, engine: Engine, **parameters: Any) -> AsyncIterator[SqlStore]:
    """Join the group with a replicated database."""
    database = connect("judged", engine=engine, schema=_SCHEMA, **parameters)
    database.procedure(transact)
    machine = database.replica.machine
    setattr(machine, "apply", _witnessed(machine.apply, witness))  # noqa: B010 - a method, for this one
    async with database:
        yield SqlStore(database)


def _witnessed(
    apply: Callable[[bytes, Applied], bytes], witness: WitnessLog
) -> Callable[[bytes, Applied], bytes]:
    """`apply` of a database that writes down which transactions have committed."""

    def applied(command: bytes, at: Applied) -> bytes:
        verdict = apply(command, at)
        mark = _mark_of(decode_request(command))
        if mark is not None and isinstance(decode_verdict(verdict), Committed):
            witness.record(*mark, at.position)
        return verdict

    return applied


def _mark_of(request: SqlRequest) -> tuple[int, int] | None:
    """The process and number of a transaction."""
    match request:
        case CallProcedure(arguments={"process": process, "number": number}):
            return process, number
        case CommitTransaction(statements=statements):
            marks = [list(each.parameters) for each in statements if each.sql == _MARK]
            return (int(marks[0][0]), int(marks[0][1])) if marks else None
    return None


def engine_of(name: str, address: str) -> Engine:
    """PostgreSQL at an address, or SQLite in memory."""
    if name == "postgresql":
        from priocast.sql.postgres_engine import PostgresEngine

        return PostgresEngine(address)
    from priocast.sql.sqlite_engine import SqliteEngine

    return SqliteEngine()
