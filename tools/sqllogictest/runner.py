"""Executes the records of a file at a group of replicas, by turns, and compares the replicas in the end."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from priocast.core.errors import PriocastError
from priocast.network.memory import MemoryHub
from priocast.sql import Database, connect
from priocast.sql.engine import Engine
from priocast.sql.statements import shortened
from tools.sqllogictest.records import LogicRecord, difference, hash_of, result_values


@dataclass
class LogicReport:
    """How much was executed, and what was `found` that is not as expected."""

    statements: int = 0
    queries: int = 0
    found: list[str] = field(default_factory=list)


async def run_records(records: Iterable[LogicRecord], engines: Sequence[Engine]) -> LogicReport:
    """Execute records by turns at the members of a group; in the end all copies must be equal."""
    hub = MemoryHub()
    members = [
        connect("logic", member=f"m{number}", engine=engine, hub=hub, size=len(engines))
        for number, engine in enumerate(engines)
    ]
    report, labels = LogicReport(), dict[str, str]()
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(member) for member in members))
        for number, record in enumerate(records):
            why = await _run(record, members[number % len(members)], labels)
            report.queries += record.is_query
            report.statements += not record.is_query
            if why:
                report.found.append(f"line {record.line}: {why} ({shortened(record.sql)})")
        for member in members:
            await member.query("SELECT 1")
        copies = [list(member.replica.machine.engine.dump()) for member in members]
        if any(copy != copies[0] for copy in copies):
            report.found.append("the copies differ")
    return report


async def _run(record: LogicRecord, member: Database, labels: dict[str, str]) -> str:
    """Execute a record; returns what is wrong with its result."""
    try:
        result = await member.execute(record.sql)
    except PriocastError as error:
        return "" if record.fails else f"failed: {error}"
    if record.fails:
        return "succeeded, and should have failed"
    if not record.is_query:
        return ""
    values = result_values(record, result.fetchall())
    if record.label and labels.setdefault(record.label, hash_of(values)) != hash_of(values):
        return f"another result than the one before with the label {record.label}"
    return difference(record, values) if record.expected or not record.label else ""
