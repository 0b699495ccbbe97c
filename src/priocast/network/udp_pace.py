"""Flow control for large bodies: fragments are sent as fast as they are received, and again if they are lost.

A socket buffer may hold fewer than two hundred datagrams of 1,400 bytes; a body may need a thousand, and is
useless until all have arrived. So the receiver of fragments periodically reports which datagrams it has
received. At most 96 KiB are in flight beyond that, and missing fragments are sent again, only to the peer
that lacks them. Without a report for a while, everything in flight counts as lost. A fragment that is lost
repeatedly is abandoned: the link retransmits the body. Frames that fit into a datagram do not wait here, and
so overtake large bodies.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from priocast.network.rejections import Reason, RejectionLog

REPORT_BYTES = 16 * 1024
_IN_FLIGHT_BYTES_MAX = 96 * 1024
_ATTEMPTS_MAX = 5
_TIMEOUT_SECONDS_MIN = 0.02
_TIMEOUT_SECONDS_MAX = 0.5
_WAITING_BYTES_MAX = 16 * 1024 * 1024


class Sent(NamedTuple):
    """A datagram that was sent: its counter, its size, and how to send its content to one peer again."""

    counter: int
    size: int
    again: "Callable[[], Sent]"


class _FragmentInFlight(NamedTuple):
    sent: Sent
    at: float
    attempts: int


class Flow:
    """The fragments that are in flight to one peer, and those that were lost."""

    def __init__(self) -> None:
        self._in_flight: dict[int, _FragmentInFlight] = {}
        self._in_flight_bytes = 0
        self._lost: deque[_FragmentInFlight] = deque()
        self._heard_at = 0.0
        self._timeout = _TIMEOUT_SECONDS_MIN

    @property
    def has_room(self) -> bool:
        """Whether one more may be sent; lost fragments come first."""
        return self._in_flight_bytes < _IN_FLIGHT_BYTES_MAX and not self._lost

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight or lost."""
        return not self._in_flight and not self._lost

    def note(self, sent: Sent, now: float, attempts: int = 1) -> None:
        """A fragment was sent."""
        self._in_flight[sent.counter] = _FragmentInFlight(sent, now, attempts)
        self._in_flight_bytes += sent.size

    def on_report(self, highest: int, bits: int, now: float) -> None:
        """The peer has received `highest`, and those before it whose bit is set."""
        self._heard_at = now
        for counter in [each for each in self._in_flight if each <= highest]:
            in_flight = self._take(counter)
            if bits >> (highest - counter) & 1:
                self._timeout = max(_TIMEOUT_SECONDS_MIN, 4 * (now - in_flight.at))
            elif in_flight.attempts < _ATTEMPTS_MAX:
                self._lost.append(in_flight)
        self._send_lost(now)

    def check(self, now: float) -> None:
        """Without a report for a while, treat everything in flight as lost."""
        oldest = next(iter(self._in_flight.values()), None)
        if oldest is not None and now - max(oldest.at, self._heard_at) > self._timeout:
            self._timeout = min(2 * self._timeout, _TIMEOUT_SECONDS_MAX)
            everything = [self._take(counter) for counter in list(self._in_flight)]
            self._lost += [each for each in everything if each.attempts < _ATTEMPTS_MAX]
        self._send_lost(now)

    def _take(self, counter: int) -> _FragmentInFlight:
        in_flight = self._in_flight.pop(counter)
        self._in_flight_bytes -= in_flight.sent.size
        return in_flight

    def _send_lost(self, now: float) -> None:
        while self._lost and self._in_flight_bytes < _IN_FLIGHT_BYTES_MAX:
            lost = self._lost.popleft()
            self.note(lost.sent.again(), now, lost.attempts + 1)


class _Transfer(NamedTuple):
    flows: list[Flow]
    steps: Iterator[list[Sent]]
    size: int


class Pacer:
    """Runs transfers: each step of one sends a datagram, and records it in each flow of the transfer."""

    def __init__(self, rejection_log: RejectionLog) -> None:
        self._rejection_log = rejection_log
        self._waiting: dict[Hashable, _Transfer] = {}
        self._waiting_bytes = 0
        self._flows: dict[Flow, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, name: Hashable, flows: list[Flow], steps: Iterator[list[Sent]], size: int) -> None:
        """Send a body as fast as all flows allow, unless one of this name is still waiting."""
        if name in self._waiting:
            return
        if self._waiting_bytes + size > _WAITING_BYTES_MAX:
            self._rejection_log.record(Reason.NOT_SENT)
            return
        self._waiting[name] = _Transfer(flows, steps, size)
        self._waiting_bytes += size
        self._send(name, asyncio.get_running_loop().time())

    def on_report(self, flow: Flow, highest: int, bits: int, now: float) -> None:
        """A peer reports what it has received."""
        flow.on_report(highest, bits, now)
        self._continue(now)

    async def wait_empty(self) -> None:
        """Wait until everything was sent, and received or abandoned."""
        while self._waiting or any(not flow.idle for flow in self._flows):
            await asyncio.sleep(_TIMEOUT_SECONDS_MIN / 10)

    def stop(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._flows.clear()

    def _continue(self, now: float) -> None:
        for name in list(self._waiting):
            self._send(name, now)

    def _send(self, name: Hashable, now: float) -> None:
        flows, steps, size = self._waiting[name]
        while all(flow.has_room for flow in flows):
            step = next(steps, None)
            if step is None:
                del self._waiting[name]
                self._waiting_bytes -= size
                break
            for flow, sent in zip(flows, step, strict=True):
                flow.note(sent, now)
                self._flows[flow] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_TIMEOUT_SECONDS_MIN, self._check)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for flow in list(self._flows):
            flow.check(loop.time())
            if flow.idle:
                del self._flows[flow]
        self._continue(loop.time())
        if self._flows and self._timer is None:
            self._timer = loop.call_later(_TIMEOUT_SECONDS_MIN, self._check)
