"""A demo of preemption: an urgent command in the middle of queues of hundreds, in three orders.

With re-ordering the urgent command overtakes what is queued at the replicas, unless one of them has begun it.
A prioritised sequencer lets it overtake what has no place yet; what is in the window goes before it. In a
plain group it waits for all that was broadcast before.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.study.preemption_worker import PreemptionReport, PreemptionTask
from priocast.testing.process_group import WorkerProgram, loopback_members, run_tasks

REPLICAS_MAX = 16
COMMANDS_MAX = 10_000
HANDLING_MS_MAX = 60_000
_WORKER = WorkerProgram("priocast.study.preemption_worker", PreemptionReport)


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """What the replicas of a run do: so many commands in all, each takes so long."""

    members: int = 4
    commands: int = 200
    handling_ms: float = 50.0
    urgent_during: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.members <= REPLICAS_MAX:
            raise InvalidOption(f"members is {self.members}: from 1 to {REPLICAS_MAX}")
        if not self.urgent_during < self.commands <= COMMANDS_MAX:
            raise InvalidOption(
                f"commands is {self.commands}: it must be at most {COMMANDS_MAX:,}, and above "
                f"{self.urgent_during}, during which the urgent one is broadcast"
            )
        if not 0 < self.handling_ms <= HANDLING_MS_MAX:
            raise InvalidOption(
                f"handling_ms is {self.handling_ms:g}: it must be above 0, and at most {HANDLING_MS_MAX:,}"
            )

    def share(self, index: int) -> int:
        """How many commands a replica broadcasts."""
        return self.commands // self.members + (index < self.commands % self.members)


class PlannedDrill(msgspec.Struct, frozen=True):
    """One run of the drill."""

    name: str
    title: str
    order: str
    options: OrderingOptions


RUNS = (
    PlannedDrill("reorder", "reorder", "reorder", OrderingOptions()),
    PlannedDrill("sequencer-ub", "sequencer-ub, prioritised", "sequencer-ub", OrderingOptions()),
    PlannedDrill("plain", "sequencer-ub, plain", "sequencer-ub", OrderingOptions(prioritised=False)),
)


class Preemption(msgspec.Struct, frozen=True):
    """What one replica did: how many commands it began between broadcast and execution, and the time.

    `longest_stall_ms` is how long it held up queued commands until the urgent one had its place.
    """

    replica: str
    began: int
    waited_ms: float
    longest_stall_ms: float


class FinishedDrill(msgspec.Struct, frozen=True):
    """What came of one run.

    `avoidable` are the commands before the urgent one that nobody had begun when it was broadcast;
    `overtaken` those after it.
    """

    name: str
    title: str
    replicas: list[Preemption]
    avoidable: int
    overtaken: int
    same_digest: bool


def carry_out(
    planned: PlannedDrill, drill: Drill, traces: Path, on_progress: Callable[[int], None]
) -> FinishedDrill:
    """Do one run on real processes of this machine, over TCP on the loopback address."""
    tasks = [
        PreemptionTask(
            member=member.member,
            listen=member.listen,
            peers=member.peers,
            run=planned.name,
            order=planned.order,
            options=planned.options,
            commands=drill.share(index),
            total=drill.commands + 1,
            handling_ms=drill.handling_ms,
            urgent_during=drill.urgent_during if index == drill.members - 1 else 0,
            trace=str(traces / planned.name),
            labels={"title": planned.title},
        )
        for index, member in enumerate(loopback_members(drill.members))
    ]
    executed = run_tasks(_WORKER, tasks, on_progress)
    return finished(planned, [task.member for task in tasks], executed)


def finished(
    planned: PlannedDrill, names: Sequence[str], executed: Sequence[PreemptionReport]
) -> FinishedDrill:
    """Put together what the replicas of a run noted; they tell the time by one clock."""
    sent = max(each.sent_ns for each in executed)
    replicas = [
        Preemption(
            name,
            sum(begun > sent for begun in each.begun_ns[: each.urgent]),
            (each.begun_ns[each.urgent] - sent) / 1e6,
            each.longest_stall_ms,
        )
        for name, each in zip(names, executed, strict=True)
    ]
    before = zip(*(each.begun_ns[: each.urgent] for each in executed), strict=False)
    return FinishedDrill(
        planned.name,
        planned.title,
        replicas,
        avoidable=sum(min(begun) > sent for begun in before),
        overtaken=max(len(each.begun_ns) - 1 - each.urgent for each in executed),
        same_digest=len({each.digest for each in executed}) == 1,
    )
