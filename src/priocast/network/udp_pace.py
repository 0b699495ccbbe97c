"""Flow control for large bodies: fragments are sent as fast as they are received, and again if they are lost.

A socket buffer may hold fewer than two hundred datagrams of 1,400 bytes; a body may need a thousand, and is
useless until all have arrived. So the receiver of fragments periodically reports which datagrams it has
received. A limited number of bytes is in flight to a peer beyond that, and missing fragments are sent again,
only to the peer that lacks them.

A fragment counts as lost when three later ones were received that were sent the same way: what is multicast
arrives at another socket than the rest, so the two overtake each other. So does one that reports have lacked
for a while, and without any report everything in flight. A fragment that is lost repeatedly is abandoned: the
link retransmits the body.

Bodies of a few datagrams do not wait here, and so overtake large ones. If one is lost, its link retransmits
it. Nobody reports on them.
"""

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

from priocast.network.rejections import Reason, RejectionLog

UNPACED_BYTES_MAX = 4 * 1024
IN_FLIGHT_BYTES_MIN, IN_FLIGHT_BYTES_MAX = 96 * 1024, 1024 * 1024
_REPORTS_IN_FLIGHT = 6
_OVERTAKEN_BY = 3
_ATTEMPTS_MAX = 5
_TIMEOUT_SECONDS_MIN = 0.02
_TIMEOUT_SECONDS_MAX = 0.5
_WAITING_BYTES_MAX = 16 * 1024 * 1024


class Sent(NamedTuple):
    """A datagram that was sent: its counter, its size, and which fragment of which transfer it has.

    `multicast` says that it went to all.
    """

    counter: int
    size: int
    multicast: bool
    fragment: int
    transfer: "Transfer"


class Transfer(Protocol):
    """A body that is sent in fragments, to the peers of these flows together.

    `frames` name what is sent: the frame of the link to each of these peers.
    """

    @property
    def flows(self) -> Sequence["Flow"]: ...

    @property
    def frames(self) -> Sequence[Hashable]: ...

    @property
    def size(self) -> int: ...

    def send_next(self) -> Sent | None:
        """Send the next fragment to all; None if there are no more."""

    def send_again(self, fragment: int, flow: "Flow") -> Sent:
        """Send a fragment to the peer of one flow, which lacks it."""


class _FragmentInFlight(NamedTuple):
    sent: Sent
    at: float
    attempts: int


