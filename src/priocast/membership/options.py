"""What a user may choose about the life of a group."""

from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.options import check_durations, check_types
from priocast.core.protocol import OrderingOptions

MEMBERS_MAX = 64
_MILLISECOND = 1_000_000


class MembershipOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a group lives.

    `founders` is how many processes found the group together. `policy` says what a cut does: in a *primary*
    group the majority goes on and the others stop, in a *partitionable* one each side goes on. `delivery` is
    *agreed* (as soon as a message has its place) or *safe* (when every member of the view holds it).

    A process that is silent for `failure_ms` is suspected; on a network where silence is common, later. A
    member for whose application the order waits longer than `slow_ms` is put out. `state` says that the
    application has a state that a new member must take over before it goes on. `rejoin` lets a member that
    was put out come back under a new incarnation. `adapts` lets the coordinator change the order as the load
    calls for it.
    """

    founders: int
    policy: Literal["primary", "partitionable"] = "primary"
    delivery: Literal["agreed", "safe"] = "agreed"
    heartbeat_ms: float = 100.0
    failure_ms: float = 1_000.0
    slow_ms: float = 10_000.0
    state: bool = False
    rejoin: bool = True
    adapts: bool = False

    def __post_init__(self) -> None:
        if self.policy not in ("primary", "partitionable"):
            raise InvalidOption(f"policy is {self.policy!r}: choose 'primary' or 'partitionable'")
        if self.delivery not in ("agreed", "safe"):
            raise InvalidOption(f"delivery is {self.delivery!r}: choose 'agreed' or 'safe'")
        check_types(self)
        check_durations(self, "heartbeat_ms", "failure_ms", "slow_ms")
        if not 1 <= self.founders <= MEMBERS_MAX:
            raise InvalidOption(f"founders is {self.founders}: a group has 1 to {MEMBERS_MAX} of them")
        if self.failure_ms < 3 * self.heartbeat_ms:
            raise InvalidOption(
                f"failure_ms is {self.failure_ms:g}: it must be at least three times heartbeat_ms, which is "
                f"{self.heartbeat_ms:g}, or one lost heartbeat puts a member out"
            )
        if self.slow_ms < self.failure_ms:
            raise InvalidOption(f"slow_ms is {self.slow_ms:g}: it must be at least failure_ms")

    def agreed_on(self, order: str, options: OrderingOptions) -> str:
        """What all members of a group must agree on, as a person reads it."""
        life = msgspec.structs.replace(self, rejoin=True, founders=1)
        named = "auto" if self.adapts else order
        return f"{named} {msgspec.json.encode(options).decode()} {msgspec.json.encode(life).decode()}"

    @property
    def primary(self) -> bool:
        """Whether only the majority goes on."""
        return self.policy == "primary"

    @property
    def heartbeat_ns(self) -> int:
        """The time between two signs of life."""
        return int(self.heartbeat_ms * _MILLISECOND)

    @property
    def failure_ns(self) -> int:
        """The silence after which a process is suspected."""
        return int(self.failure_ms * _MILLISECOND)

    @property
    def slow_ns(self) -> int:
        """How long the order waits for one member's application."""
        return int(self.slow_ms * _MILLISECOND)
