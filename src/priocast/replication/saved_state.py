"""A replicated state as bytes: what a joining member receives, and what a log begins with.

A member whose log is a part of the others' receives the rest of the entries only.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.identity import Number
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.view_reason import MEMBERS_MAX
from priocast.replication.commands import Body, CommandId, HistoryId, LogReport, LogTip, Recipients, Slot
from priocast.replication.lineage import Lineage
from priocast.replication.sessions import Sessions

SLOTTED_MAX = 65_536
ENTRIES_MAX = 1 << 24
ENTRY_BYTES_MAX = PAYLOAD_BYTES_MAX + 64 * 1024


class SlottedCommand(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A long command: `body` is what to execute in this slot."""

    slot: Slot
    body: Body
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)]


class SavedState(msgspec.Struct, frozen=True, array_like=True, tag="state"):
    """Everything that a joining replica needs; of another replica, so it is bounded."""

    views_before: Number
    positions: tuple[Number, Number]
    lineage: Lineage
    index: Number
    names: Recipients
    reports: Annotated[list[LogReport], msgspec.Meta(max_length=MEMBERS_MAX)] | None
    time_ns: Number
    sessions: Sessions
    slotted: Annotated[list[tuple[CommandId, SlottedCommand]], msgspec.Meta(max_length=SLOTTED_MAX)]
    machine: Annotated[bytes, msgspec.Meta(max_length=1 << 40)]


class LogTail(msgspec.Struct, frozen=True, array_like=True, tag="tail"):
    """The entries of a log from `first` on."""

    first: Number
    entries: Annotated[
        list[Annotated[bytes, msgspec.Meta(max_length=ENTRY_BYTES_MAX)]], msgspec.Meta(max_length=ENTRIES_MAX)
    ]


class LogBase(msgspec.Struct, frozen=True, array_like=True):
    """What a joining member has on its disk: where its log comes from, and where it ends."""

    history: HistoryId
    tip: LogTip


encode_state = msgspec.msgpack.Encoder().encode
decode_state: Callable[[bytes], SavedState | LogTail] = msgspec.msgpack.Decoder(SavedState | LogTail).decode
decode_base: Callable[[bytes], LogBase] = msgspec.msgpack.Decoder(LogBase).decode
