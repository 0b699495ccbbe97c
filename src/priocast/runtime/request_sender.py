"""Requests of a client: which member they go to, and when they are sent again.

Requests of one priority form a lane. They go to one member, in order, until it fails to reply in time; then
all of them go to the next member, which ignores those that the group has ordered already.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from priocast.core.errors import PeerFault, PriocastError
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.membership.datagrams import CHANNEL, frame_of, read
from priocast.membership.packets import ClientReceipt, ClientReply, ClientRequest, ClientSend, Control
from priocast.network.interface import Network, Port

_REPLY_SECONDS_FIRST = 1.0
_REPLY_SECONDS_MAX = 8.0
_REACHED_SECONDS = 0.02
_IN_FLIGHT_MAX = 64
_IN_FLIGHT_BYTES_MAX = 1024 * 1024


class RequestSender:
    """Sends requests to the members of a group over a network, and receives their replies.

    `members` are the names of the processes that it can reach. `closed` is the error that requests raise once
    the sender is closed.
    """

    def __init__(self) -> None:
        self.members: list[str] = []
        self.closed: PriocastError | None = None
        self._port: Port | None = None
        self._lanes: dict[int, _Lane] = {}
        self._receipts: dict[int, asyncio.Future[ClientReceipt]] = {}

    def open(self, network: Network, group: str, me: ProcessId) -> None:
        """Open the group's port."""
        self._port = network.open(group, me, self)

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._port is not None and self.closed is None

    def close(self, error: PriocastError) -> None:
        """Close the port; pending requests raise this error."""
        self.failed(error)
        if self._port is not None:
            self._port.close()

    def lane(self, priority: int) -> "_Lane":
        """The requests of one priority."""
        if priority not in self._lanes:
            self._lanes[priority] = _Lane(self, priority)
        return self._lanes[priority]

    async def send(self, request: ClientSend) -> ClientReceipt:
        """Send a message with a quality of service: to one member, again and again until it answers."""
        receipt: asyncio.Future[ClientReceipt] = asyncio.get_running_loop().create_future()
        self._receipts[request.number] = receipt
        member = ""
        try:
            while not receipt.done():
                member = member or next(iter(self.members), "")
                if member:
                    self.transmit(member, [request])
                await asyncio.wait([receipt], timeout=_REPLY_SECONDS_FIRST if member else _REACHED_SECONDS)
            return receipt.result()
        finally:
            del self._receipts[request.number]

    def transmit(self, member: str, requests: Sequence[Control]) -> None:
        """Send requests to a member, in order; they may be lost."""
        if self._port is not None:
            self._port.send(member, [frame_of(request) for request in requests])
            self._port.flush()

    # Called by the network

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        if role is not Role.MEMBER:
            return
        if peer not in self.members:
            self.members.append(peer)
        for lane in self._lanes.values():
            lane.on_reachable(peer)

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        if role is not Role.MEMBER:
            return
        for frame in frames:
            with suppress(
                PeerFault
            ):  # members evict a member that sends invalid frames; a client ignores them
                control = read(peer, frame) if frame.channel == CHANNEL else None
                if isinstance(control, ClientReply) and control.priority in self._lanes:
                    self._lanes[control.priority].on_reply(peer, control)
                elif isinstance(control, ClientReceipt) and control.number in self._receipts:
                    receipt = self._receipts[control.number]
                    if not receipt.done():
                        receipt.set_result(control)

    def hears(self, peer: str) -> bool:
        return False  # a client does not know whether members are alive

    def failed(self, error: PriocastError) -> None:
        if self.closed is None:
            self.closed = error
            for lane in self._lanes.values():
                lane.fail(error)
            for receipt in self._receipts.values():
                if not receipt.done():
                    receipt.set_exception(error)


class _PendingRequest:
    """A request without a reply."""

    __slots__ = ("payload", "position", "scope")

    def __init__(self, payload: bytes, scope: Scope, position: "asyncio.Future[int | None]") -> None:
        self.payload = payload
        self.scope = scope
        self.position = position


