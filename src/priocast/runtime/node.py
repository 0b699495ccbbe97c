"""A node: one process on one network, which may be a member of several groups.

    async with priocast.open_node("a", listen="127.0.0.1:7401", peers=[...]) as node:
        async with node.join("tickets") as tickets, node.join("audit") as audit:
            ...

`priocast.join` is the short form for a process that is in one group only.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, Unpack

from priocast.advice.choice import resolve_order
from priocast.core.errors import InvalidInput
from priocast.core.extras import check_installed
from priocast.core.identity import check_name
from priocast.core.protocol import OrderingOptions
from priocast.core.role import Role
from priocast.membership.options import MembershipOptions
from priocast.network.interface import HasKeys, Network, properties_of
from priocast.network.memory import MemoryHub
from priocast.network.security import AnyPath, TlsSecurity
from priocast.runtime.adaptation import Adaptation
from priocast.runtime.arguments import (
    check_incarnation,
    check_order_name,
    check_trace,
    deadlines_of,
    location_of,
    membership_of,
    ordering_of,
    path_of,
    services_of,
)
from priocast.runtime.configuration import (
    BROADCAST_SECONDS,
    LEAVE_SECONDS,
    START_SECONDS,
    MemberConfiguration,
    State,
)
from priocast.runtime.driver import Driver
from priocast.runtime.entering import Enterable, Leavable
from priocast.runtime.group import Group
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.network_choice import choose_network
from priocast.runtime.parameters import (
    DeliveryGuarantee,
    JoinParameters,
    NodeParameters,
    OrderName,
    PartitionPolicy,
    Transport,
    check_keywords,
    split_parameters,
)
from priocast.runtime.storage import Storage
from priocast.runtime.tracing import Tracing
from priocast.services.options import ServiceOptions

if TYPE_CHECKING:
    from priocast.runtime.admin.admin_service import AdminService

L = TypeVar("L", bound=Leavable)


class Node:
    """A process on a network. Entering it (`async with`) starts the network, leaving it closes the network.

    `name` is the process's name, `network` its network, and `groups` holds a driver for each group that it is
    in now. `state_directory` is where it keeps files. Make one with `open_node`.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        founders: int,
        state_directory: Path | None,
        admin: str | None = None,
    ) -> None:
        self.name = name
        self.network = network
        self.groups: dict[str, Driver] = {}
        self.state_directory = state_directory
        self._founders = founders
        self._admin = self.serve_admin(admin) if admin is not None else None

    async def __aenter__(self) -> "Node":
        await self.network.start()
        try:
            if self._admin is not None:
                await self._admin.__aenter__()
        except BaseException:
            await self.network.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._admin is not None:
                await self._admin.__aexit__(kind, error, trace)
        finally:
            await self.network.close()

    def serve_admin(self, listen: str, *, allow_remote: bool = False) -> "AdminService":
        """Serve the admin endpoint of this node, as an asynchronous context manager.

        Meanwhile the live page, metrics and status are at `listen`, and the events of all groups go to the
        loggers below `priocast`, exactly as `priocast node` has them. It yields the service, whose `url` is
        the address of the page.

        - `listen`: the address, as `host:port`. Port 0 means any free port. Everybody who can connect can
          read names, addresses and load there, so it is an address of this machine.
        - `allow_remote`: whether other machines may read there.
        """
        check_installed("h11", "prometheus_client")
        from priocast.runtime.admin.admin_service import AdminService  # h11 takes 15 ms to import

        return AdminService(self, listen, allow_remote=allow_remote)

    def reload_keys(self) -> None:
        """Read the files of certificates, revoked certificates and group keys again, and use them.

        Members stay in their groups. Connections with certificates that are not trusted any more are closed.
        If a file is unusable, `UnusableKey` is raised and nothing changes.
        """
        if isinstance(self.network, HasKeys):
            self.network.reload_keys()

    def join(
        self,
        group: str,
        *,
        order: OrderName | str = "sequencer-ub",
        options: OrderingOptions | None = None,
        prioritised: bool | None = None,
        membership: MembershipOptions | None = None,
        founders: int | None = None,
        policy: PartitionPolicy | None = None,
        delivery: DeliveryGuarantee | None = None,
        services: ServiceOptions | None = None,
        state: State | None = None,
        incarnation: int | None = None,
        trace: AnyPath | None = None,
        trace_journal: bool = False,
        run: str = "",
        labels: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
        broadcast_seconds: float = BROADCAST_SECONDS,
        leave_seconds: float = LEAVE_SECONDS,
    ) -> "Joining":
        """Join a group, as an asynchronous context manager that yields the `Group`.

        All members must use the same order and options, except for `founders` and `rejoin`.

        - `group`: the name of the group.
        - `order`: the protocol that orders messages, as listed by `priocast orders`. With `auto` the group
          chooses it by its size and, while it runs, by its load.
        - `options`: window, queue sizes, starvation policy and other options of the protocol.
        - `prioritised`: whether urgent messages go first (the default). Overrides `options`.
        - `membership`: failure detection and other options of the group.
        - `founders`: how many processes form the first view together; by default this one and all its peers.
          Processes that start later join. Overrides `membership`.
        - `policy`: what a network partition does. `primary` (the default): only the side with a quorum
          continues. `partitionable`: every side continues. Overrides `membership`.
        - `delivery`: `agreed` (the default): a message is delivered once it has its position. `safe`: once
          every member of the view has received it. Overrides `membership`.
        - `services`: options of the qualities of service, and the bounds of your network that they need.
        - `state`: saves and loads the application's state, for members that join later.
        - `incarnation`: the number of this start of the process; by default, higher than all before.
        - `trace`: a directory to record the run in, or a URL that pyarrow can write to (`s3://bucket/run`).
        - `trace_journal`: write every record at once, so that the trace is complete if the process is killed.
        - `run`, `labels`: the name of the run and texts to describe it, stored with the trace.
        - `start_seconds`: how long to wait for the first view. Then `DeadlineExceeded` is raised.
        - `broadcast_seconds`: the same for a `broadcast` that waits for room, unless the call says otherwise.
        - `leave_seconds`: how long leaving waits until what was broadcast here is ordered.
        """
        check_name(group, "group")
        check_order_name(order)
        check_incarnation(incarnation)
        ordering, named = ordering_of(options, prioritised), {"policy": policy, "delivery": delivery}
        of_group = membership_of(membership, self._founders, state, founders=founders, **named)
        order, of_group = resolve_order(order, ordering, of_group)
        deadlines = deadlines_of(start_seconds, broadcast_seconds, leave_seconds)
        of_services = services_of(services, properties_of(self.network))
        made = group, self.name, order, ordering, of_group, state, deadlines, of_services
        configuration = MemberConfiguration(*made)
        tracing = _tracing_of(trace, run, labels, configuration, journal=trace_journal)
        return Joining(self, configuration, incarnation, self.state_directory, tracing)


