"""Three runs: the same work prioritised at half load, and plain and prioritised under overload."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from priocast.core.protocol import OrderingOptions
from priocast.study.overload_worker import OverloadProgress, OverloadTask
from priocast.study.workload import Workload
from priocast.testing.process_group import WorkerProgram, loopback_members, run_tasks

HALF_LOAD = 0.5
_WORKER = WorkerProgram("priocast.study.overload_worker", OverloadProgress)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its name, its workload, and its ordering protocol and options."""

    name: str
    title: str
    workload: Workload
    order: str
    options: OrderingOptions


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    name: str
    messages: int
    members: int
    same_digest: bool
    late_ms_p99: float


def plan(workload: Workload, order: str, options: OrderingOptions) -> list[PlannedRun]:
    """The runs to compare: prioritised at half load; plain and prioritised under overload."""
    plain = msgspec.structs.replace(options, prioritised=False)
    half = msgspec.structs.replace(workload, load=HALF_LOAD)
    overload = f"{workload.load:g} x the saturating load"
    return [
        PlannedRun(
            name="prioritised-half-load",
            title=f"prioritised, {HALF_LOAD:g} x the saturating load",
            workload=half,
            order=order,
            options=options,
        ),
        PlannedRun(name="plain", title=f"plain, {overload}", workload=workload, order=order, options=plain),
        PlannedRun(
            name="prioritised",
            title=f"prioritised, {overload}",
            workload=workload,
            order=order,
            options=options,
        ),
    ]


def carry_out(
    planned: PlannedRun, traces: Path, on_progress: Callable[[int], None], admins: Sequence[str] = ()
) -> FinishedRun:
    """Carry out one run on processes of this machine, over TCP on the loopback network.

    `admins` are addresses for the live pages of the members, if they shall have one.
    """
    tasks = [
        OverloadTask(
            **member,
            run=planned.name,
            order=planned.order,
            options=planned.options,
            workload=planned.workload,
            trace=str(traces / planned.name),
            labels={"title": planned.title, "load": f"{planned.workload.load:g}"},
            admin=admins[index] if admins else None,
        )
        for index, member in enumerate(loopback_members(planned.workload.members))
    ]
    results = run_tasks(_WORKER, tasks, on_progress)
    return FinishedRun(
        name=planned.name,
        messages=planned.workload.total,
        members=planned.workload.members,
        same_digest=len({result.digest for result in results}) == 1,
        late_ms_p99=max(result.late_ms_p99 for result in results),
    )
