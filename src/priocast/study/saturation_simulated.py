"""Saturation curves in the simulator: a group with a model of processors, network interfaces and distances.

A frame keeps a process busy for 20 us, a message for another 1 us and a byte for 1 ns: about what the
sources take on the machine of `docs/performance.md`. Interfaces send 1 Gbit/s on the LAN and 100 Mbit/s
between regions. These are assumptions: they decide where an order saturates, and are the same for all.
"""

from collections import defaultdict, deque

from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.links.frame import RELIABLE_NETWORK
from priocast.membership.options import MembershipOptions
from priocast.simulation.scenario import NetworkOptions, ProcessorOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.simulation.workload import planned_broadcasts
from priocast.study.saturation import LAN, SaturationCell, SaturationPlan, SaturationResult, counted_period
from priocast.study.wan import REGIONS, region_latencies
from priocast.trace.schema import BROADCAST, DELIVERED

PROCESSOR = ProcessorOptions(frame_us=20, message_ns=1_000, byte_ns=1)
#: Weights of the priorities, as in `workload.MIX`.
_PRIORITIES = ((URGENT, 2), (ELEVATED, 18), (ROUTINE, 50), (BACKGROUND, 30))
_FOUNDED_US = 20_000_000
_SECOND_NS = 1_000_000_000
_Key = tuple[str, int, int]


def simulate_cell(plan: SaturationPlan, cell: SaturationCell) -> SaturationResult:
    """Run one group; every guarantee is checked meanwhile."""
    run = run_scenario(scenario_of(plan, cell))
    if run.violations:
        raise AssertionError(f"{cell.order} violates a guarantee without any fault: {run.violations[0]}")
    return result_of(run)


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
            rate_per_second=(max(1, cell.load // cell.members),) * cell.members,
            consume_us=tuple(cell.handling_us()),
            start_us=(0,) * cell.members,
            broadcast_from_us=_FOUNDED_US,
            burst=cell.burst,
            priorities=_PRIORITIES,
            payload_bytes_min=cell.payload_bytes,
            payload_bytes_max=cell.payload_bytes,
        ),
    )


def _network(cell: SaturationCell) -> NetworkOptions:
    if cell.place == LAN:
        return NetworkOptions(
            latency_us=50,
            latency_spread_us=20,
            latency_shape="exponential",
            bandwidth_bytes_per_second=125_000_000,
        )
    return NetworkOptions(
        latency_spread_us=1_000,
        latency_shape="exponential",
        bandwidth_bytes_per_second=12_500_000,
        regions=tuple(index % len(REGIONS) for index in range(cell.members)),
        region_latency_us=region_latencies(),
    )


def result_of(run: SimulatedRun) -> SaturationResult:
    """The rate of the slowest member while all members send, and the delivery times after the warm-up.

    A message counts from the time at which it was due: a busy process broadcasts it later.
    """
    due_at = _due_times(run)
    counted_from, ended = counted_period((sender, due) for (sender, _, _), (due, _) in due_at.items())
    counts = dict.fromkeys(run.scenario.members, 0)
    priorities, took_ns = [], []
    for row in run.messages:
        if row.event == DELIVERED:
            counts[row.member] += row.count * (counted_from <= row.time_ns <= ended)
            for number in range(row.first, row.first + row.count):
                due, priority = due_at[row.sender, row.level, number]
                if counted_from <= due <= ended:
                    priorities.append(priority)
                    took_ns.append(row.time_ns - due)
    rate = min(counts.values()) * _SECOND_NS / (ended - counted_from)
    return SaturationResult(rate, priorities, took_ns).sample()


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
