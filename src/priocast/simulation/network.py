"""The simulated network: interfaces that write one frame after the other, and paths that may fail.

A path leads from one process name to another, whatever their incarnations. It keeps the order of its frames
unless a fault reorders them, as one route through a real network does. So reordering is known and counted.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.scenario import Scenario
from priocast.simulation.seeded_random import SeededRandom

HEADER_BYTES = 56
_SECOND = 1_000_000_000

Direction = tuple[str, str]
Arrive = Callable[[str, ProcessId, Frame], None]
Written = Iterable[tuple[str, Frame]]


class SimulatedNetwork:
    """All paths between the processes of a run; `arrive` is called with target, source and frame."""

    def __init__(
        self, scenario: Scenario, event_queue: EventQueue, counters: Counters, arrive: Arrive
    ) -> None:
        self._scenario = scenario
        self._event_queue = event_queue
        self._counters = counters
        self._arrive = arrive
        self._interfaces: dict[str, _Interface] = {}
        self._paths: dict[Direction, _Path] = {}
        self._blocked: Counter[Direction] = Counter()

    @property
    def is_faithful(self) -> bool:
        """Whether what arrives is what was sent, as networks guarantee."""
        return True

    def transmit(self, source: ProcessId, target: str, frame: Frame, at: int) -> None:
        """Transmit a frame that is ready to be written at this time."""
        direction = (source.name, target)
        path = self._paths.get(direction) or self._path(direction)
        size = HEADER_BYTES + len(frame.body)
        counters = self._counters
        counters.frames += 1
        counters.frame_bytes += size
        left = self._interfaces[source.name].write(size, at)
        if self._is_blocked(direction):
            return
        for arrival in path.arrivals(left):
            self._event_queue.schedule(arrival, partial(self._arrive, target, source, frame))

    def transmit_all(self, source: ProcessId, written: Written, at: int) -> None:
        """Transmit the frames of a turn, by the name of their destination."""
        for target, frame in written:
            self.transmit(source, target, frame, at)

    def block(self, directions: Iterable[Direction]) -> None:
        """Drop all frames in these directions. Blocks of one direction add up."""
        self._blocked.update(directions)

    def unblock(self, directions: Iterable[Direction]) -> None:
        """Remove one block of each of these directions."""
        self._blocked.subtract(directions)

    def _is_blocked(self, direction: Direction) -> bool:
        return self._blocked[direction] > 0

    def _path(self, direction: Direction) -> "_Path":
        """Each path has a generator of its own, so that paths do not influence each other."""
        source, target = direction
        random = SeededRandom(f"path {self._scenario.seed} {source} {target}")
        path = self._paths[direction] = _Path(self._scenario, direction, random, self._counters)
        if source not in self._interfaces:
            bandwidth = self._scenario.network.bandwidth_bytes_per_second
            self._interfaces[source] = _Interface(bandwidth, self._counters)
        return path


class _Interface:
    """The interface of one process: a frame waits until the frames before it are written."""

    def __init__(self, bandwidth_bytes_per_second: int | None, counters: Counters) -> None:
        self._bandwidth = bandwidth_bytes_per_second
        self._free_at = 0
        self._counters = counters

    def write(self, size: int, at: int) -> int:
        """Write a frame that is ready at this time; return when its last byte has left."""
        if self._bandwidth is None:
            return at
        if at < self._free_at:
            self._counters.count("busy interface")
        self._free_at = max(at, self._free_at) + size * _SECOND // self._bandwidth
        assert self._free_at >= at
        return self._free_at


class _Path:
    """The path from one process to another, in one direction."""

    def __init__(
        self, scenario: Scenario, direction: Direction, random: SeededRandom, counters: Counters
    ) -> None:
        network = scenario.network
        self._latency_ns = _latency_us(scenario, direction) * MICROSECOND
        self._spread_ns = network.latency_spread_us * MICROSECOND
        self._shape = network.latency_shape
        self._faults = scenario.faults
        self._reordering_ns = scenario.faults.reordering_us * MICROSECOND
        self._healed_at = scenario.faults.healed_at_us * MICROSECOND
        self._random = random
        self._counters = counters
        self._arrived_last = 0

    def arrivals(self, left: int) -> list[int]:
        """When a frame that left at this time arrives: never, once or twice."""
        if left >= self._healed_at:
            return [self._in_order(left)]
        faults = self._faults
        if self._happens(faults.loss_percent, "loss"):
            return []
        times = []
        if self._happens(faults.duplication_percent, "duplication"):
            times.append(left + self._latency() + self._delay())
        if self._happens(faults.reordering_percent, "reordering"):
            times.append(left + self._latency() + self._delay())
        else:
            times.append(self._in_order(left))
        return times

    def _in_order(self, left: int) -> int:
        self._arrived_last = max(self._arrived_last, left + self._latency())
        return self._arrived_last

    def _happens(self, percent: int, kind: str) -> bool:
        happens = percent > 0 and self._random.chance(percent)
        if happens:
            self._counters.count(kind)
        return happens

    def _delay(self) -> int:
        return self._random.randint(0, self._reordering_ns)

    def _latency(self) -> int:
        if self._shape == "constant" or not self._spread_ns:
            return self._latency_ns
        if self._shape == "uniform":
            return self._latency_ns + self._random.randint(0, 2 * self._spread_ns)
        return self._latency_ns + self._random.exponential(self._spread_ns)


def _latency_us(scenario: Scenario, direction: Direction) -> int:
    """The latency between two processes; a client is in no region."""
    network, members = scenario.network, scenario.members
    if not network.regions or not all(name in members for name in direction):
        return network.latency_us
    source, target = (network.regions[members.index(name)] for name in direction)
    return network.region_latency_us[source][target]
