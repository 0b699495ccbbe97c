"""What a message costs under each protocol: hops and frames, counted in the simulator.

Every frame between two processes takes the same time and processing takes none, so the delivery time of a
message is a number of hops, and frames that carry packets can be counted. Acknowledgements of links and
heartbeats are not counted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.links.frame import Frame
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
_PART_MS = 0.001
_SILENCE_MS = 0.001


class Arrival(NamedTuple):
    """A packet arrived at another process."""

    time_us: int
    source: str
    target: str
    packet: str


class SingleMessage(NamedTuple):
    """One message in an idle group: hops until the last member delivered it, and the packets."""

    hops: int
    arrivals: list[Arrival]


class MessageCosts(NamedTuple):
    """What a message costs in a group of one size; a single message is sent by the coordinator or another."""

    members: int
    from_coordinator: SingleMessage
    from_other: SingleMessage
    frames_spaced: float
    frames_in_bursts: float


def measure_costs(order: str, members: int) -> MessageCosts:
    """Count what a message costs: by itself, in a stream from all members, and in bursts."""
    size = range(members)
    spaced = tuple(_STREAM_MESSAGES for _ in size)
    bursts = tuple(_BURST for _ in size)
    return MessageCosts(
        members,
        send_one(order, members, 0),
        send_one(order, members, min(1, members - 1)),
        _frames_per_message(order, spaced, burst=1),
        _frames_per_message(order, bursts, burst=_BURST),
    )


def send_one(order: str, members: int, sender: int) -> SingleMessage:
    """Send one message through an idle group; parts end, and silent members answer, after 1 microsecond."""
    messages = tuple(int(index == sender) for index in range(members))
    run, arrivals = _run(order, messages, burst=1, part_ms=_PART_MS, acknowledge_ms=_SILENCE_MS)
    sent_us = min(row.time_ns for row in run.rows if row.event == BROADCAST) // 1_000
    delivered_us = [row.time_ns // 1_000 for row in run.rows if row.event == DELIVERED]
    hops = round((max(delivered_us) - sent_us) / LATENCY_US)
    return SingleMessage(hops, [arrival for arrival in arrivals if arrival.time_us > sent_us])


def _frames_per_message(order: str, messages: tuple[int, ...], burst: int) -> float:
    _, arrivals = _run(order, messages, burst)
    return len(arrivals) / sum(messages)


def _run(
    order: str, messages: tuple[int, ...], burst: int, **options: float
) -> tuple[SimulatedRun, list[Arrival]]:
    """Run a group without faults in which only the network takes time."""
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
        raise AssertionError(f"{order} violates a guarantee without any fault: {run.violations[0]}")
    return run, arrivals


def _packet_name(body: bytes) -> str:
    name: str = msgspec.msgpack.decode(body)[0]
    return name


def steps(arrivals: list[Arrival]) -> Iterator[tuple[int, str, list[str], str]]:
    """The packets as steps of a diagram: hop, sender, receivers, packet; a packet to several is one step."""
    first = min((arrival.time_us for arrival in arrivals), default=0)
    by_step: dict[tuple[int, str, str], list[str]] = {}
    for arrival in arrivals:
        hop = round((arrival.time_us - first) / LATENCY_US) + 1
        by_step.setdefault((hop, arrival.source, arrival.packet), []).append(arrival.target)
    for (hop, source, packet), targets in by_step.items():
        yield hop, source, targets, packet
