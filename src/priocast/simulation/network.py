"""The simulated network: interfaces that write one frame after the other, and paths that may fail.

A path keeps the order of its frames unless a fault says otherwise, as one route through a real network
does; so whether a run met reordering is known, and counted.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from priocast.links.fifo_link import Frame
from priocast.simulation.agenda import Agenda
from priocast.simulation.counters import Counters
from priocast.simulation.dice import exponential
from priocast.simulation.scenario import MICROSECOND, Cut, FaultOptions, NetworkOptions

HEADER_BYTES = 56
_SECOND = 1_000_000_000


class Interface:
    """One process's way out: what is written has to wait for what was written before."""

    def __init__(self, bandwidth_bytes_per_second: int | None, counters: Counters) -> None:
        self._bandwidth = bandwidth_bytes_per_second
        self._free_at = 0
        self._counters = counters

    def write(self, size: int, at: int) -> int:
        """Write a frame that is ready at this time; return when its last byte has left."""
        if self._bandwidth is None:
            return at
        if at < self._free_at:
            self._counters.interface_waits += 1
        self._free_at = max(at, self._free_at) + size * _SECOND // self._bandwidth
        assert self._free_at >= at
        return self._free_at


class Path:
    """The way from one process to another, in one direction."""

    def __init__(
        self,
        interface: Interface,
        network: NetworkOptions,
        faults: FaultOptions,
        cuts: tuple[Cut, ...],
        dice: Random,
        agenda: Agenda,
        counters: Counters,
        arrive: Callable[[Frame], None],
    ) -> None:
        self._interface = interface
        self._latency_ns = network.latency_us * MICROSECOND
        self._spread_ns = network.latency_spread_us * MICROSECOND
        self._shape = network.latency_shape
        self._faults = faults
        self._reordering_ns = faults.reordering_us * MICROSECOND
        self._healed_at = faults.healed_at_us * MICROSECOND
        self._cuts = cuts
        self._dice = dice
        self._agenda = agenda
        self._counters = counters
        self._arrived_last = 0
        self._arrive = arrive

    def transmit(self, frame: Frame, at: int) -> None:
        """Take a frame that is ready to be written at this time."""
        counters = self._counters
        size = HEADER_BYTES + len(frame.body)
        counters.frames += 1
        counters.frame_bytes += size
        left = self._interface.write(size, at)
        if left >= self._healed_at:
            self._arrive_in_order(frame, left)
            return
        if any(cut.covers(left) for cut in self._cuts):
            counters.frames_cut += 1
            return
        if self._happens(self._faults.loss_percent):
            counters.frames_lost += 1
            return
        if self._happens(self._faults.duplication_percent):
            counters.frames_duplicated += 1
            self._arrive_at(left + self._latency() + self._delay(), frame)
        if self._happens(self._faults.reordering_percent):
            counters.frames_reordered += 1
            self._arrive_at(left + self._latency() + self._delay(), frame)
        else:
            self._arrive_in_order(frame, left)

    def _arrive_in_order(self, frame: Frame, left: int) -> None:
        self._arrived_last = max(self._arrived_last, left + self._latency())
        self._arrive_at(self._arrived_last, frame)

    def _arrive_at(self, time: int, frame: Frame) -> None:
        self._agenda.at(time, partial(self._arrive, frame))

    def _happens(self, percent: int) -> bool:
        return percent > 0 and self._dice.randrange(100) < percent

    def _delay(self) -> int:
        return self._dice.randint(0, self._reordering_ns)

    def _latency(self) -> int:
        if self._shape == "constant" or not self._spread_ns:
            return self._latency_ns
        if self._shape == "uniform":
            return self._latency_ns + self._dice.randint(0, 2 * self._spread_ns)
        return self._latency_ns + exponential(self._dice, self._spread_ns)
