"""What a member is made of, life after life."""

from collections.abc import Callable

import msgspec

from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions


class State(msgspec.Struct, frozen=True):
    """The application's state, for new members: `save` gives all of it, `load` replaces it."""

    save: Callable[[], bytes]
    load: Callable[[bytes], None]


class Setting(msgspec.Struct, frozen=True):
    """What a member is made of, life after life."""

    group: str
    name: str
    order: str
    options: OrderingOptions
    membership: MembershipOptions
    state: State | None = None
