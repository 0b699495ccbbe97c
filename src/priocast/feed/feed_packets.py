"""What feeds and their readers say to each other: one question, one answer, over a connection.

    length (4 bytes) ─ msgpack                 one packet

A question names the group, so that a reader with the address of another group's feed is told so.
"""

import struct
from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.identity import Name, Number
from priocast.log.entries import MessageEntry

HEADER = struct.Struct(">I")
QUESTION_BYTES_MAX = 1024
ANSWER_BYTES_MAX = 64 * 1024 * 1024
MESSAGES_MAX = 1 << 16
PART_BYTES_MAX = 8 * 1024 * 1024
_TEXT_MAX = 4096

_Text = Annotated[str, msgspec.Meta(max_length=_TEXT_MAX)]


class RangeQuestion(msgspec.Struct, frozen=True, array_like=True, tag="range"):
    """Asks which positions the feed covers."""

    group: Name


class MessagesQuestion(msgspec.Struct, frozen=True, array_like=True, tag="messages"):
    """Asks for messages from the position `first` on, at most this many."""

    group: Name
    first: Number
    count_max: Annotated[int, msgspec.Meta(ge=1, le=MESSAGES_MAX)]


class RangeAnswer(msgspec.Struct, frozen=True, array_like=True, tag="range"):
    """The feed covers the positions from `begin` to `end`."""

    begin: Number
    end: Number


class MessagesAnswer(msgspec.Struct, frozen=True, array_like=True, tag="messages"):
    """Messages, and the position up to which there are no others."""

    messages: Annotated[list[MessageEntry], msgspec.Meta(max_length=MESSAGES_MAX)]
    end: Number


class TrimmedAnswer(msgspec.Struct, frozen=True, array_like=True, tag="trimmed"):
    """The position is not kept any more: the feed begins at `begin`."""

    begin: Number


class RejectedAnswer(msgspec.Struct, frozen=True, array_like=True, tag="rejected"):
    """The question cannot be answered, for this reason."""

    reason: _Text


FeedQuestion = RangeQuestion | MessagesQuestion
FeedAnswer = RangeAnswer | MessagesAnswer | TrimmedAnswer | RejectedAnswer

decode_question: Callable[[bytes], FeedQuestion] = msgspec.msgpack.Decoder(FeedQuestion).decode
decode_answer: Callable[[bytes], FeedAnswer] = msgspec.msgpack.Decoder(FeedAnswer).decode
_encode = msgspec.msgpack.Encoder().encode


def packed(packet: FeedQuestion | FeedAnswer) -> bytes:
    """A packet as it goes over a connection."""
    body = _encode(packet)
    return HEADER.pack(len(body)) + body
