"""A group of real replicas with clients, under faults, whose history is recorded."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import msgspec

from priocast.membership.options import MembershipOptions
from priocast.testing.addresses import free_addresses
from priocast.testing.postgres_server import end_connections
from priocast.testing.process_group import WorkerProgram
from tools.judge.recorder import merge_history
from tools.judge.transactions import first_turn
from tools.judge.worker import JudgedReport, JudgedTask
from tools.namespaces import namespaces, unavailable
from tools.soak.faults import FAULTS, NAMES, PATIENCE_SECONDS, Fault, FaultyGroup
from tools.viewed_group import ViewedGroup

FAILURE_SECONDS = 1.0
#: The disk of a member has nothing but its part of the history.
_NOT_FOR_REPLICAS = ("change of order", "disk full")
_PROCESSES_PER_START = 100_000
_QUIET_SECONDS_MAX = 2.0
_LEAVE_SECONDS = 60.0
_PROGRAM = WorkerProgram("tools.judge.worker", JudgedReport, (str(Path(__file__).parents[2]),))


class JudgedGroup(ViewedGroup[JudgedReport]):
    """Members by name; each start of one records its events in a file of its own."""

    def __init__(
        self,
        addresses: dict[str, str],
        task: JudgedTask,
        directory: Path,
        within: Callable[[str], Sequence[str]] = lambda _: (),
        databases: dict[str, str] | None = None,
    ) -> None:
        super().__init__(_PROGRAM, within)
        self.files: list[Path] = []
        self.witness: list[Path] = []
        self._addresses = addresses
        self._databases = databases or {}
        self._task = task
        self._directory = directory
        self._answered_before = 0

    def start(self, *names: str, clock_ms: int = 0) -> None:
        """Start members, or start them again; their clocks are ahead by this time, or behind."""
        for name in names:
            if name in self.members:
                self._answered_before += _answered(self.members[name].reports)
            address, starts = self._addresses[name], len(self.files)
            self.files.append(self._directory / f"{starts:05}-{name}.events")
            self.witness.append(self._directory / f"{starts:05}-{name}.witness")
            self.start_member(
                msgspec.structs.replace(
                    self._task,
                    member=name,
                    listen=address,
                    peers=[other for other in self._addresses.values() if other != address],
                    events=str(self.files[-1]),
                    witness=str(self.witness[-1]),
                    address=self._databases.get(name, ""),
                    first_process=starts * _PROCESSES_PER_START,
                    first_turn=first_turn(self.answered, len(self._addresses) * self._task.clients),
                    opens_bank=self._task.workload == "bank" and not starts,
                    clock_ms=clock_ms,
                )
            )

    @property
    def answered(self) -> int:
        """How many transactions were answered so far, in all starts of all members."""
        running = (_answered(member.reports) for member in self.members.values())
        return self._answered_before + sum(running)

    def finish(self) -> None:
        """Let all clients end their transactions, and all members leave."""
        members = list(self.members.values())
        self.write_line(b"finish")
        self.wait(
            lambda: all(any(report.finished for report in member.reports) for member in members),
            PATIENCE_SECONDS,
            "an end of all transactions",
        )
        self.leave(_LEAVE_SECONDS)


def _answered(reports: Sequence[JudgedReport]) -> int:
    return reports[-1].delivered if reports else 0


class JudgedRun:
    """One run: transactions and faults until enough were answered, and the history of it."""

    def __init__(
        self, task: JudgedTask, directory: Path, *, cuts: bool = True, databases: dict[str, str] | None = None
    ) -> None:
        self.faults: list[str] = []
        self._databases = databases
        self._task = task
        self._directory = directory
        self._random = Random(task.seed)  # noqa: S311 - the seed repeats the faults
        self._cuts = cuts and unavailable() is None

    def record(self, transactions: int, faults: int | None, on_progress: Callable[[int], None]) -> Path:
        """Execute at least this many transactions while this many faults happen; returns the history's path.

        Without `faults`, they happen until the end.
        """
        with self._group() as (group, faulty):
            while group.answered < transactions or len(self.faults) < (faults or 0):
                if faults is None or len(self.faults) < faults:
                    self._inject(faulty)
                else:
                    time.sleep(0.05)
                    group.check_running()
                on_progress(group.answered)
            group.finish()
        history = self._directory / "history.edn"
        started = [path for path in group.files if path.exists()]
        merge_history(started, [path for path in group.witness if path.exists()], history)
        return history

    def _inject(self, faulty: FaultyGroup) -> None:
        possible = [
            fault
            for fault in FAULTS
            if fault.name not in _NOT_FOR_REPLICAS and (self._cuts or not fault.cuts)
        ]
        if self._databases:
            possible.append(Fault("kill database", self._kill_database))
        time.sleep(self._random.uniform(0, _QUIET_SECONDS_MAX))
        fault = self._random.choice(possible)
        fault.inject(faulty, self._random)
        self.faults.append(fault.name)
        faulty.wait_view(NAMES)

    def _kill_database(self, faulty: FaultyGroup, random: Random) -> str:
        """The server ends all it does for a member, whose replica stops and is started again."""
        assert self._databases is not None
        victim = random.choice(NAMES)
        end_connections(self._databases[victim])
        member = faulty.group.members[victim]
        faulty.group.wait(lambda: member.has_ended, PATIENCE_SECONDS, f"the end of {victim}")
        faulty.start(victim)
        return victim

    @contextmanager
    def _group(self) -> Iterator[tuple[JudgedGroup, FaultyGroup]]:
        with ExitStack() as stack:
            network = stack.enter_context(namespaces(NAMES)) if self._cuts else None
            loopback = dict(zip(NAMES, map(str, free_addresses(len(NAMES))), strict=True))
            group = JudgedGroup(
                network.addresses if network else loopback,
                self._task,
                self._directory,
                network.within if network else lambda _: (),
                self._databases,
            )
            stack.enter_context(group)
            group.start(*NAMES)
            group.wait_view(NAMES, PATIENCE_SECONDS)
            yield group, FaultyGroup(group, network, FAILURE_SECONDS)


def judged_task(
    workload: str, clients: int, seed: int, *, engine: str = "object", stale_reads: bool = False
) -> JudgedTask:
    """What all members of a run have in common; `stale_reads` is a fault that the judge must find."""
    membership = MembershipOptions(
        founders=len(NAMES), heartbeat_ms=60, failure_ms=1000 * FAILURE_SECONDS, slow_ms=10_000
    )
    return JudgedTask(
        member="",
        listen="",
        peers=[],
        workload=workload,
        clients=clients,
        seed=seed,
        membership=membership,
        engine=engine,
        stale_reads=stale_reads,
    )
