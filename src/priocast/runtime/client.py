"""A client: ordered sends from a process that is not a member.

    async with priocast.open_client("tickets", client="shop", peers=["127.0.0.1:7401", ...]) as client:
        position = await client.send(b"one seat", priority=priocast.URGENT)

A request goes to one member, which broadcasts it and answers when it has its place. If no answer comes, the
request goes to the next member, and so on until the deadline; the group passes over what it has ordered
before, so a message has one place however often it was asked for. Requests of one priority are numbered, and
keep their order; several may be under way.

A client is one life of a process: of what a former life sent, the next one knows nothing.
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
from priocast.membership.packets import ClientReply, ClientRequest
from priocast.network.address import Address
from priocast.network.interface import Port
from priocast.runtime.arguments import addresses_of, check_payload, check_seconds, scope_of
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.node import Node, WithNode, open_node
from priocast.runtime.parameters import NodeParameters, check_keywords

SEND_SECONDS = 30.0
_ANSWER_SECONDS_FIRST = 1.0
_ANSWER_SECONDS_MAX = 8.0
_UNDER_WAY_MAX = 64
_UNDER_WAY_BYTES_MAX = 1024 * 1024


class _Waiting:
    """A request that has no answer yet."""

    __slots__ = ("answered", "payload", "scope")

    def __init__(self, payload: bytes, scope: Scope, answered: "asyncio.Future[int | None]") -> None:
        self.payload = payload
        self.scope = scope
        self.answered = answered


class Client:
    """A process that sends into a group; entering it opens the way there, leaving it closes it."""

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
        self.failed(GroupClosed(f"{self.me.name} has stopped sending to {self._group}"))
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
        """Have a message broadcast; return its place in the order, or None if it has one that was not told.

        What `safe` and `to` ask for is the same as at a member. When the deadline passes without an answer,
        the message may have a place or not, but it will not get one after a later message of its priority.
        """
        check_payload(payload)
        check_priority(priority)
        check_seconds("timeout_seconds", timeout_seconds)
        scope = scope_of(safe, to)
        if self._closed is not None or self._port is None:
            raise self._closed or GroupClosed("a client sends within its 'async with'")
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = _Lane(self, priority)
        number, answered = lane.add(payload, scope)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await answered
        except TimeoutError:
            raise DeadlineExceeded(
                f"no member of {self._group} answered within {timeout_seconds:g} s ({self._asked()}): "
                "the message may have its place or not"
            ) from None
        finally:
            lane.settle(number)

    def _asked(self) -> str:
        return f"asked {', '.join(self.members)}" if self.members else "none could be reached"

    def transmit(self, member: str, requests: list[ClientRequest]) -> None:
        """Send requests to a member, in order, or lose them."""
        if self._port is not None:
            self._port.send(member, [frame_of(request) for request in requests])
            self._port.flush()

    # What the network tells

    def reachable(self, peer: str) -> None:
        if peer not in self.members:
            self.members.append(peer)
        for lane in self._lanes.values():
            lane.on_reachable(peer)

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        for frame in frames:
            with suppress(PeerFault):  # the member that sent it has more to say to others
                control = read(peer, frame) if frame.channel == CHANNEL else None
                if isinstance(control, ClientReply) and control.priority in self._lanes:
                    self._lanes[control.priority].on_reply(peer, control)

    def failed(self, error: PriocastError) -> None:
        if self._closed is None:
            self._closed = error
            for lane in self._lanes.values():
                lane.stop(error)


class _Lane:
    """The requests of one priority. They are asked for at one member, in order, until it fails to answer."""

    def __init__(self, client: Client, priority: int) -> None:
        self._client = client
        self._priority = priority
        self._loop = asyncio.get_running_loop()
        self._number_next = 1
        self._waiting: dict[int, _Waiting] = {}
        self._asked_until = 0
        self._member = ""
        self._patience_seconds = _ANSWER_SECONDS_FIRST
        self._quiet_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, payload: bytes, scope: Scope) -> "tuple[int, asyncio.Future[int | None]]":
        """Take a request; return its number, and what will be its answer."""
        number = self._number_next
        self._number_next += 1
        waiting = _Waiting(payload, scope, self._loop.create_future())
        if not self._waiting:
            self._quiet_since = self._loop.time()
        self._waiting[number] = waiting
        self._ask()
        return number, waiting.answered

    def settle(self, number: int) -> None:
        """A request needs no answer any more: it has one, or was given up."""
        self._waiting.pop(number, None)
        first = next(iter(self._waiting), self._number_next)
        if first > number + 1 and first <= self._asked_until:
            self._asked_until = (
                first - 1
            )  # the member may have missed one before it: it must hear that it may
        self._ask()

    def on_reply(self, peer: ProcessId, reply: ClientReply) -> None:
        """A member has answered."""
        waiting = self._waiting.get(reply.number)
        if waiting is None or waiting.answered.done():
            return
        self._patience_seconds = _ANSWER_SECONDS_FIRST
        self._quiet_since = self._loop.time()
        if reply.reason:
            waiting.answered.set_exception(PeerFault(f"{peer.name} refused the message: {reply.reason}"))
        else:
            waiting.answered.set_result(reply.position if reply.position >= 0 else None)

    def on_reachable(self, peer: str) -> None:
        """A member can be reached; if it was asked before, that may be lost."""
        if self._member in ("", peer):
            self._ask_again(peer)

    def stop(self, error: PriocastError) -> None:
        """There will be no answers any more."""
        if self._timer is not None:
            self._timer.cancel()
        for waiting in self._waiting.values():
            if not waiting.answered.done():
                waiting.answered.set_exception(error)

    def _ask_again(self, member: str) -> None:
        self._member = member
        self._asked_until = 0
        self._quiet_since = self._loop.time()
        self._ask()

    def _ask(self) -> None:
        """Ask for what has not been asked for at this member, as much as may be under way."""
        if not self._member:
            if not self._client.members:
                return
            self._member = self._client.members[0]
        settled = next(iter(self._waiting), self._number_next) - 1
        requests, size = [], 0
        for count, (number, waiting) in enumerate(self._waiting.items()):
            if count >= _UNDER_WAY_MAX or (size and size + len(waiting.payload) > _UNDER_WAY_BYTES_MAX):
                break
            size += len(waiting.payload)
            if number > self._asked_until:
                self._asked_until = number
                requests.append(
                    ClientRequest(number, self._priority, waiting.scope, waiting.payload, settled)
                )
        if requests:
            self._client.transmit(self._member, requests)
            self._set_timer()

    def _set_timer(self) -> None:
        """Be there when an answer is overdue; a timer that comes too early does no harm."""
        if self._timer is None:
            self._timer = self._loop.call_at(self._quiet_since + self._patience_seconds, self._on_timer)

    def _on_timer(self) -> None:
        """If no answer came in time, turn to the next member, and be more patient with it."""
        self._timer = None
        members = self._client.members
        if not self._waiting or not members:
            return
        if self._loop.time() < self._quiet_since + self._patience_seconds:
            self._set_timer()
            return
        self._patience_seconds = min(2 * self._patience_seconds, _ANSWER_SECONDS_MAX)
        index = members.index(self._member) + 1 if self._member in members else 0
        self._ask_again(members[index % len(members)])


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
    """An address of ours that the peer can reach, with any free port; nothing is sent to find it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(*peer, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as unconnected:
            unconnected.connect(address)
            return Address(unconnected.getsockname()[0], 0)
    except OSError as error:
        raise InvalidInput(
            f"cannot find the way to {peer}: {error.strerror or error}; is the name right?"
        ) from error