class Flow:
    """The fragments that are in flight to one peer, and those that were lost.

    At most `bytes_max` are in flight. `blocked` are the transfers that wait for this flow.
    """

    def __init__(self) -> None:
        self.bytes_max = IN_FLIGHT_BYTES_MIN
        self.blocked: dict[Transfer, None] = {}
        self._in_flight: dict[int, _FragmentInFlight] = {}
        self._in_flight_bytes = 0
        self._lost: deque[_FragmentInFlight] = deque()
        # The counters that were received last, of what was multicast and of what was not.
        self._received_last = {way: deque[int](maxlen=_OVERTAKEN_BY) for way in (True, False)}
        self._heard_at = 0.0
        self._highest = 0
        self._timeout = _TIMEOUT_SECONDS_MIN

    @property
    def report_bytes(self) -> int:
        """After how many bytes of fragments a receiver with such a flow reports to the sender."""
        return min(self.bytes_max // _REPORTS_IN_FLIGHT, IN_FLIGHT_BYTES_MIN // 2)

    @property
    def has_room(self) -> bool:
        """Whether one more may be sent; lost fragments come first."""
        return self._in_flight_bytes < self.bytes_max and not self._lost

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
        self._highest = max(self._highest, highest)
        missing = []
        for counter in [each for each in self._in_flight if each <= highest]:
            if bits >> (highest - counter) & 1:
                in_flight = self._take(counter)
                self._timeout = max(_TIMEOUT_SECONDS_MIN, 4 * (now - in_flight.at))
                self._received_last[in_flight.sent.multicast].append(counter)
            else:
                missing.append(counter)
        for counter in missing:
            received = self._received_last[self._in_flight[counter].sent.multicast]
            if len(received) == _OVERTAKEN_BY and all(counter < each for each in received):
                self._give_up(self._take(counter))
        self._send_lost(now)

    def check(self, now: float) -> None:
        """Treat as lost what has been missing for a while; without any report, everything in flight."""
        for counter in [each for each in self._in_flight if each <= self._highest]:
            if now - self._in_flight[counter].at > self._timeout:
                self._give_up(self._take(counter))
        oldest = next(iter(self._in_flight.values()), None)
        if oldest is not None and now - max(oldest.at, self._heard_at) > self._timeout:
            self._timeout = min(2 * self._timeout, _TIMEOUT_SECONDS_MAX)
            for counter in list(self._in_flight):
                self._give_up(self._take(counter))
        self._send_lost(now)

    def _take(self, counter: int) -> _FragmentInFlight:
        in_flight = self._in_flight.pop(counter)
        self._in_flight_bytes -= in_flight.sent.size
        return in_flight

    def _give_up(self, in_flight: _FragmentInFlight) -> None:
        """It is lost: send it again, unless that was often enough."""
        if in_flight.attempts < _ATTEMPTS_MAX:
            self._lost.append(in_flight)

    def _send_lost(self, now: float) -> None:
        while self._lost and self._in_flight_bytes < self.bytes_max:
            lost = self._lost.popleft()
            self.note(lost.sent.transfer.send_again(lost.sent.fragment, self), now, lost.attempts + 1)


class Pacer:
    """Runs transfers: each step of one sends a datagram, and records it in each flow of the transfer."""

    def __init__(self, rejection_log: RejectionLog) -> None:
        self._rejection_log = rejection_log
        self._waiting: dict[Hashable, Transfer] = {}  # by their frames
        self._waiting_bytes = 0
        self._flows: dict[Flow, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def is_waiting(self, frame: Hashable) -> bool:
        """Whether a frame has not been sent to its end: its link need not retransmit it."""
        return frame in self._waiting

    def add(self, transfer: Transfer) -> None:
        """Send a body as fast as all its flows allow."""
        if self._waiting_bytes + transfer.size > _WAITING_BYTES_MAX:
            self._rejection_log.record(Reason.NOT_SENT)
            return
        self._waiting.update(dict.fromkeys(transfer.frames, transfer))
        self._waiting_bytes += transfer.size
        self._send(transfer, asyncio.get_running_loop().time())

    def on_report(self, flow: Flow, highest: int, bits: int, now: float) -> None:
        """A peer reports what it has received."""
        flow.on_report(highest, bits, now)
        self._continue(flow, now)

    async def wait_empty(self) -> None:
        """Wait until everything was sent, and received or abandoned."""
        while self._waiting or any(not flow.idle for flow in self._flows):
            await asyncio.sleep(_TIMEOUT_SECONDS_MIN / 10)

    def stop(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        for flow in self._flows:
            flow.blocked.clear()
        self._flows.clear()

    def _continue(self, flow: Flow, now: float) -> None:
        """Go on with the transfers that waited for this flow; each may have to wait for another one then."""
        while flow.blocked and flow.has_room:
            transfer = next(iter(flow.blocked))
            del flow.blocked[transfer]
            self._send(transfer, now)

    def _send(self, transfer: Transfer, now: float) -> None:
        """Send what all flows have room for; if that is not everything, the first full one is waited for."""
        flows = transfer.flows
        while (full := next((flow for flow in flows if not flow.has_room), None)) is None:
            sent = transfer.send_next()
            if sent is None:
                for frame in transfer.frames:
                    del self._waiting[frame]
                self._waiting_bytes -= transfer.size
                break
            for flow in flows:
                flow.note(sent, now)
        else:
            full.blocked[transfer] = None
        self._flows.update(dict.fromkeys(flows))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TIMEOUT_SECONDS_MIN, self._check)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for flow in list(self._flows):
            flow.check(loop.time())
            self._continue(flow, loop.time())
            if flow.idle and not flow.blocked:
                del self._flows[flow]
        if self._flows and self._timer is None:
            self._timer = loop.call_later(_TIMEOUT_SECONDS_MIN, self._check)
