"""What a member is made of, life after life."""

from collections.abc import Callable

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions


class State(msgspec.Struct, frozen=True):
    """The application's state, for new members: `save` gives all of it, `load` replaces it."""

    save: Callable[[], bytes]
    load: Callable[[bytes], None]

    def __post_init__(self) -> None:
        for name in ("save", "load"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name} of a State is {getattr(self, name)!r}: give a function")

    def snapshot(self) -> bytes:
        """What `save` gives now."""
        data = self.save()
        if type(data) is not bytes:
            raise InvalidInput(f"save of a State gave {type(data).__name__}: it must give bytes")
        return data


class MemberConfiguration(msgspec.Struct, frozen=True):
    """What a member is made of, life after life."""

    group: str
    name: str
    order: str
    options: OrderingOptions
    membership: MembershipOptions
    state: State | None = None
