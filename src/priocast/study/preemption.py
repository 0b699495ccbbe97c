"""A demo of preemption: an urgent command in the middle of queues of hundreds, in three orders.

With re-ordering the urgent command overtakes all queued commands that no replica has started. With a
prioritised sequencer it overtakes commands that have no position yet; those in the window go before it. In a
plain group it waits for all earlier commands.
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
    """The workload of the drill: the number of commands in all, and the time that each takes."""

    members: int = 4
    commands: int = 200
    handling_ms: float = 50.0
    urgent_during: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.members <= REPLICAS_MAX:
            raise InvalidOption(f"members is {self.members}: from 1 to {REPLICAS_MAX}")
        if not self.urgent_during < self.commands <= COMMANDS_MAX:
            raise InvalidOption(
                f"commands is {self.commands}: it must be above {self.urgent_during}, when the urgent "
                f"command is broadcast, and at most {COMMANDS_MAX:,}"
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
    """The result at one replica: commands started between broadcast and execution, and the time.

    `longest_stall_ms` is how long queued commands waited until the urgent one had its position.
    """

    replica: str
    began: int
    waited_ms: float
    longest_stall_ms: float


class FinishedDrill(msgspec.Struct, frozen=True):
    """The result of one run.

    `avoidable` are the commands before the urgent one that no replica had started when it was broadcast;
    `overtaken` are those after it.
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
    """Run the drill on processes of this machine, over TCP on the loopback network."""
    tasks = [
        PreemptionTask(
            **member,
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
    """Combine the reports of all replicas, which share one clock."""
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
