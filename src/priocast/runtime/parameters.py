"""The keyword parameters of the public functions, as types.

The plain signatures of `open_node` and `Node.join` are the reference for names, types, defaults and meaning.
`join`, `join_blocking` and `open_client` accept the same keywords. They declare them as `Unpack[TypedDict]`:
type checkers and editors then know every keyword, and no signature has to be repeated in full. Type checkers
verify that each type here fits the signatures, and a test verifies that names and types are the same.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, cast

from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.network.interface import Network
from priocast.network.memory import MemoryHub
from priocast.network.security import AnyPath, TlsSecurity
from priocast.runtime.configuration import State
from priocast.services.options import ServiceOptions

Transport = Literal["tcp", "udp"]
"""What carries the frames between hosts."""

PartitionPolicy = Literal["primary", "partitionable"]
"""What a network partition does: only the side with a quorum continues, or every side does."""

DeliveryGuarantee = Literal["agreed", "safe"]
"""When a message is delivered: once it has its position, or once every member of the view has received it."""

OrderName = Literal[
    "auto",
    "sequencer-ub",
    "sequencer-bb",
    "sequencer-uub",
    "moving-ub",
    "moving-bb",
    "moving-uub",
    "token-ring",
    "causal-history",
    "all-ack",
    "deterministic-merge",
    "agreement-skeen",
    "agreement-sets",
    "agreement-proposal",
    "reorder",
    "reorder-locks",
    "adaptive",
]
"""The registered protocols, and `auto`. Layered orders, such as `time-parts/sequencer-ub`, are plain text."""


class NodeParameters(TypedDict, total=False):
    """The keyword parameters of `open_node`, which documents them."""

    listen: str | None
    peers: str | Iterable[str] | None
    transport: Transport
    advertise: str | None
    tls: TlsSecurity | None
    keys: Mapping[str, bytes | AnyPath] | None
    multicast: str | None
    datagram_bytes: int | None
    hub: MemoryHub | None
    network: Network | None
    size: int | None
    state_directory: AnyPath | None
    admin: str | None


class GroupParameters(TypedDict, total=False):
    """The keyword parameters of `Node.join`, which documents them."""

    order: OrderName | str
    options: OrderingOptions | None
    prioritised: bool | None
    membership: MembershipOptions | None
    founders: int | None
    policy: PartitionPolicy | None
    delivery: DeliveryGuarantee | None
    services: ServiceOptions | None
    state: State | None
    incarnation: int | None
    trace: AnyPath | None
    trace_journal: bool
    run: str
    labels: Mapping[str, str] | None
    start_seconds: float
    broadcast_seconds: float
    leave_seconds: float


class JoinParameters(NodeParameters, GroupParameters, total=False):
    """The keyword parameters of `join` and `join_blocking`: those of `open_node` and of `Node.join`."""


def split_parameters(parameters: JoinParameters) -> tuple[NodeParameters, GroupParameters]:
    """Separate what the node takes from what the group takes."""
    node = {name: value for name, value in parameters.items() if name in NodeParameters.__annotations__}
    group = {name: value for name, value in parameters.items() if name not in node}
    return cast("NodeParameters", node), cast("GroupParameters", group)


def check_keywords(called: Callable[..., Any], given: Mapping[str, object], known: type) -> None:
    """Raise the TypeError that an explicit signature would raise, with a suggestion."""
    names = list(known.__annotations__)
    for name in given:
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{called.__name__}() got an unexpected keyword argument {name!r}{hint}")
