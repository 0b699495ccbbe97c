"""One replica with its clients, as a process of its own: `python -m tools.judge.worker`, started by the tool.

It reports its views and its progress as members under load do. It obeys lines on standard input: `clock MS`
sets its clock ahead, and `finish` lets the clients end their transactions.
"""

import asyncio
import os
import time
import traceback
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from random import Random

from priocast.core.errors import DatabaseUnusable, GroupClosed, PriocastError
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT
from priocast.membership.options import MembershipOptions
from priocast.testing.worker import MemberTask, read_line, report, run_worker
from tools.judge.recorder import EventRecorder
from tools.judge.stores import TransactionStore, engine_of, open_object_store, open_sql_store
from tools.judge.transactions import Client, Transaction, opening
from tools.judge.witness import WitnessLog
from tools.load_worker import LoadReport, set_clock

_POLL_SECONDS = 0.05
_START_SECONDS = 120.0
_RETRY_SECONDS = 0.1
_PRIORITIES = (BACKGROUND, ROUTINE, ROUTINE, URGENT)


class JudgedTask(MemberTask, frozen=True, kw_only=True):
    """The task of one member: its clients use processes from `first_process` on."""

    workload: str
    clients: int
    seed: int
    membership: MembershipOptions
    events: str = ""
    witness: str = ""
    engine: str = "object"
    address: str = ""
    first_process: int = 0
    first_turn: int = 0
    opens_bank: bool = False
    clock_ms: int = 0
    stale_reads: bool = False


class JudgedReport(LoadReport, frozen=True, kw_only=True):
    """A report; `delivered` counts answers. `finished`: all clients have ended."""

    finished: bool = False


def open_store(task: JudgedTask, witness: WitnessLog) -> AbstractAsyncContextManager[TransactionStore]:
    """Join the group with what the transactions are executed on."""
    parameters = {
        "member": task.member,
        "listen": task.listen,
        "peers": task.peers,
        "membership": task.membership,
        "start_seconds": _START_SECONDS,
    }
    if task.engine == "object":
        return open_object_store(witness, task.stale_reads, **parameters)
    return open_sql_store(witness, engine_of(task.engine, task.address), **parameters)


class JudgedMember:
    """The clients of one replica, and what they report."""

    def __init__(self, task: JudgedTask, store: TransactionStore) -> None:
        self._task = task
        self._store = store
        self._recorder = EventRecorder(Path(task.events))
        self._processes = count(task.first_process)
        self._answered = 0
        self._finishing = False

    async def run(self) -> None:
        """Run the clients until the parent says `finish`, then answer what it asks until it leaves."""
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow())
            clients = [tasks.create_task(self._run_client(index)) for index in range(self._task.clients)]
            while line := await read_line():
                match line.decode().split():
                    case ["clock", milliseconds]:
                        set_clock(int(milliseconds))
                    case ["finish"]:
                        self._finishing = True
                        await asyncio.gather(*clients)
                        self._report("finished", finished=True)
            self._finishing = True
            following.cancel()
        self._recorder.close()

    async def _run_client(self, index: int) -> None:
        """One transaction after the other; a process ends with the first whose outcome is unknown."""
        task = self._task
        random = Random(f"{task.seed} {task.first_process} {index}")  # noqa: S311 - the seed repeats it
        client = Client(task.workload, random, task.first_turn)
        process, number = next(self._processes), 0
        if task.opens_bank and index == 0:
            number = await self._try(opening(process), random)
        while not self._finishing:
            if number < 0:
                process, number = next(self._processes), 0
                await asyncio.sleep(_RETRY_SECONDS)
            number = await self._try(client.next(process, number), random)

    async def _try(self, transaction: Transaction, random: Random) -> int:
        """Execute a transaction and record it; returns the next number, or -1 if the outcome is unknown."""
        self._recorder.invoke(transaction)
        try:
            answer = await self._store.execute(
                transaction, random.choice(_PRIORITIES), another_way=random.random() < 0.5
            )
        except PriocastError as error:
            self._recorder.unknown(transaction)
            if isinstance(error, GroupClosed | DatabaseUnusable):
                raise  # the replica has stopped, and so does this process
            return -1
        self._recorder.answer(transaction, answer)
        self._answered += 1
        return transaction.number + 1

    async def _follow(self) -> None:
        """Report views, evictions and progress."""
        shown: tuple[str, ...] = ()
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            replica = self._store.replica
            view = replica.view if replica.is_current else None
            members = tuple(str(member) for member in view.members) if view else ()
            if members != shown:
                shown = members
                self._report("view" if members else "evicted", members=list(members))
            else:
                self._report("progress")

    def _report(self, kind: str, *, members: list[str] | None = None, finished: bool = False) -> None:
        report(
            JudgedReport(
                time_ns=time.monotonic_ns(),
                kind=kind,
                delivered=self._answered,
                members=members or [],
                finished=finished,
            )
        )


async def work(task: JudgedTask) -> None:
    """Join, and let the clients work until the parent ends standard input."""
    set_clock(task.clock_ms)
    witness = WitnessLog(Path(task.witness))
    try:
        async with open_store(task, witness) as store:
            await JudgedMember(task, store).run()
    except Exception:
        traceback.print_exc()
        os._exit(1)  # at once: a thread of this process may still wait for a line
    witness.close()


if __name__ == "__main__":
    run_worker(JudgedTask, work)
