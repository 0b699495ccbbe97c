"""A client: ordered sends from a process that is not a member.

    async with priocast.open_client("tickets", client="shop", peers=["127.0.0.1:7401", ...]) as client:
        position = await client.send(b"one seat", priority=priocast.URGENT)

A request goes to one member, which broadcasts it and replies when the message has its position. Without a
reply, the request goes to the next member, and so on until the deadline. The group ignores requests that it
has ordered before, so a message has one position however often it was requested. Requests of one priority are
numbered, and keep their order; several may be in flight.

A client is one incarnation of a process: a restarted client knows nothing of its earlier requests, unless it
is given the same incarnation and repeats them.
"""

import asyncio
import socket
from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import TypeVar, Unpack

from priocast.core.errors import DeadlineExceeded, GroupClosed, InvalidInput, PeerFault
from priocast.core.identity import ProcessId, check_name
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.quality import Quality
from priocast.core.role import Role
from priocast.membership.packets import ClientSend
from priocast.network.address import Address
from priocast.runtime.arguments import (
    addresses_of,
    check_incarnation,
    check_kind,
    check_payload,
    check_seconds,
    discovery_of,
    recipients_of,
    scope_of,
)
from priocast.runtime.entering import Leave, left
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.node import Node, WithNode, make_node
from priocast.runtime.parameters import NodeParameters, check_keywords
from priocast.runtime.request_sender import RequestSender
from priocast.runtime.waits import logged_if_long
from priocast.services.outputs import SendReceipt

T = TypeVar("T")

SEND_SECONDS = 30.0


class Client:
    """A process that sends to a group without being a member of it; `open_client` yields one.

    `me` is its name and incarnation.
    """

    def __init__(self, node: Node, group: str, incarnation: int | None) -> None:
        self._node = node
        self._group = check_name(group, "group")
        self.me = ProcessId(node.name, incarnation or Incarnations(None, group, node.name).next())
        self._requests = RequestSender()
        self._sent = 0
        self._leave: Leave | None = None

    @property
    def members(self) -> list[str]:
        """The names of the processes of the group that can be reached."""
        return self._requests.members

    def left_by(self, leave: Leave) -> None:
        """The client was opened with `await`, without a block: `leave` is what `close` calls."""
        self._leave = leave

    async def close(self) -> None:
        """Close the client, if it was opened with `await`; the end of `async with` closes it by itself."""
        await left(self._leave, "client", "close")

    async def __aenter__(self) -> "Client":
        self._requests.open(self._node.network, self._group, self.me)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close(GroupClosed(f"the client {self.me.name} of group {self._group!r} was closed"))

    async def send(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = True,
        to: Iterable[str] | None = None,
        timeout_seconds: float = SEND_SECONDS,
    ) -> int | None:
        """Have a member broadcast a message; return its position in the order.

        The position is None if the message has one that the replying member does not know. `payload`,
        `priority`, `safe` and `to` are those of `Group.broadcast`. A reply is a promise, so `safe` is the
        default: with agreed delivery, a member that replies and is then evicted may have given a position
        that the others do not know. After `timeout_seconds`,
        `DeadlineExceeded` is raised: the message may have a position or not, but it will not get one after a
        later message of its priority.
        """
        check_payload(payload)
        check_priority(priority)
        check_seconds("timeout_seconds", timeout_seconds)
        scope = scope_of(safe, to)
        self._check_open()
        lane = self._requests.lane(priority)
        number, position = lane.add(payload, scope)
        try:
            return await self._wait_reply(position, timeout_seconds, "may have a position or not")
        finally:
            lane.remove(number)

    async def send_with(
        self,
        quality: Quality,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        to: Iterable[str] | None = None,
        timeout_seconds: float = SEND_SECONDS,
    ) -> SendReceipt:
        """Have a member send a message with a quality of service; return the receipt of the member.

        `quality`, `payload`, `priority` and `to` are those of `Group.send`. The message is sent at most once,
        by one member, which is its sender. After `timeout_seconds`, `DeadlineExceeded` is raised: the message
        may have been sent or not. A member that cannot send it replies with the reason: `PeerFault`.
        """
        check_kind("quality", quality, Quality, "a quality of service such as priocast.at_least(3)")
        check_payload(payload)
        check_priority(priority)
        check_seconds("timeout_seconds", timeout_seconds)
        names = recipients_of(to)
        if names == ():
            raise InvalidInput("`to` is empty: name at least one recipient, or leave it out for all members")
        self._check_open()
        self._sent += 1
        request = ClientSend(self._sent, priority, quality, names or (), payload)
        answered = await self._wait_reply(
            self._requests.send(request), timeout_seconds, "may have been sent or not"
        )
        if answered.message is None:
            raise PeerFault(f"a member rejected the message: {answered.reason}")
        return SendReceipt(
            message=answered.message,
            accepted=answered.accepted,
            answered=answered.answered,
            rejected=answered.rejected,
            missing=answered.missing,
            rounds=answered.rounds,
        )

    def _check_open(self) -> None:
        if not self._requests.is_open:
            raise self._requests.closed or GroupClosed("the client is not open: send within its 'async with'")

    async def _wait_reply(self, reply: Awaitable[T], timeout_seconds: float, doubt: str) -> T:
        """Wait for a reply; without one in time, say what is not known about the message."""
        try:
            with logged_if_long(f"client {self.me.name} has waited for a reply", self._why_no_reply):
                async with asyncio.timeout(timeout_seconds):
                    return await reply
        except TimeoutError:
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: no member of group {self._group!r} replied "
                f"({self._why_no_reply()}); the message {doubt}"
            ) from None

    def _why_no_reply(self) -> str:
        if self.members:
            return f"asked: {', '.join(self.members)}"
        missing = self._node.network.unreached()
        return f"no member could be reached{': ' if missing else ''}{', '.join(missing)}"


def open_client(
    group: str, *, client: str, incarnation: int | None = None, **parameters: Unpack[NodeParameters]
) -> WithNode[Client]:
    """Send to a group without being a member, as an asynchronous context manager that yields the `Client`.

    - `group`: the name of the group.
    - `client`: the name of this process, different from that of any member or other client.
    - `incarnation`: the number of this start of the process; by default, higher than all before. A process
      that repeats the requests of an earlier one, after a crash, passes the same number and sends the same
      messages in the same order: those that have a position do not get another one.
    - `parameters`: those of `open_node`. `peers` are the addresses of one or more members. Members reply over
      a connection to the client: `listen` is by default a free port of the address that reaches the first of
      them.
    """
    check_keywords(open_client, parameters, NodeParameters)
    check_incarnation(incarnation)
    if parameters.get("hub") is not None or parameters.get("network") is not None:
        parameters.setdefault("size", 1)
    else:
        discovery = discovery_of(parameters.get("peers"))
        if discovery is not None:
            members = [Address(*discovery.name)]
        else:
            members = addresses_of(parameters.get("peers") or ())
            parameters["peers"] = [str(address) for address in members]
        if not members:
            raise InvalidInput("a client needs peers=, the addresses of one or more members")
        parameters["listen"] = parameters.get("listen") or str(_address_towards(members[0]))
    node = make_node(client, Role.CLIENT, parameters)
    return WithNode(node, Client(node, group, incarnation))


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