class _Lane:
    """The requests of one priority. They go to one member, in order, until it fails to reply."""

    def __init__(self, sender: "RequestSender", priority: int) -> None:
        self._sender = sender
        self._priority = priority
        self._loop = asyncio.get_running_loop()
        self._number_next = 1
        self._pending: dict[int, _PendingRequest] = {}
        self._sent_until = 0
        self._member = ""
        self._timeout_seconds = _REPLY_SECONDS_FIRST
        self._waiting_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, payload: bytes, scope: Scope) -> "tuple[int, asyncio.Future[int | None]]":
        """Add a request; return its number and the future of its position."""
        number = self._number_next
        self._number_next += 1
        pending = _PendingRequest(payload, scope, self._loop.create_future())
        if not self._pending:
            self._waiting_since = self._loop.time()
        self._pending[number] = pending
        self._send()
        return number, pending.position

    def remove(self, number: int) -> None:
        """A request needs no reply any more: it has one, or its deadline has passed."""
        self._pending.pop(number, None)
        first = next(iter(self._pending), self._number_next)
        if number + 1 < first <= self._sent_until:
            # The member may have missed a request before `first`: it must learn that it need not wait for it.
            self._sent_until = first - 1
        self._send()

    def on_reply(self, peer: ProcessId, reply: ClientReply) -> None:
        """A member has replied."""
        pending = self._pending.get(reply.number)
        if pending is None or pending.position.done():
            return
        self._timeout_seconds = _REPLY_SECONDS_FIRST
        self._waiting_since = self._loop.time()
        if reply.reason:
            pending.position.set_exception(PeerFault(f"{peer.name} rejected the message: {reply.reason}"))
        else:
            pending.position.set_result(reply.position if reply.position >= 0 else None)

    def on_reachable(self, peer: str) -> None:
        """A member can be reached; what was sent to it before may be lost."""
        if self._member in ("", peer):
            self._send_all_to(peer)

    def fail(self, error: PriocastError) -> None:
        """There will be no more replies."""
        if self._timer is not None:
            self._timer.cancel()
        for pending in self._pending.values():
            if not pending.position.done():
                pending.position.set_exception(error)

    def _send_all_to(self, member: str) -> None:
        self._member = member
        self._sent_until = 0
        self._waiting_since = self._loop.time()
        self._send()

    def _send(self) -> None:
        """Send the requests that were not sent to this member yet, as many as may be in flight."""
        if not self._member:
            if not self._sender.members:
                return
            self._member = self._sender.members[0]
        settled = next(iter(self._pending), self._number_next) - 1
        requests, size = [], 0
        for count, (number, pending) in enumerate(self._pending.items()):
            if count >= _IN_FLIGHT_MAX or (size and size + len(pending.payload) > _IN_FLIGHT_BYTES_MAX):
                break
            size += len(pending.payload)
            if number > self._sent_until:
                self._sent_until = number
                requests.append(
                    ClientRequest(number, self._priority, pending.scope, pending.payload, settled)
                )
        if requests:
            self._sender.transmit(self._member, requests)
            self._set_timer()

    def _set_timer(self) -> None:
        """Wake up when a reply is overdue, or before: a timer that fires early does no harm."""
        if self._timer is None:
            self._timer = self._loop.call_at(self._waiting_since + self._timeout_seconds, self._on_timer)

    def _on_timer(self) -> None:
        """Without a reply in time, turn to the next member, with a longer timeout."""
        self._timer = None
        members = self._sender.members
        if not self._pending or not members:
            return
        if self._loop.time() < self._waiting_since + self._timeout_seconds:
            self._set_timer()
            return
        self._timeout_seconds = min(2 * self._timeout_seconds, _REPLY_SECONDS_MAX)
        index = members.index(self._member) + 1 if self._member in members else 0
        self._send_all_to(members[index % len(members)])
