"""Scenarios that are written by hand, and what the tests measure in a run."""

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec

from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.simulation.faults import FaultOptions
from priocast.simulation.scenario import NetworkOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.schema import BROADCAST, DELIVERED, NO_POSITION, RECEIVED, SENT, VIEW, GroupEventRow

MILLISECOND = 1_000_000
HIGH, LOW = 1, 0
#: A group with the default membership options has been founded by then.
FOUNDED_US = 50_000


def group(
    messages: tuple[int, ...],
    *,
    rate_per_second: int = 1_000,
    consume_us: int = 0,
    burst: int = 1,
    priorities: tuple[tuple[int, int], ...] = ((HIGH, 1), (LOW, 1)),
    order: str = "sequencer-ub",
    ordering: OrderingOptions | None = None,
    network: NetworkOptions | None = None,
    faults: FaultOptions | None = None,
    seed: int = 1,
    membership: dict[str, Any] | None = None,
    load: dict[str, Any] | None = None,
) -> Scenario:
    """A group of equal members, on a network without faults unless `faults` are given.

    `membership` holds what differs from a primary group with a failure timeout of 100 ms, `load` the other
    options of the workload.
    """
    size = len(messages)
    workload = WorkloadOptions(
        messages=messages,
        rate_per_second=(rate_per_second,) * size,
        consume_us=(consume_us,) * size,
        start_us=(0,) * size,
        broadcast_from_us=FOUNDED_US,
        burst=burst,
        priorities=priorities,
    )
    default = MembershipOptions(founders=size, heartbeat_ms=20, failure_ms=100, slow_ms=60_000)
    return Scenario(
        seed=seed,
        order=order,
        workload=msgspec.structs.replace(workload, **(load or {})),
        membership=msgspec.structs.replace(default, **(membership or {})),
        ordering=ordering or OrderingOptions(),
        network=network or NetworkOptions(latency_us=10),
        faults=faults or FaultOptions(),
    )


def run_without_violation(scenario: Scenario) -> SimulatedRun:
    run = run_scenario(scenario)
    assert [str(violation) for violation in run.violations] == []
    return run


def views_of(run: SimulatedRun, process: str) -> list[str]:
    """The views of an incarnation, as number and members: `2:b#1,c#1`."""
    return [f"{row.view}:{','.join(row.members)}" for row in view_rows(run, process)]


def view_rows(run: SimulatedRun, process: str) -> list[GroupEventRow]:
    """The rows about the views of an incarnation."""
    return [
        row for row in run.group_events if row.event == VIEW and f"{row.member}#{row.incarnation}" == process
    ]


def last_views(run: SimulatedRun, members: str) -> set[str]:
    """The last view of each of these members (a letter each), as the sorted names of its members."""
    last = {row.member: row for row in run.group_events if row.event == VIEW}
    return {"".join(sorted(name.partition("#")[0] for name in last[member].members)) for member in members}


def delivered_by(run: SimulatedRun, process: str) -> list[str]:
    """The messages that an incarnation delivered, in its order."""
    return [
        f"{row.sender}#{row.sender_incarnation}/{row.level}/{number}"
        for row in run.messages
        if row.event == DELIVERED and f"{row.member}#{row.incarnation}" == process
        for number in range(row.first, row.first + row.count)
    ]


def waits_ms(run: SimulatedRun) -> dict[int, list[float]]:
    """By level: how long each message waited between broadcast and delivery, at every member."""
    broadcast_at: dict[tuple[str, int, int], int] = {}
    found: dict[int, list[float]] = defaultdict(list)
    for row in run.messages:
        for number in range(row.first, row.first + row.count):
            key = (row.sender, row.level, number)
            if row.event == BROADCAST:
                broadcast_at[key] = row.time_ns
            elif row.event == DELIVERED:
                found[row.level].append((row.time_ns - broadcast_at[key]) / MILLISECOND)
    return found


def mean(numbers: list[float]) -> float:
    assert numbers
    return sum(numbers) / len(numbers)


class Passage(NamedTuple):
    """When a message entered the orderer's queue, and the position with which it left."""

    level: int
    entered_at: int
    left_as: int


def passages(run: SimulatedRun, orderer: str = "a") -> list[Passage]:
    """When each message entered the orderer's queue and the position with which it left, by position."""
    entered_at: dict[tuple[str, int, int], int] = {}
    found = []
    for row in run.messages:
        if row.member != orderer:
            continue
        for number in range(row.first, row.first + row.count):
            key = (row.sender, row.level, number)
            if row.event == RECEIVED and row.position == NO_POSITION:
                entered_at[key] = row.time_ns
            elif row.event == SENT and row.position != NO_POSITION:
                found.append(Passage(row.level, entered_at[key], row.position + number - row.first))
    return found


def overtakings(run: SimulatedRun) -> list[tuple[Passage, Passage]]:
    """All pairs of a message and one that entered the orderer's queue later and left it earlier."""
    order = passages(run)
    return [
        (overtaken, overtaker)
        for index, overtaken in enumerate(order)
        for overtaker in order[:index]
        if overtaker.entered_at > overtaken.entered_at
    ]