def _tracing_of(
    trace: AnyPath | None,
    run: str,
    labels: Mapping[str, str] | None,
    configuration: MemberConfiguration,
    *,
    journal: bool,
) -> Tracing | None:
    """What records the run, if there is a directory to record it in."""
    location = location_of("trace", trace)
    check_trace(location, journal, run, labels)
    if location is None:
        return None
    check_installed("pyarrow")
    return Tracing(location, run or configuration.group, dict(labels or {}), configuration, journal)


class Joining(Enterable[Group]):
    """What `Node.join` returns: entering it joins the group, leaving it leaves the group; so does `await`."""

    def __init__(
        self,
        node: Node,
        configuration: MemberConfiguration,
        incarnation: int | None,
        state_directory: Path | None,
        tracing: Tracing | None,
    ) -> None:
        self._node = node
        self._configuration = configuration
        self._incarnation = incarnation
        self._state_directory = state_directory
        self._tracing = tracing
        self._driver: Driver | None = None
        self._storage: Storage | None = None
        self._adapting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Group:
        node, configuration = self._node, self._configuration
        if configuration.group in node.groups:
            raise InvalidInput(f"{node.name} is already in group {configuration.group!r}: leave it first")
        if self._tracing:
            await asyncio.to_thread(self._tracing.prepare)
        incarnations = Incarnations(self._state_directory, configuration.group, node.name)
        storage = self._storage = Storage(incarnations, self._tracing)
        try:
            driver = Driver(configuration, node.network, storage, self._incarnation)
            self._driver = node.groups[configuration.group] = driver
            await driver.start()
            if self._tracing:
                assert driver.member.view is not None
                await asyncio.to_thread(self._tracing.describe, driver.member.view)
        except BaseException:
            await self._end(0)
            raise
        if configuration.membership.adapts:
            self._adapting = asyncio.create_task(Adaptation(driver).run())
        return Group(driver)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(self._configuration.deadlines.leave_seconds if kind is None else 0)

    async def _end(self, seconds: float) -> None:
        """Leave, as far as the join got; whatever fails, nothing keeps running."""
        if self._adapting is not None:
            self._adapting.cancel()
        try:
            if self._driver is not None:
                await self._driver.close(seconds)
        finally:
            self._driver = None
            self._node.groups.pop(self._configuration.group, None)
            if self._storage is not None:
                self._storage.close()


