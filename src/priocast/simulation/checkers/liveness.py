"""Liveness: once the faults have healed, everything is delivered everywhere within a stated time."""

from collections.abc import Iterable

from priocast.core.guarantees import LIVENESS
from priocast.simulation.checkers.checker import Checker, Report
from priocast.simulation.network import HEADER_BYTES
from priocast.simulation.scenario import MICROSECOND, MILLISECOND, Scenario
from priocast.simulation.workload import Wish
from priocast.trace.schema import Row

SETTLE_MS = 3_000
"""For retransmission timers that had doubled up to their maximum of a second, on the way in and out."""


class Liveness(Checker):
    """Counts what each member has delivered of each sender; the run is stopped at `deadline_ns`."""

    PROPERTY = LIVENESS

    def __init__(self, report: Report, members: tuple[str, ...], expected: dict[str, int]) -> None:
        super().__init__(report)
        self._expected = expected
        self._delivered = {(member, sender): 0 for member in members for sender in expected}

    def on_delivered(self, row: Row) -> None:
        if (row.member, row.sender) in self._delivered:
            self._delivered[row.member, row.sender] += row.count

    def finish(self, now: int) -> None:
        for (member, sender), count in self._delivered.items():
            expected = self._expected[sender]
            if count < expected:
                text = f"{member} has delivered {count} of the {expected} messages of {sender}"
                self.violated(text, now, members=[member, sender])
                return


def deadline_ns(scenario: Scenario, wishes: Iterable[Wish]) -> int:
    """By when all is delivered: the last fault and the last wish, the work if nothing overlaps, `SETTLE_MS`.

    In the worst case (a window of one message, no batches) every message takes two hops to its place and
    two more until the slowest member has reported it, a frame to and from each member at every hop, and
    the time that the slowest application needs.
    """
    network, processor = scenario.network, scenario.processor
    last_wish = count = size = 0
    for wish in wishes:
        last_wish = max(last_wish, wish.time)
        count += 1
        size += len(wish.payload) + HEADER_BYTES
    frames = 4 * len(scenario.members)
    latency_us = network.latency_us + 3 * network.latency_spread_us
    each_us = 4 * latency_us + 2 * frames * processor.frame_us + max(scenario.workload.consume_us)
    each_ns = each_us * MICROSECOND + 4 * processor.message_ns
    byte_ns = 2 * processor.byte_ns
    if network.bandwidth_bytes_per_second is not None:
        byte_ns += 1_000_000_000 // network.bandwidth_bytes_per_second
    work_ns = count * each_ns + frames * size * byte_ns
    return max(scenario.faults.healed_at_us * MICROSECOND, last_wish) + work_ns + SETTLE_MS * MILLISECOND
