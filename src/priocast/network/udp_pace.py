"""Large bodies leave as fast as they are taken, and what is lost of them is sent again.

A socket's buffer may have room for less than two hundred datagrams of 1,400 bytes; a body may need a
thousand, and is of no use before all have come. So whoever receives pieces says now and then which datagrams
it has seen. Only so many bytes go beyond that, and pieces that are missing are sent again, to it alone. Where
no word comes for a while, all that is under way is taken for lost. A piece that is lost again and again is
given up: the links see to the body. Whole frames do not wait here, and so overtake large bodies.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from priocast.network.rejections import Reason, Rejections

REPORT_BYTES = 16 * 1024
_UNDER_WAY_BYTES_MAX = 96 * 1024
_TRIES_MAX = 5
_PATIENCE_SECONDS_MIN = 0.02
_PATIENCE_SECONDS_MAX = 0.5
_WAITING_BYTES_MAX = 16 * 1024 * 1024


class Sent(NamedTuple):
    """A datagram that left: its number, its size, and how to send what is in it to one peer alone."""

    counter: int
    size: int
    again: "Callable[[], Sent]"


class _UnderWay(NamedTuple):
    sent: Sent
    at: float
    tries: int


class Flow:
    """The pieces that are under way to one peer, and those that it lacks."""

    def __init__(self) -> None:
        self._under_way: dict[int, _UnderWay] = {}
        self._under_way_bytes = 0
        self._lost: deque[_UnderWay] = deque()
        self._heard_at = 0.0
        self._patience = _PATIENCE_SECONDS_MIN

    @property
    def has_room(self) -> bool:
        """Whether one more may be sent; what the peer lacks comes first."""
        return self._under_way_bytes < _UNDER_WAY_BYTES_MAX and not self._lost

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be seen."""
        return not self._under_way and not self._lost

    def note(self, sent: Sent, now: float, tries: int = 1) -> None:
        """A piece has left."""
        self._under_way[sent.counter] = _UnderWay(sent, now, tries)
        self._under_way_bytes += sent.size

    def seen(self, highest: int, bits: int, now: float) -> None:
        """The peer has seen `highest`, and before it those of which there is a bit."""
        self._heard_at = now
        for counter in [each for each in self._under_way if each <= highest]:
            under_way = self._take(counter)
            if bits >> (highest - counter) & 1:
                self._patience = max(_PATIENCE_SECONDS_MIN, 4 * (now - under_way.at))
            elif under_way.tries < _TRIES_MAX:
                self._lost.append(under_way)
        self._send_lost(now)

    def check(self, now: float) -> None:
        """No word for a while means that all were lost, or the word was."""
        oldest = next(iter(self._under_way.values()), None)
        if oldest is not None and now - max(oldest.at, self._heard_at) > self._patience:
            self._patience = min(2 * self._patience, _PATIENCE_SECONDS_MAX)
            everything = [self._take(counter) for counter in list(self._under_way)]
            self._lost += [each for each in everything if each.tries < _TRIES_MAX]
        self._send_lost(now)

    def _take(self, counter: int) -> _UnderWay:
        under_way = self._under_way.pop(counter)
        self._under_way_bytes -= under_way.sent.size
        return under_way

    def _send_lost(self, now: float) -> None:
        while self._lost and self._under_way_bytes < _UNDER_WAY_BYTES_MAX:
            lost = self._lost.popleft()
            self.note(lost.sent.again(), now, lost.tries + 1)


class _Transfer(NamedTuple):
    flows: list[Flow]
    steps: Iterator[list[Sent]]
    size: int


class Pacer:
    """Takes transfers: each of their steps sends a datagram, and says so to each of its flows in turn."""

    def __init__(self, gate: Rejections) -> None:
        self._gate = gate
        self._waiting: dict[Hashable, _Transfer] = {}
        self._waiting_bytes = 0
        self._flows: dict[Flow, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, name: Hashable, flows: list[Flow], steps: Iterator[list[Sent]], size: int) -> None:
        """Send this as fast as all flows allow; one that still waits under this name is not begun again."""
        if name in self._waiting:
            return
        if self._waiting_bytes + size > _WAITING_BYTES_MAX:
            self._gate.note(Reason.NOT_SENT)
            return
        self._waiting[name] = _Transfer(flows, steps, size)
        self._waiting_bytes += size
        self._send(name, asyncio.get_running_loop().time())

    def on_seen(self, flow: Flow, highest: int, bits: int, now: float) -> None:
        """A peer says what it has seen."""
        flow.seen(highest, bits, now)
        self._go_on(now)

    async def wait_empty(self) -> None:
        """Wait until all has been sent, and seen or given up."""
        while self._waiting or any(not flow.idle for flow in self._flows):
            await asyncio.sleep(_PATIENCE_SECONDS_MIN / 10)

    def stop(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._flows.clear()

    def _go_on(self, now: float) -> None:
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
            self._timer = loop.call_later(_PATIENCE_SECONDS_MIN, self._check)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for flow in list(self._flows):
            flow.check(loop.time())
            if flow.idle:
                del self._flows[flow]
        self._go_on(loop.time())
        if self._flows and self._timer is None:
            self._timer = loop.call_later(_PATIENCE_SECONDS_MIN, self._check)
