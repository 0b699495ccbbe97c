"""Saturation curves in the simulator: a group with a model of processors, network interfaces and distances.

A frame keeps a process busy for 20 us, a message for another 1 us and a byte for 1 ns: about what the
sources take on the machine of `docs/performance`. Interfaces send 1 Gbit/s on the LAN and 100 Mbit/s
between regions. These are assumptions: they decide where an order saturates, and are the same for all.
"""

from collections import defaultdict, deque

from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.links.frame import RELIABLE_NETWORK
from priocast.membership.options import MembershipOptions
from priocast.simulation.scenario import NetworkOptions, ProcessorOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.simulation.workload import planned_broadcasts
from priocast.study.saturation import (
    BURSTS,
    LAN,
    WAN,
    Deliveries,
    SaturationCell,
    SaturationPlan,
    SaturationResult,
    counted_period,
    rate_of,
    result_of_members,
)
from priocast.study.wan import REGIONS, region_latencies
from priocast.trace.schema import BROADCAST, DELIVERED

PROCESSOR = ProcessorOptions(frame_us=20, message_ns=1_000, byte_ns=1)
#: Weights of the priorities, as in `workload.MIX`.
_PRIORITIES = ((URGENT, 2), (ELEVATED, 18), (ROUTINE, 50), (BACKGROUND, 30))
_BANDWIDTHS = {LAN: 125_000_000, WAN: 12_500_000}
_LAN_LATENCY_US, _LAN_SPREAD_US, _WAN_SPREAD_US = 50, 20, 1_000
_FOUNDED_US = 20_000_000
_Key = tuple[str, int, int]


def assumptions() -> list[str]:
    """What the simulator assumes, in sentences for a report."""
    frame_us, message_us, byte_ns = PROCESSOR.frame_us, PROCESSOR.message_ns / 1_000, PROCESSOR.byte_ns
    lan, wan = (f"{_BANDWIDTHS[place] * 8 // 10**6:,} Mbit/s" for place in (LAN, WAN))
    processors = f"{frame_us} us for a frame, {message_us:g} us for a message and {byte_ns} ns for a byte"
    spread = f"on average {_WAN_SPREAD_US // 1_000} ms more"
    return [
        f"Simulated processors take {processors}.",
        f"Simulated LAN: {_LAN_LATENCY_US} us and on average {_LAN_SPREAD_US} us more, at {lan}.",
        f"Simulated WAN: measured latencies between {', '.join(REGIONS)} and {spread}, at {wan}.",
    ]


def simulate_cell(plan: SaturationPlan, cell: SaturationCell) -> SaturationResult:
    """Run one group; every guarantee is checked meanwhile."""
    run = run_scenario(scenario_of(plan, cell))
    if run.violations:
        raise AssertionError(f"{cell.order} violates a guarantee without any fault: {run.violations[0]}")
    return result_of(cell, run)


def scenario_of(plan: SaturationPlan, cell: SaturationCell) -> Scenario:
    """All options of the run."""
    each = plan.messages_of(cell)
    return Scenario(
        seed=plan.seed,
        order=cell.order,
        ordering=cell.options,
        membership=MembershipOptions(
            founders=cell.members, heartbeat_ms=1_000, failure_ms=10_000, slow_ms=600_000
        ),
        link=RELIABLE_NETWORK,
        network=_network(cell),
        processor=PROCESSOR,
        workload=WorkloadOptions(
            messages=(each,) * cell.members,
            rate_per_second=(cell.rate,) * cell.members,
            consume_us=tuple(cell.handling_us()),
            start_us=(0,) * cell.members,
            broadcast_from_us=_FOUNDED_US,
            burst=cell.burst,
            priorities=_PRIORITIES,
            payload_bytes_min=cell.payload_bytes,
            payload_bytes_max=cell.payload_bytes,
            regular=cell.shape == BURSTS,
        ),
    )


def _network(cell: SaturationCell) -> NetworkOptions:
    if cell.place == LAN:
        return NetworkOptions(
            latency_us=_LAN_LATENCY_US,
            latency_spread_us=_LAN_SPREAD_US,
            latency_shape="exponential",
            bandwidth_bytes_per_second=_BANDWIDTHS[LAN],
        )
    return NetworkOptions(
        latency_spread_us=_WAN_SPREAD_US,
        latency_shape="exponential",
        bandwidth_bytes_per_second=_BANDWIDTHS[WAN],
        regions=tuple(index % len(REGIONS) for index in range(cell.members)),
        region_latency_us=region_latencies(),
    )


def result_of(cell: SaturationCell, run: SimulatedRun) -> SaturationResult:
    """The rates while all members send, and the delivery times after the warm-up.

    A message counts from the time at which it was due: a busy process broadcasts it later.
    """
    due_at = _due_times(run)
    times = [(sender, due) for (sender, _, _), (due, _) in due_at.items()]
    period = counted_period(times, cell.interval_ns if cell.shape == BURSTS else 1)
    due_count = sum(due in period for _, due in times)
    delivered = dict.fromkeys(run.scenario.members, 0)
    found: dict[str, list[tuple[int, int]]] = {member: [] for member in run.scenario.members}
    for row in run.messages:
        if row.event == DELIVERED:
            delivered[row.member] += row.count * (row.time_ns in period)
            for number in range(row.first, row.first + row.count):
                due, priority = due_at[row.sender, row.level, number]
                if due in period:
                    found[row.member].append((priority, row.time_ns - due))
    return result_of_members(
        cell,
        [
            Deliveries(
                rate_of(cell.load, delivered[member], due_count),
                [priority for priority, _ in of_member],
                [took for _, took in of_member],
            )
            for member, of_member in found.items()
        ],
    )


def _due_times(run: SimulatedRun) -> dict[_Key, tuple[int, int]]:
    """When each message was due, and its priority: those of one priority are broadcast in their order."""
    due: dict[tuple[str, int], deque[int]] = defaultdict(deque)
    for member in run.scenario.members:
        for planned in planned_broadcasts(run.scenario, member):
            due[member, planned.priority].append(planned.time)
    found = {}
    for row in run.messages:
        if row.event == BROADCAST:
            for index in range(row.count):
                priority = row.priorities[index] if row.priorities else row.level
                found[row.sender, row.level, row.first + index] = (
                    due[row.sender, priority].popleft(),
                    priority,
                )
    return found
