"""What a node is to run: made from a file or from arguments, checked, and not yet started."""

from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.network.security import TlsSecurity
from priocast.runtime.node import START_SECONDS, Joining, Node, open_node
from priocast.runtime.parameters import Transport

ORDER = "sequencer-ub"
SHUTDOWN_SECONDS = 10.0
WAIT_SECONDS_MAX = 3600.0


def check_wait(name: str, seconds: float) -> None:
    """Refuse a wait that is none, or that nobody sits out."""
    if not 0 < seconds <= WAIT_SECONDS_MAX:
        raise InvalidOption(f"{name} is {seconds:g}: it must be above 0, and at most {WAIT_SECONDS_MAX:g}")


class AdminPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the node answers questions about itself."""

    listen: str
    allow_remote: bool = False


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A group that the node is in; `key` is what its members share over UDP."""

    name: str
    order: str = ORDER
    options: OrderingOptions
    membership: MembershipOptions
    key: bytes = b""
    trace: Path | None = None
    trace_journal: bool = False


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One node and its groups. `peers` are the addresses of the others."""

    name: str
    listen: str
    peers: tuple[str, ...]
    groups: tuple[GroupPlan, ...]
    advertise: str | None = None
    transport: Transport = "tcp"
    tls: TlsSecurity | None = None
    multicast: str | None = None
    state_directory: Path | None = None
    admin: AdminPlan | None = None
    start_seconds: float = START_SECONDS
    shutdown_seconds: float = SHUTDOWN_SECONDS

    def __post_init__(self) -> None:
        check_wait("start_seconds", self.start_seconds)
        check_wait("shutdown_seconds", self.shutdown_seconds)

    def node(self) -> Node:
        """The node, to be entered."""
        return open_node(
            self.name,
            listen=self.listen,
            peers=self.peers,
            transport=self.transport,
            advertise=self.advertise,
            tls=self.tls,
            keys={group.name: group.key for group in self.groups if group.key},
            multicast=self.multicast,
            state_directory=self.state_directory,
        )

    def joining(self, node: Node, group: GroupPlan) -> Joining:
        """A group of the node's, to be entered."""
        return node.join(
            group.name,
            order=group.order,
            options=group.options,
            prioritised=group.options.prioritised,
            membership=group.membership,
            trace=group.trace,
            trace_journal=group.trace_journal,
            start_seconds=self.start_seconds,
        )

    def describe(self) -> str:
        """What was understood, for a person."""
        way = {"tcp": "TCP in the clear: whoever reaches it may join", "udp": "UDP, sealed by group keys"}
        known_as = f", known as {self.advertise}" if self.advertise else ""
        lines = [
            f"{self.name} listens on {self.listen}{known_as}",
            f"  over {'TCP with TLS' if self.tls else way[self.transport]}",
            f"  peers: {', '.join(self.peers) or 'none'}",
            f"  state directory: {self.state_directory or 'none; the clock tells its lives apart'}",
            f"  admin: {self.admin.listen if self.admin else 'none'}",
        ]
        return "\n".join([*lines, *(line for group in self.groups for line in _lines_of(group))])


def _lines_of(group: GroupPlan) -> list[str]:
    life, options = group.membership, group.options
    kind = f"prioritised (starvation: {options.starvation})" if options.prioritised else "plain"
    window = f"{options.window} messages" if options.window else f"by speed, {options.window_ms:g} ms"
    return [
        f"group {group.name}: {group.order}, {kind}, {life.policy}, {life.delivery} delivery",
        f"  founders: {life.founders}; heartbeat: {life.heartbeat_ms:g} ms",
        f"  failed after: {life.failure_ms:g} ms; too slow after: {life.slow_ms:g} ms",
        f"  window: {window}; queue: {options.queue_max:,} messages",
        f"  trace: {group.trace or 'none'}",
    ]
