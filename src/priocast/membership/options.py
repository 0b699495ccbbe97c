"""The options of a group's membership."""

from hashlib import blake2b
from typing import Any, Literal

import msgspec

from priocast.core import view_reason
from priocast.core.decoding import decode
from priocast.core.errors import InvalidOption
from priocast.core.options import check_durations, check_types
from priocast.core.protocol import OrderingOptions
from priocast.services.options import ServiceOptions

MEMBERS_MAX = view_reason.MEMBERS_MAX
_MILLISECOND = 1_000_000
_DIFFERENCES_SHOWN_MAX = 16
_VALUE_LENGTH_MAX = 64
_MISMATCHES_KEPT = 16

_decode_options = msgspec.json.Decoder(dict[str, Any]).decode


class MembershipOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a group handles joining, failures and partitions.

    `founders` is how many processes found the group together. `policy` is what a partition does: in a
    *primary* group only the majority continues, in a *partitionable* one each side continues. `delivery` is
    *agreed* (as soon as a message has a position) or *safe* (when every member of the view has received
    it).

    A process that is silent for `failure_ms` is suspected; later, on a network where silence is common. A
    member is evicted if the order waits longer than `slow_ms` for its application. `state`: the application
    has a state that a new member must restore first; `durability` is where its answers must be before they
    are given, in memory or on disks. `rejoin`: a member that was evicted rejoins with a new
    incarnation. `adapts`: the coordinator changes the order when the load calls for it.
    """

    founders: int
    policy: Literal["primary", "partitionable"] = "primary"
    delivery: Literal["agreed", "safe"] = "agreed"
    heartbeat_ms: float = 100.0
    failure_ms: float = 1_000.0
    slow_ms: float = 10_000.0
    state: bool = False
    durability: Literal["memory", "disk"] = "memory"
    rejoin: bool = True
    adapts: bool = False

    def __post_init__(self) -> None:
        if self.policy not in ("primary", "partitionable"):
            raise InvalidOption(f"policy is {self.policy!r}: choose 'primary' or 'partitionable'")
        if self.delivery not in ("agreed", "safe"):
            raise InvalidOption(f"delivery is {self.delivery!r}: choose 'agreed' or 'safe'")
        if self.durability not in ("memory", "disk"):
            raise InvalidOption(f"durability is {self.durability!r}: choose 'memory' or 'disk'")
        check_types(self)
        check_durations(self, "heartbeat_ms", "failure_ms", "slow_ms")
        if not 1 <= self.founders <= MEMBERS_MAX:
            raise InvalidOption(f"founders is {self.founders}: it must be between 1 and {MEMBERS_MAX}")
        if self.failure_ms < 3 * self.heartbeat_ms:
            raise InvalidOption(
                f"failure_ms is {self.failure_ms:g}: it must be at least three times heartbeat_ms, which is "
                f"{self.heartbeat_ms:g}, or one lost heartbeat evicts a member"
            )
        if self.slow_ms < self.failure_ms:
            raise InvalidOption(f"slow_ms is {self.slow_ms:g}: it must be at least failure_ms")

    def agreed_on(self, order: str, options: OrderingOptions, services: ServiceOptions | None = None) -> str:
        """The options that all members of a group must share, as a JSON object."""
        shared: dict[str, Any] = {"order": "auto" if self.adapts else order}
        shared |= msgspec.to_builtins(options) | msgspec.to_builtins(self)
        shared |= (services or ServiceOptions()).agreed_on()
        del shared["founders"], shared["rejoin"]
        return msgspec.json.encode(shared).decode()

    @property
    def primary(self) -> bool:
        """Whether only the majority continues after a partition."""
        return self.policy == "primary"

    @property
    def heartbeat_ns(self) -> int:
        """The time between two heartbeats."""
        return int(self.heartbeat_ms * _MILLISECOND)

    @property
    def failure_ns(self) -> int:
        """The silence after which a process is suspected."""
        return int(self.failure_ms * _MILLISECOND)

    @property
    def slow_ns(self) -> int:
        """How long the order waits for one member's application."""
        return int(self.slow_ms * _MILLISECOND)


class Mismatches:
    """How the options of other processes, by their names, differ from this member's: of the last few."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._by_name: dict[str, str] = {}

    def add(self, name: str, other: str) -> bool:
        """A process says that its options are these, as `agreed_on` returns them; return whether it is news.

        Then it is told those of this member, and can say at its side as well what differs.
        """
        text = f"{name} has other group options: {differences(self._own, other, name)}"
        is_news = self._by_name.pop(name, None) != text
        self._by_name[name] = text
        if len(self._by_name) > _MISMATCHES_KEPT:
            del self._by_name[next(iter(self._by_name))]
        return is_news

    def texts(self) -> list[str]:
        """A sentence for each process, the last one last."""
        return list(self._by_name.values())


def differences(own: str, other: str, name: str) -> str:
    """How the options of the process `name` differ from this member's; both as `agreed_on` returns them."""
    ours = _decode_options(own.encode())
    theirs = decode(_decode_options, other.encode(), name, "group options")
    found = [
        f"{option} is {_shown(ours, option)} here and {_shown(theirs, option)} at {name}"
        for option in sorted(ours | theirs)
        if _shown(ours, option) != _shown(theirs, option)
    ]
    return ", ".join(found[:_DIFFERENCES_SHOWN_MAX])


def _shown(options: dict[str, Any], option: str) -> str:
    return repr(options[option])[:_VALUE_LENGTH_MAX] if option in options else "unknown"


def hash_of_options(text: str) -> int:
    """Eight bytes that identify the options that all members of a group must share."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
