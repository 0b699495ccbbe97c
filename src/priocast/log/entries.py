"""What a log holds: the messages that a member delivered and the views that it entered, in their order."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.identity import Name, Number, ProcessId
from priocast.core.message import CONTROL, PAYLOAD_BYTES_MAX
from priocast.core.priority import HIGHEST
from priocast.core.view import View
from priocast.core.view_reason import MEMBERS_MAX


class MessageEntry(msgspec.Struct, frozen=True, array_like=True, tag="message", gc=False):
    """A message that was delivered: its position, the number of its view, and what the sender gave."""

    position: Number
    view: Number
    sender: ProcessId
    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    number: Number
    priority: Annotated[int, msgspec.Meta(ge=0, le=HIGHEST)]
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]


class ViewEntry(msgspec.Struct, frozen=True, array_like=True, tag="view"):
    """A view that was entered, and the position of the next message."""

    position: Number
    view: View


class GenerationEntry(msgspec.Struct, frozen=True, array_like=True, tag="generation"):
    """The members begin together, for the first time or again, from what is before this entry.

    `voters` are the members whose disks count from here on. `history` identifies the first founding.
    """

    generation: Number
    history: Annotated[bytes, msgspec.Meta(max_length=64)]
    voters: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


LogEntry = MessageEntry | ViewEntry | GenerationEntry

encode_entry = msgspec.msgpack.Encoder().encode
decode_entry: Callable[[bytes], LogEntry] = msgspec.msgpack.Decoder(LogEntry).decode
