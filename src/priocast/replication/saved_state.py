"""A replicated state as bytes: what a joining member receives, and what a log begins with."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.view_reason import MEMBERS_MAX
from priocast.replication.commands import Body, CommandId, LogReport, Recipients, Slot
from priocast.replication.sessions import Sessions

SLOTTED_MAX = 65_536


class SlottedCommand(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A long command: `body` is what to execute in this slot."""

    slot: Slot
    body: Body
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)]


class SavedState(msgspec.Struct, frozen=True, array_like=True):
    """Everything that a joining replica needs; of another replica, so it is bounded."""

    views_before: Number
    positions: tuple[Number, Number]
    generation: Number
    index: Number
    voters: Recipients
    names: Recipients
    reports: Annotated[list[LogReport], msgspec.Meta(max_length=MEMBERS_MAX)] | None
    time_ns: Number
    sessions: Sessions
    slotted: Annotated[list[tuple[CommandId, SlottedCommand]], msgspec.Meta(max_length=SLOTTED_MAX)]
    machine: Annotated[bytes, msgspec.Meta(max_length=1 << 40)]


encode_state = msgspec.msgpack.Encoder().encode
decode_state: Callable[[bytes], SavedState] = msgspec.msgpack.Decoder(SavedState).decode
