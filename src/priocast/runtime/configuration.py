"""The static configuration of a member, the same for all its incarnations."""

from collections.abc import Callable
from typing import Literal

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.services.options import ServiceOptions

START_SECONDS = 30.0
BROADCAST_SECONDS = 60.0
LEAVE_SECONDS = 5.0


class State(msgspec.Struct, frozen=True):
    """The application's state, for members that join later: `save` returns all of it, `load` replaces it.

    An application that has a part of the state when it joins says so: `base` returns what it has, in at most
    256 bytes. A member that is asked for its state then returns `save_since` of that base. `durability` says
    whether answers of the application wait for disks: members must agree on it.
    """

    save: Callable[[], bytes]
    load: Callable[[bytes], None]
    base: Callable[[], bytes] | None = None
    save_since: Callable[[bytes], bytes] | None = None
    durability: Literal["memory", "disk"] = "memory"

    def __post_init__(self) -> None:
        for name in ("save", "load"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name} of a State must be a function, not {getattr(self, name)!r}")

    def snapshot(self, base: bytes = b"") -> bytes:
        """The result of `save`, or of `save_since` for those who have a `base`, checked."""
        data = self.save_since(base) if base and self.save_since is not None else self.save()
        if type(data) is not bytes:
            raise InvalidInput(f"save of a State must return bytes, not {type(data).__name__}")
        return data


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long calls wait, in seconds: for the first view, for room, and for the agreement to leave."""

    start_seconds: float = START_SECONDS
    broadcast_seconds: float = BROADCAST_SECONDS
    leave_seconds: float = LEAVE_SECONDS


class MemberConfiguration(msgspec.Struct, frozen=True):
    """Everything that defines a member, except for its incarnation."""

    group: str
    name: str
    order: str
    options: OrderingOptions
    membership: MembershipOptions
    state: State | None = None
    deadlines: Deadlines = Deadlines()
    services: ServiceOptions = ServiceOptions()

    def snapshot(self, base: bytes) -> bytes:
        """The application's state, for those who have a `base` of it; empty if it has none."""
        return self.state.snapshot(base) if self.state else b""
