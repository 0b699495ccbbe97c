"""Five regions of the world in the simulator: the delivery time of every order, by the region of the sender.

The round trips are measured ones: the averages that a cloud provider published for 3 February to 3 March 2024
between its regions (IBM Cloud, "Network latency", table 1 of that date). Within a region its zones are 0.8 to
2.8 ms apart; here all of them are 1 ms apart. Frames travel half a round trip, and a random time of 1 ms on
average. Members take no processor time, and nothing is lost.
"""

from collections.abc import Callable, Sequence

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.links.frame import RELIABLE_NETWORK
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.protocols import check_order
from priocast.simulation.load_phases import phases_of
from priocast.simulation.scenario import NetworkOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.schema import BROADCAST, DELIVERED

REGIONS = ("Washington", "Frankfurt", "Tokyo", "Sydney", "São Paulo")
ROUND_TRIPS_MS = (
    (1, 98, 167, 215, 119),
    (98, 1, 237, 260, 196),
    (167, 237, 1, 117, 286),
    (215, 260, 117, 1, 329),
    (119, 196, 286, 329, 1),
)
#: Messages per second of all members of a region together: the adaptive paper's fast and slow senders.
RATES = (20.0, 10.0, 10.0, 1.0, 1 / 3)
SECONDS_MAX = 600.0
_SPREAD_US = 1_000
_FOUNDED_US = 5_000_000
_SECOND_US = 1_000_000
_MS = 1e6
_WINDOW = 1_024


def region_latencies() -> tuple[tuple[int, ...], ...]:
    """How long a frame travels between two regions, in microseconds: half a round trip."""
    return tuple(tuple(500 * each for each in row) for row in ROUND_TRIPS_MS)


class WanPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The runs: group sizes, orders, and for how many seconds each group of five sends.

    Larger groups send for a shorter time, in proportion to their members. The first half of each run is not
    counted: an order may need it to adapt.
    """

    members: tuple[int, ...] = (5, 15, 50)
    orders: tuple[str, ...] = ()
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not self.members or not all(len(REGIONS) <= size <= MEMBERS_MAX for size in self.members):
            raise InvalidOption(f"members is {self.members}: name sizes from {len(REGIONS)} to {MEMBERS_MAX}")
        if not 0 < self.seconds <= SECONDS_MAX:
            raise InvalidOption(
                f"seconds is {self.seconds:g}: it must be above 0 and at most {SECONDS_MAX:g}"
            )
        for order in self.orders:
            check_order(order, primary=True, policy=OrderingOptions().policy)

    def scenario(self, order: str, size: int) -> Scenario:
        """One run: member number i is in region i modulo 5, so the coordinator is in the first one."""
        regions = tuple(index % len(REGIONS) for index in range(size))
        rates = [RATES[region] / regions.count(region) for region in regions]
        seconds = self.seconds * len(REGIONS) / size
        nobody = (0,) * size
        return Scenario(
            seed=size,
            order=order,
            ordering=OrderingOptions(window=_WINDOW),
            membership=MembershipOptions(founders=size, heartbeat_ms=1_000, failure_ms=3_000, slow_ms=60_000),
            link=RELIABLE_NETWORK,
            network=NetworkOptions(
                latency_spread_us=_SPREAD_US,
                latency_shape="exponential",
                regions=regions,
                region_latency_us=region_latencies(),
            ),
            workload=WorkloadOptions(
                messages=nobody,
                rate_per_second=nobody,
                consume_us=nobody,
                start_us=nobody,
                phases=phases_of(rates, _FOUNDED_US),
                until_us=_FOUNDED_US + int(seconds * _SECOND_US),
            ),
        )


class WanRow(msgspec.Struct, frozen=True):
    """The delivery times of the messages of one region, at all members, in a group of one size."""

    members: int
    order: str
    region: str
    messages: int
    p50_ms: float
    p99_ms: float


def measure_wan(plan: WanPlan, on_run: Callable[[str, int], None]) -> list[WanRow]:
    """Run every order in every size; `on_run` is called before each run."""
    found = []
    for size in plan.members:
        for order in plan.orders:
            on_run(order, size)
            run = run_scenario(plan.scenario(order, size))
            if run.violations:
                raise AssertionError(f"{order} violates a guarantee without any fault: {run.violations[0]}")
            found += rows_of(run)
    return found


def rows_of(run: SimulatedRun) -> list[WanRow]:
    """The delivery times in one run by region, of messages that were broadcast in its second half."""
    scenario = run.scenario
    region_of = dict(zip(scenario.members, scenario.network.regions, strict=True))
    counted_from = 1_000 * (_FOUNDED_US + scenario.workload.until_us) // 2
    sent: dict[tuple[str, int, int], int] = {}
    times: dict[int, list[int]] = {}
    for row in run.messages:
        if row.event not in (BROADCAST, DELIVERED):
            continue
        for number in range(row.first, row.first + row.count):
            message = (row.sender, row.level, number)
            if row.event == BROADCAST:
                sent[message] = row.time_ns
            elif sent[message] >= counted_from:
                times.setdefault(region_of[row.sender], []).append(row.time_ns - sent[message])
    size = len(scenario.members)
    return [
        WanRow(
            size,
            scenario.order,
            REGIONS[region],
            len(times[region]) // size,
            percentile(times[region], 50) / _MS,
            percentile(times[region], 99) / _MS,
        )
        for region in sorted(times)
    ]


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that this percentage of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