class WithNode(Enterable[L]):
    """A node and the group or client on it, entered and left together.

    `join` and `open_client` return one; `node` is the node.
    """

    def __init__(self, node: Node, inner: AbstractAsyncContextManager[L]) -> None:
        self.node = node
        self._inner = inner
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> L:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.node)
            entered = await stack.enter_async_context(self._inner)
            self._stack = stack.pop_all()
        return entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)


def open_node(
    name: str,
    *,
    listen: str | None = None,
    peers: str | Iterable[str] | None = None,
    transport: Transport = "tcp",
    advertise: str | None = None,
    tls: TlsSecurity | None = None,
    keys: Mapping[str, bytes | AnyPath] | None = None,
    multicast: str | None = None,
    datagram_bytes: int | None = None,
    hub: MemoryHub | None = None,
    network: Network | None = None,
    size: int | None = None,
    state_directory: AnyPath | None = None,
    admin: str | None = None,
) -> Node:
    """A process on a network, as an asynchronous context manager that yields the `Node`.

    Give one of `listen` (with `peers`), `hub` (with `size`) and `network` (with `size`).

    - `name`: the name of this process, unique in its groups.
    - `listen`: the address of this process, as `host:port`. Port 0 means any free port.
    - `peers`: the addresses of the others; it is enough to know some that know the rest. Or `dns:name:port`:
      all addresses that the name has, looked up again and again (TCP only; pass `size`, too).
    - `transport`: `tcp` (the default) or `udp`.
    - `advertise`: the address at which others reach this process, if it is not `listen`. TCP only.
    - `tls`: certificates with which processes prove their names. Over UDP, each pair of processes then has
      keys of its own.
    - `keys`: a key of 32 bytes for each group, by its name, or the path of the file that it is in. UDP only,
      required.
    - `multicast`: an address for what goes to all members. UDP only.
    - `datagram_bytes`: how large datagrams are at most, 1,400 by default. Larger ones cost less, if the
      network carries them whole. UDP only.
    - `hub`: where the processes of one event loop meet, for tests and embedded groups.
    - `network`: your own implementation of `priocast.network.interface.Network`.
    - `size`: how many processes found a group by default; with `peers`, this one and all of them.
    - `state_directory`: where to keep the incarnation numbers. Without it, the clock provides them.
    - `admin`: an address of this machine, as `host:port`, for the live page, metrics and status of this node,
      as `Node.serve_admin` serves them. By default there are none.
    """
    parameters: NodeParameters = {
        "listen": listen,
        "peers": peers,
        "transport": transport,
        "advertise": advertise,
        "tls": tls,
        "keys": keys,
        "multicast": multicast,
        "datagram_bytes": datagram_bytes,
        "hub": hub,
        "network": network,
        "size": size,
        "state_directory": state_directory,
        "admin": admin,
    }
    return make_node(name, Role.MEMBER, parameters)


def make_node(name: str, role: Role, parameters: NodeParameters) -> Node:
    """The node that `open_node` returns, for a process that has no higher role than this in any group."""
    check_name(name, "member")
    directory = path_of("state_directory", parameters.get("state_directory"))
    network, founders = choose_network(name, role, parameters, directory)
    return Node(name, network, founders, directory, parameters.get("admin"))


def join(group: str, *, member: str, **parameters: Unpack[JoinParameters]) -> WithNode[Group]:
    """Join a group, as an asynchronous context manager that yields the `Group`.

    `await join(…)` yields it without a block; then `await group.leave()` leaves.

    This is `open_node` and `Node.join` in one, for a process that is in one group only.

    - `group`: the name of the group.
    - `member`: the name of this process, unique in the group.
    - `parameters`: those of `open_node` (which network) and of `Node.join` (which kind of group).
    """
    check_keywords(join, parameters, JoinParameters)
    of_node, of_group = split_parameters(parameters)
    node = open_node(member, **of_node)
    return WithNode(node, node.join(group, **of_group))
