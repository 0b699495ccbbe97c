"""The study of aborts: the same requests to a plain and to a prioritised group, and which of them abort.

Requests come in rounds, at a fixed interval; those of a round are submitted together, by all replicas in turn
(as when a sale opens). Each round has items of its own, so rounds do not depend on each other, and the fewest
aborts that any order of a round could have are known. All replicas are in this process, each with a database
of its own; between them is the memory network.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption, TransactionAborted
from priocast.core.protocol import WINDOW_MAX, OrderingOptions
from priocast.network.memory import MemoryHub
from priocast.sql import connect
from priocast.sql.database import Database
from priocast.sql.engine import Engine
from priocast.study.abort_workloads import WORKLOADS, AbortRequest, AbortWorkload, fewest_aborts, items_of

INTERVAL_SECONDS = 0.25
RATE_MIN, RATE_MAX = 8, 4000
REPLICAS_MAX = 16
ROUNDS_MAX = 10_000
VARIANTS = {"plain": False, "prioritised": True}


class AbortPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured: all combinations of workloads, numbers of replicas and rates, in so many rounds.

    What is ordered is not overtaken any more, so the smaller the `window`, the more priorities can do.
    """

    workloads: tuple[str, ...] = tuple(WORKLOADS)
    replicas: tuple[int, ...] = (3, 5)
    rates: tuple[int, ...] = (100, 400)
    rounds: int = 20
    window: int = 8
    seed: int = 1

    def __post_init__(self) -> None:
        if unknown := [name for name in self.workloads if name not in WORKLOADS]:
            raise InvalidOption(f"there is no workload {unknown[0]!r}: choose among {', '.join(WORKLOADS)}")
        if not all(2 <= count <= REPLICAS_MAX for count in self.replicas):
            raise InvalidOption(f"replicas is {self.replicas}: from 2 to {REPLICAS_MAX}")
        if not all(RATE_MIN <= rate <= RATE_MAX for rate in self.rates):
            raise InvalidOption(f"rates is {self.rates}: from {RATE_MIN} to {RATE_MAX} transactions a second")
        if not 1 <= self.window <= WINDOW_MAX:
            raise InvalidOption(f"window is {self.window}: from 1 to {WINDOW_MAX:,}")
        if not 1 <= self.rounds <= ROUNDS_MAX:
            raise InvalidOption(f"rounds is {self.rounds}: from 1 to {ROUNDS_MAX:,}")

    def cells(self) -> Iterator["AbortCell"]:
        """All combinations."""
        for workload in self.workloads:
            for replicas in self.replicas:
                for rate in self.rates:
                    for variant in VARIANTS:
                        yield AbortCell(workload, replicas, rate, variant)


class AbortCell(msgspec.Struct, frozen=True, order=True):
    """One combination: a group that is measured."""

    workload: str
    replicas: int
    rate: int
    variant: str

    @property
    def round_size(self) -> int:
        """How many requests a round has."""
        return max(2, round(self.rate * INTERVAL_SECONDS))


class AbortRow(msgspec.Struct, frozen=True):
    """One request: what became of it, and how long the answer took. `best` is that of its whole round."""

    round: int
    replica: int
    procedure: str
    favoured: bool
    committed: bool
    took_ns: int
    best_aborts: int


MakeEngine = Callable[[], Engine]


async def measure_cell(
    plan: AbortPlan, cell: AbortCell, make_engine: MakeEngine, on_round: Callable[[], None]
) -> list[AbortRow]:
    """Run the rounds of one cell; both variants of it get the same requests."""
    workload, rng = WORKLOADS[cell.workload], random.Random(plan.seed)  # noqa: S311 (seeded, not secret)
    async with AsyncExitStack() as stack:
        databases = await _open(workload, cell, plan.window, make_engine, stack)
        items = items_of(cell.round_size)
        rows: list[AbortRow] = []
        for number in range(plan.rounds):
            first = 1 + number * items
            for item in range(first, first + items):
                await databases[0].execute(workload.fill, {"id": item, "value": workload.initial})
            requests = workload.round_of(rng, first, cell.round_size)
            best = fewest_aborts(requests, workload.initial)
            began = time.monotonic()
            rows += await asyncio.gather(
                *(_submit(databases, number, index, each, best) for index, each in enumerate(requests))
            )
            on_round()
            await asyncio.sleep(max(0.0, began + INTERVAL_SECONDS - time.monotonic()))
    return rows


async def _open(
    workload: AbortWorkload, cell: AbortCell, window: int, make_engine: MakeEngine, stack: AsyncExitStack
) -> list[Database]:
    hub = MemoryHub()
    databases = [
        connect(
            workload.name,
            member=f"r{number}",
            engine=make_engine(),
            hub=hub,
            size=cell.replicas,
            schema=workload.schema,
            priorities=workload.policy,
            options=OrderingOptions(prioritised=VARIANTS[cell.variant], window=window),
        )
        for number in range(cell.replicas)
    ]
    for database in databases:
        for name, sql in workload.procedures.items():
            database.procedure(name, sql)
        stack.push_async_exit(database)
    await asyncio.gather(*(database.__aenter__() for database in databases))
    return databases


async def _submit(
    databases: list[Database], number: int, index: int, request: AbortRequest, best: int
) -> AbortRow:
    replica, began, committed = index % len(databases), time.monotonic_ns(), True
    try:
        await databases[replica].call(request.procedure, **request.arguments)
    except TransactionAborted:
        committed = False
    took_ns = time.monotonic_ns() - began
    return AbortRow(number, replica, request.procedure, request.favoured, committed, took_ns, best)


def store_rows(path: Path, database: str, cell: AbortCell, rows: list[AbortRow]) -> None:
    """Write the rows of a cell to a Parquet file, for the pipeline."""
    import pyarrow
    from pyarrow import parquet

    of_cell = {"database": database, **msgspec.structs.asdict(cell)}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(
        pyarrow.Table.from_pylist([of_cell | msgspec.structs.asdict(row) for row in rows]), path
    )
