"""A client: ordered sends from a process that is not a member.

    async with priocast.open_client("tickets", client="shop", peers=["127.0.0.1:7401", ...]) as client:
        position = await client.send(b"one seat", priority=priocast.URGENT)

A request goes to one member, which broadcasts it and replies when the message has its position. Without a
reply, the request goes to the next member, and so on until the deadline. The group ignores requests that it
has ordered before, so a message has one position however often it was requested. Requests of one priority are
numbered, and keep their order; several may be in flight.

A client is one incarnation of a process: a restarted client knows nothing of its earlier requests.
"""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Unpack

from priocast.core.errors import DeadlineExceeded, GroupClosed, InvalidInput, PeerFault, PriocastError
from priocast.core.identity import ProcessId, check_name
from priocast.core.message import Scope
from priocast.core.priority import ROUTINE, check_priority
from priocast.links.fifo_link import Frame
from priocast.membership.datagrams import CHANNEL, frame_of, read
from priocast.membership.packets import Reply, Request
from priocast.network.address import Address
from priocast.network.interface import Port
from priocast.runtime.arguments import addresses_of, check_payload, check_seconds, scope_of
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.node import Node, WithNode, open_node
from priocast.runtime.parameters import NodeParameters, check_keywords

SEND_SECONDS = 30.0
_REPLY_SECONDS_FIRST = 1.0
_REPLY_SECONDS_MAX = 8.0
_IN_FLIGHT_MAX = 64
_IN_FLIGHT_BYTES_MAX = 1024 * 1024


class _PendingRequest:
    """A request without a reply."""

    __slots__ = ("payload", "position", "scope")

    def __init__(self, payload: bytes, scope: Scope, position: "asyncio.Future[int | None]") -> None:
        self.payload = payload
        self.scope = scope
        self.position = position


class Client:
    """A process that sends to a group without being a member of it; `open_client` yields one.

    `me` is its name and incarnation, `members` are the names of the processes that it can reach.
    """

    def __init__(self, node: Node, group: str) -> None:
        self._node = node
        self._group = check_name(group, "group")
        self.me = ProcessId(node.name, Incarnations(None, group, node.name).next())
        self._port: Port | None = None
        self._lanes: dict[int, _Lane] = {}
        self._closed: PriocastError | None = None
        self.members: list[str] = []

    async def __aenter__(self) -> "Client":
        self._port = self._node.network.open(self._group, self.me, self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.failed(GroupClosed(f"the client {self.me.name} of group {self._group!r} was closed"))
        if self._port is not None:
            self._port.close()

    async def send(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        timeout_seconds: float = SEND_SECONDS,
    ) -> int | None:
        """Have a member broadcast a message; return its position in the order.

        The position is None if the message has one that the replying member does not know. `payload`,
        `priority`, `safe` and `to` are those of `Group.broadcast`. After `timeout_seconds`,
        `DeadlineExceeded` is raised: the message may have a position or not, but it will not get one after a
        later message of its priority.
        """
        check_payload(payload)
        check_priority(priority)
        check_seconds("timeout_seconds", timeout_seconds)
        scope = scope_of(safe, to)
        if self._closed is not None or self._port is None:
            raise self._closed or GroupClosed("the client is not open: send within its 'async with'")
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = _Lane(self, priority)
        number, position = lane.add(payload, scope)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await position
        except TimeoutError:
            asked = f"asked: {', '.join(self.members)}" if self.members else "no member could be reached"
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: no member of group {self._group!r} replied "
                f"({asked}); the message may have a position or not"
            ) from None
        finally:
            lane.remove(number)

    def transmit(self, member: str, requests: list[Request]) -> None:
        """Send `requests` to `member`, in order; they may be lost. Called by the client itself."""
        if self._port is not None:
            self._port.send(member, [frame_of(request) for request in requests])
            self._port.flush()

    # Called by the network

    def reachable(self, peer: str) -> None:
        """The network can reach the process `peer`. Called by the network."""
        if peer not in self.members:
            self.members.append(peer)
        for lane in self._lanes.values():
            lane.on_reachable(peer)

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        """The `frames` arrived from `peer`. Called by the network."""
        for frame in frames:
            with suppress(PeerFault):  # members report and evict faulty members, a client only ignores them
                control = read(peer, frame) if frame.channel == CHANNEL else None
                if isinstance(control, Reply) and control.priority in self._lanes:
                    self._lanes[control.priority].on_reply(peer, control)

    def failed(self, error: PriocastError) -> None:
        """The network cannot continue: pending sends raise `error`. Called by the network."""
        if self._closed is None:
            self._closed = error
            for lane in self._lanes.values():
                lane.fail(error)


class _Lane:
    """The requests of one priority. They go to one member, in order, until it fails to reply."""

    def __init__(self, client: Client, priority: int) -> None:
        self._client = client
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

    def on_reply(self, peer: ProcessId, reply: Reply) -> None:
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
            if not self._client.members:
                return
            self._member = self._client.members[0]
        settled = next(iter(self._pending), self._number_next) - 1
        requests, size = [], 0
        for count, (number, pending) in enumerate(self._pending.items()):
            if count >= _IN_FLIGHT_MAX or (size and size + len(pending.payload) > _IN_FLIGHT_BYTES_MAX):
                break
            size += len(pending.payload)
            if number > self._sent_until:
                self._sent_until = number
                requests.append(Request(number, self._priority, pending.scope, pending.payload, settled))
        if requests:
            self._client.transmit(self._member, requests)
            self._set_timer()

    def _set_timer(self) -> None:
        """Wake up when a reply is overdue, or before: a timer that fires early does no harm."""
        if self._timer is None:
            self._timer = self._loop.call_at(self._waiting_since + self._timeout_seconds, self._on_timer)

    def _on_timer(self) -> None:
        """Without a reply in time, turn to the next member, with a longer timeout."""
        self._timer = None
        members = self._client.members
        if not self._pending or not members:
            return
        if self._loop.time() < self._waiting_since + self._timeout_seconds:
            self._set_timer()
            return
        self._timeout_seconds = min(2 * self._timeout_seconds, _REPLY_SECONDS_MAX)
        index = members.index(self._member) + 1 if self._member in members else 0
        self._send_all_to(members[index % len(members)])


def open_client(group: str, *, client: str, **parameters: Unpack[NodeParameters]) -> WithNode[Client]:
    """Send to a group without being a member, as an asynchronous context manager that yields the `Client`.

    - `group`: the name of the group.
    - `client`: the name of this process, different from that of any member or other client.
    - `parameters`: those of `open_node`. `peers` are the addresses of one or more members. Members reply over
      a connection to the client: `listen` is by default a free port of the address that reaches the first of
      them.
    """
    check_keywords(open_client, parameters, NodeParameters)
    if parameters.get("hub") is not None or parameters.get("network") is not None:
        parameters.setdefault("size", 1)
    else:
        members = addresses_of(parameters.get("peers") or ())
        if not members:
            raise InvalidInput("a client needs peers=, the addresses of one or more members")
        parameters["peers"] = [str(address) for address in members]
        parameters["listen"] = parameters.get("listen") or str(_address_towards(members[0]))
    node = open_node(client, **parameters)
    return WithNode(node, Client(node, group))


def _address_towards(peer: Address) -> Address:
    """An address of this host that the peer can reach, with any free port; nothing is sent to find it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(*peer, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as unconnected:
            unconnected.connect(address)
            return Address(unconnected.getsockname()[0], 0)
    except OSError as error:
        raise InvalidInput(
            f"no route to {peer}: {error.strerror or error}; check the host name, or pass listen="
        ) from error
