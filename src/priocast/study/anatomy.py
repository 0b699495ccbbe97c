"""The anatomy of a protocol: what its messages cost, counted in the simulator.

Every frame between two processes takes the same time and processors take none, so the time until a message is
delivered is a number of hops, and the frames that carry packets can be counted one by one. What links and
membership say for themselves (acknowledgements, signs of life) is not counted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.links.fifo_link import Frame
from priocast.membership.datagrams import CHANNEL
from priocast.membership.options import MembershipOptions
from priocast.simulation.scenario import NetworkOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.schema import BROADCAST, DELIVERED

LATENCY_US = 1_000
_QUIET_US = 100_000
_SPACED_PER_SECOND = 4
_STREAM_MESSAGES = 20
_BURST = 64
_SOON_MS = 0.001


class Arrival(NamedTuple):
    """A packet came to a process of another name."""

    time_us: int
    source: str
    target: str
    packet: str


class Alone(NamedTuple):
    """What became of one message in an idle group: hops until the last member delivered it, and packets."""

    hops: int
    arrivals: list[Arrival]


class Anatomy(NamedTuple):
    """What a message costs in a group of one size; `alone` by who sends it: the coordinator, or another."""

    members: int
    alone_of_coordinator: Alone
    alone_of_other: Alone
    frames_spaced: float
    frames_in_bursts: float


def dissect(order: str, members: int) -> Anatomy:
    """Count what a message costs: alone, in a stream of single ones from all, and in bursts."""
    size = range(members)
    spaced = tuple(_STREAM_MESSAGES for _ in size)
    bursts = tuple(_BURST for _ in size)
    return Anatomy(
        members,
        alone(order, members, 0),
        alone(order, members, min(1, members - 1)),
        _frames_per_message(order, spaced, burst=1),
        _frames_per_message(order, bursts, burst=_BURST),
    )


def alone(order: str, members: int, sender: int) -> Alone:
    """Send one message through an idle group; where it has to wait for the end of a part, that is soon."""
    messages = tuple(int(index == sender) for index in range(members))
    run, arrivals = _run(order, messages, burst=1, part_ms=_SOON_MS)
    said_us = min(row.time_ns for row in run.rows if row.event == BROADCAST) // 1_000
    heard_us = [row.time_ns // 1_000 for row in run.rows if row.event == DELIVERED]
    hops = round((max(heard_us) - said_us) / LATENCY_US)
    return Alone(hops, [arrival for arrival in arrivals if arrival.time_us > said_us])


def _frames_per_message(order: str, messages: tuple[int, ...], burst: int) -> float:
    _, arrivals = _run(order, messages, burst)
    return len(arrivals) / sum(messages)


def _run(
    order: str, messages: tuple[int, ...], burst: int, **options: float
) -> tuple[SimulatedRun, list[Arrival]]:
    """Run a group without faults, in which nothing but the network takes time."""
    arrivals: list[Arrival] = []

    def tap(time_ns: int, source: ProcessId, target: str, frame: Frame) -> None:
        if frame.channel != CHANNEL and frame.body:
            arrivals.append(Arrival(time_ns // 1_000, source.name, target, _packet_name(frame.body)))

    members = len(messages)
    run = run_scenario(
        Scenario(
            seed=0,
            order=order,
            ordering=OrderingOptions(window=1_024, **options),  # type: ignore[arg-type]
            membership=MembershipOptions(founders=members),
            network=NetworkOptions(latency_us=LATENCY_US),
            workload=WorkloadOptions(
                messages=messages,
                rate_per_second=(_SPACED_PER_SECOND * burst,) * members,
                consume_us=(0,) * members,
                start_us=(0,) * members,
                broadcast_from_us=_QUIET_US,
                burst=burst,
            ),
        ),
        tap,
    )
    if run.violations:
        raise AssertionError(f"{order} broke a promise without any fault: {run.violations[0]}")
    return run, arrivals


def _packet_name(body: bytes) -> str:
    name: str = msgspec.msgpack.decode(body)[0]
    return name


def steps(arrivals: list[Arrival]) -> Iterator[tuple[int, str, list[str], str]]:
    """The same packets as a person tells them: at which hop who told whom what; to several is one step."""
    first = min((arrival.time_us for arrival in arrivals), default=0)
    told: dict[tuple[int, str, str], list[str]] = {}
    for arrival in arrivals:
        hop = round((arrival.time_us - first) / LATENCY_US) + 1
        told.setdefault((hop, arrival.source, arrival.packet), []).append(arrival.target)
    for (hop, source, packet), targets in told.items():
        yield hop, source, targets, packet
