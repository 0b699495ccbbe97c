"""What a node will run: made from a configuration file or from arguments, checked, not started yet."""

from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.network.security import TlsSecurity
from priocast.runtime.configuration import START_SECONDS
from priocast.runtime.node import Joining, Node, open_node
from priocast.runtime.parameters import Transport
from priocast.services.options import ServiceOptions

ORDER = "sequencer-ub"
SHUTDOWN_SECONDS = 10.0
WAIT_SECONDS_MAX = 3600.0


def check_wait(name: str, seconds: float) -> None:
    """Reject a timeout that is not positive, or longer than `WAIT_SECONDS_MAX`."""
    if not 0 < seconds <= WAIT_SECONDS_MAX:
        raise InvalidOption(
            f"{name} is {seconds:g}: must be above 0 and at most {WAIT_SECONDS_MAX:g} seconds"
        )


class AdminPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The admin endpoint of the node."""

    listen: str
    allow_remote: bool = False


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A group that the node joins. `key_file` contains the key that its members share over UDP."""

    name: str
    order: str = ORDER
    options: OrderingOptions
    membership: MembershipOptions
    services: ServiceOptions = ServiceOptions()
    key_file: Path | None = None
    trace: str | None = None
    trace_journal: bool = False


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A node and its groups. `peers` are the addresses of the other members."""

    name: str
    listen: str
    peers: tuple[str, ...]
    groups: tuple[GroupPlan, ...]
    advertise: str | None = None
    transport: Transport = "tcp"
    tls: TlsSecurity | None = None
    multicast: str | None = None
    datagram_bytes: int | None = None
    state_directory: Path | None = None
    admin: AdminPlan | None = None
    start_seconds: float = START_SECONDS
    shutdown_seconds: float = SHUTDOWN_SECONDS

    def __post_init__(self) -> None:
        check_wait("start_seconds", self.start_seconds)
        check_wait("shutdown_seconds", self.shutdown_seconds)

    def node(self) -> Node:
        """The node, as a context manager that starts and stops it."""
        return open_node(
            self.name,
            listen=self.listen,
            peers=self.peers,
            transport=self.transport,
            advertise=self.advertise,
            tls=self.tls,
            keys={group.name: group.key_file for group in self.groups if group.key_file},
            multicast=self.multicast,
            datagram_bytes=self.datagram_bytes,
            state_directory=self.state_directory,
        )

    def joining(self, node: Node, group: GroupPlan) -> Joining:
        """The membership in a group, as a context manager that joins and leaves it."""
        return node.join(
            group.name,
            order=group.order,
            options=group.options,
            prioritised=group.options.prioritised,
            membership=group.membership,
            services=group.services,
            trace=group.trace,
            trace_journal=group.trace_journal,
            start_seconds=self.start_seconds,
        )

    def describe(self) -> str:
        """A summary for people."""
        transports = {
            ("tcp", True): "TCP with TLS",
            ("tcp", False): "TCP without TLS: not encrypted, any process can join",
            ("udp", True): "UDP with group keys and certificates",
            ("udp", False): "UDP with group keys",
        }
        advertised = f", advertised as {self.advertise}" if self.advertise else ""
        lines = [
            f"{self.name} listens on {self.listen}{advertised}",
            f"  transport: {transports[self.transport, self.tls is not None]}",
            f"  peers: {', '.join(self.peers) or 'none'}",
            f"  state directory: {self.state_directory or 'none; incarnations are numbered by the clock'}",
            f"  admin: {self.admin.listen if self.admin else 'none'}",
        ]
        return "\n".join([*lines, *(line for group in self.groups for line in _group_summary(group))])


def _group_summary(group: GroupPlan) -> list[str]:
    membership, options = group.membership, group.options
    kind = f"prioritised (starvation: {options.starvation})" if options.prioritised else "plain"
    window = (
        f"{options.window} messages"
        if options.window
        else f"what the application consumes in {options.window_ms:g} ms"
    )
    return [
        f"group {group.name}: {group.order}, {kind}, {membership.policy}, {membership.delivery} delivery",
        f"  founders: {membership.founders}; heartbeat: {membership.heartbeat_ms:g} ms",
        f"  failed after: {membership.failure_ms:g} ms; evicted as slow after: {membership.slow_ms:g} ms",
        f"  window: {window}; queue: {options.queue_max:,} messages",
        f"  trace: {group.trace or 'none'}",
    ]
