"""A node: one process on one network, which may be a member of many groups.

    async with priocast.open_node("a", listen="127.0.0.1:7401", peers=[...]) as node:
        async with node.join("tickets") as tickets, node.join("audit") as audit:
            ...

`priocast.join` is the short form for a process that is in one group only.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from priocast.advice.choice import resolve_order
from priocast.core.errors import InvalidInput
from priocast.core.identity import ProcessId, check_name
from priocast.core.protocol import OrderingOptions
from priocast.membership.observer import Observer
from priocast.membership.options import MembershipOptions
from priocast.network.interface import Network
from priocast.network.memory import MemoryHub, MemoryNetwork
from priocast.network.security import AnyPath, TlsSecurity
from priocast.network.tcp import TcpNetwork
from priocast.network.udp import UdpNetwork
from priocast.runtime.adaptation import Adaptation
from priocast.runtime.arguments import (
    address_of,
    addresses_of,
    check_incarnation,
    check_kind,
    check_order_name,
    check_seconds,
    check_size,
    check_trace,
    check_way,
    keys_of,
    membership_of,
    ordering_of,
    path_of,
)
from priocast.runtime.configuration import MemberConfiguration, State
from priocast.runtime.driver import Driver
from priocast.runtime.group import Group
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.tracing import Tracing

START_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class Node:
    """A process that may be in many groups; entering it opens its network, leaving it closes it."""

    def __init__(self, name: str, network: Network, founders: int, state_directory: Path | None) -> None:
        self.name = name
        self.network = network
        self.groups: dict[str, Driver] = {}
        self._founders = founders
        self._state_directory = state_directory

    async def __aenter__(self) -> "Node":
        await self.network.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.network.close()

    def join(
        self,
        group: str,
        *,
        order: str = "sequencer-ub",
        options: OrderingOptions | None = None,
        prioritised: bool | None = None,
        membership: MembershipOptions | None = None,
        founders: int | None = None,
        policy: str | None = None,
        delivery: str | None = None,
        state: State | None = None,
        incarnation: int | None = None,
        trace: AnyPath | None = None,
        trace_journal: bool = False,
        run: str = "",
        labels: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> "Joining":
        """Join a group, as an asynchronous context manager.

        All members must name the same group, order and options; the order `auto` is chosen by the group's
        size and, while it runs, by its load. `founders` processes found it together, by
        default this one and all its peers; whoever comes later is taken in. `policy` says what a cut does
        (*primary*: the majority goes on; *partitionable*: each side does), `delivery` whether a message is
        delivered when it has its place (*agreed*) or when every member holds it (*safe*). What is given by
        one of these names, or as `prioritised`, goes before what `membership` and `options` say; what is not
        given is as they say, and else *primary*, *agreed* and prioritised. `state` lets a new member take
        over the application's state. `trace` is a directory to record the run in, with `trace_journal` so
        that nothing is missing should this process be killed.
        """
        check_name(group, "group")
        check_order_name(order)
        check_incarnation(incarnation)
        check_seconds("start_seconds", start_seconds, above=0)
        named = {"founders": founders, "policy": policy, "delivery": delivery}
        life = membership_of(membership, self._founders, state, **named)
        ordering = ordering_of(options, prioritised)
        order, life = resolve_order(order, ordering, life)
        configuration = MemberConfiguration(group, self.name, order, ordering, life, state)
        check_trace(trace_journal, run, labels)
        directory = path_of("trace", trace)
        tracing = None
        if directory is not None:
            tracing = Tracing(directory, run or group, dict(labels or {}), configuration, trace_journal)
        return Joining(self, configuration, incarnation, self._state_directory, tracing, start_seconds)


class Joining:
    """What `join` returns: entering it joins the group, leaving it leaves the group."""

    def __init__(
        self,
        node: Node,
        configuration: MemberConfiguration,
        incarnation: int | None,
        state_directory: Path | None,
        tracing: Tracing | None,
        start_seconds: float,
    ) -> None:
        self._node = node
        self._configuration = configuration
        self._incarnation = incarnation
        self._state_directory = state_directory
        self._tracing = tracing
        self._start_seconds = start_seconds
        self._driver: Driver | None = None
        self._adapting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Group:
        node, configuration = self._node, self._configuration
        if configuration.group in node.groups:
            raise InvalidInput(f"{node.name} is in the group {configuration.group!r} already")
        if self._tracing:
            self._tracing.prepare()
        incarnations = Incarnations(self._state_directory, configuration.group, node.name)
        try:
            driver = Driver(configuration, node.network, incarnations, self._incarnation, self._observe)
            self._driver = node.groups[configuration.group] = driver
            await driver.start(self._start_seconds)
            if self._tracing:
                assert driver.member.view is not None
                self._tracing.describe(driver.member.view)
        except BaseException:
            await self._end(0)
            raise
        if configuration.membership.adapts:
            self._adapting = asyncio.create_task(Adaptation(driver).run())
        return Group(driver)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(CLOSE_SECONDS if kind is None else 0)

    async def _end(self, seconds: float) -> None:
        """Leave, as far as there is something to leave; nothing goes on, whatever goes wrong."""
        if self._adapting is not None:
            self._adapting.cancel()
        try:
            if self._driver is not None:
                await self._driver.close(seconds)
        finally:
            self._driver = None
            self._node.groups.pop(self._configuration.group, None)
            if self._tracing:
                self._tracing.close()

    def _observe(self, me: ProcessId) -> Observer | None:
        return self._tracing.open(me) if self._tracing else None


class NodeWithGroup:
    """What `priocast.join` returns: a node and its only group, entered and left together."""

    def __init__(self, node: Node, joining: Joining) -> None:
        self._node = node
        self._joining = joining
        self._stack = AsyncExitStack()

    @property
    def node(self) -> Node:
        """The node that the group is on."""
        return self._node

    async def __aenter__(self) -> Group:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._node)
            group = await stack.enter_async_context(self._joining)
            self._stack = stack.pop_all()
        return group

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)


def open_node(
    name: str,
    *,
    listen: str | None = None,
    peers: Iterable[str] | None = None,
    hub: MemoryHub | None = None,
    size: int | None = None,
    transport: str = "tcp",
    advertise: str | None = None,
    tls: TlsSecurity | None = None,
    keys: Mapping[str, bytes] | None = None,
    multicast: str | None = None,
    state_directory: AnyPath | None = None,
) -> Node:
    """A process on a network, as an asynchronous context manager.

    Over TCP: `listen` is this process's address, `peers` are those of others; `tls` proves who is who. Over
    UDP (`transport="udp"`): the same, `keys` holds a key for each group, and `multicast` an address for what
    goes to all. Within one process: `hub` and `size`. `state_directory` keeps the incarnations.
    """
    check_name(name, "member")
    check_kind("hub", hub, MemoryHub | None, "a priocast.MemoryHub()")
    check_kind("tls", tls, TlsSecurity | None, "priocast.TlsSecurity(certificate, key, authority)")
    check_size(size)
    directory = path_of("state_directory", state_directory)
    others = None if peers is None else addresses_of(peers)
    count = size if others is None else len(others) + 1
    if count is None or (hub is None) == (listen is None):
        raise InvalidInput(
            "give either listen= and peers= (a network), or hub= and size= (within one process)"
        )
    if transport not in ("tcp", "udp"):
        raise InvalidInput(f"transport is {transport!r}: choose 'tcp' or 'udp'")
    way = transport if hub is None else "memory"
    check_way(way, tls=tls, advertise=advertise, keys=keys, multicast=multicast)
    if hub is not None:
        return Node(name, MemoryNetwork(hub, name), count, directory)
    assert listen is not None
    address = address_of(listen, any_port=True)
    if transport == "tcp":
        advertised = None if advertise is None else address_of(advertise)
        tcp = TcpNetwork(name, address, others or [], advertise=advertised, security=tls)
        return Node(name, tcp, count, directory)
    known = keys_of(keys)
    group_address = None if multicast is None else address_of(multicast)
    incarnation = Incarnations(directory, "node", name).next()
    udp = UdpNetwork(
        name, address, others or [], keys=known, multicast=group_address, incarnation=incarnation
    )
    return Node(name, udp, count, directory)


def join(group: str, *, member: str, **arguments: Any) -> NodeWithGroup:
    """Join a group, as an asynchronous context manager: `open_node` and `Node.join` in one.

    The arguments are those of both.
    """
    of_node = {name: arguments.pop(name) for name in list(arguments) if name in _NODE_ARGUMENTS}
    node = open_node(member, **of_node)
    return NodeWithGroup(node, node.join(group, **arguments))


_NODE_ARGUMENTS = frozenset(open_node.__kwdefaults__ or ())
