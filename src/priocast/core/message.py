"""Messages, and the batches that they travel in.

Everything between `broadcast` and delivery moves *batches*: consecutive messages of one sender and one
level whose payloads are one block of bytes, so that queueing, ordering and sending cost the same for one
message as for a thousand. A block is opened where the application consumes the messages, or where a window
cuts a batch in two.
"""

from typing import Annotated

import msgspec

from priocast.core.decoding import UNREADABLE
from priocast.core.identity import NAME_LENGTH_MAX, MessageId, Number, ProcessId
from priocast.core.priority import HIGHEST
from priocast.core.stamp import Stamp
from priocast.core.view import ViewId

CONTROL = HIGHEST + 1
"""The level of a layer's own messages in the order below it; they are never delivered to an application."""

BATCH_COUNT_MAX = 4096
BATCH_BYTES_CUT = 60 * 1024
"""Longer batches are cut. One of this length fits into the largest datagram, beside 80 link headers."""

PAYLOAD_BYTES_MAX = 1024 * 1024
BLOCK_BYTES_MAX = PAYLOAD_BYTES_MAX + 64 * 1024
CLIENT_LENGTH_MAX = 2 * NAME_LENGTH_MAX
"""A client is named by its process id: a name and an incarnation."""

TRACEPARENT_LENGTH = 55

_SCOPE_LENGTH = msgspec.Meta(max_length=256)

_encode = msgspec.msgpack.Encoder().encode
_decode_block = msgspec.msgpack.Decoder(list[bytes]).decode


class Scope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a sender asked for besides a position: the same for all messages of a batch.

    `safe`: deliver only when every member of the view has received the message. `to`: deliver only at the
    members with these names; at all if empty. `client`: the client on whose behalf a member broadcast it, and
    the number of its request. `traceparent`: the trace context that the sender gave, as W3C writes it.
    """

    safe: bool = False
    to: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)], ...], _SCOPE_LENGTH] = ()
    client: Annotated[str, msgspec.Meta(max_length=CLIENT_LENGTH_MAX)] = ""
    request: Number = 0
    traceparent: Annotated[str, msgspec.Meta(max_length=TRACEPARENT_LENGTH)] = ""

    def includes(self, member: ProcessId) -> bool:
        """Whether messages of this scope are delivered at this member."""
        return not self.to or member.name in self.to


TO_ALL = Scope()


class Batch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` messages of one sender and one level, numbered from `first` on.

    In a prioritised group the level is the priority. In a plain group all messages have level 0 and
    `priorities` holds one byte per message: the requested priority, which the order ignores.
    """

    sender: ProcessId
    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    first: Number
    count: Annotated[int, msgspec.Meta(ge=1, le=BATCH_COUNT_MAX)]
    block: Annotated[bytes, msgspec.Meta(max_length=BLOCK_BYTES_MAX)]
    priorities: Annotated[bytes, msgspec.Meta(max_length=BATCH_COUNT_MAX)] = b""
    scope: Scope = TO_ALL

    def payloads(self) -> list[bytes]:
        """Decode the block. One that cannot be read has empty messages: the same at every member.

        A block is decoded where its messages have their positions, and they must keep them: it is too late
        to reject it.
        """
        return self.readable_payloads() or [b""] * self.count

    def readable_payloads(self) -> list[bytes] | None:
        """Decode the block; None if it cannot be read, or has another number of messages."""
        try:
            payloads = _decode_block(self.block)
        except UNREADABLE:
            return None
        return payloads if len(payloads) == self.count else None

    def priority_of(self, index: int) -> int:
        """The priority that the index-th message was broadcast with."""
        return self.priorities[index] if index < len(self.priorities) else min(self.level, HIGHEST)

    @property
    def urgency(self) -> int:
        """The level that decides when the batch leaves a queue.

        Control messages come first. A batch of a plain view that is sent again in a prioritised view precedes
        all messages: earlier messages must not be overtaken by later ones of the same priority.
        """
        return HIGHEST if self.priorities else self.level

    def in_line(self) -> "Batch":
        """The same messages with one priority each, so that later messages do not overtake them.

        Control messages have no priorities, and nothing overtakes them.
        """
        if self.priorities or self.level == CONTROL:
            return self
        return msgspec.structs.replace(self, priorities=bytes([self.level]) * self.count)

    def after(self, count: int) -> "Batch":
        """The batch without its first messages."""
        if not count:
            return self
        payloads, priorities = self.payloads()[count:], self.priorities[count:]
        return pack(self.sender, self.level, self.first + count, payloads, priorities, self.scope)

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.first}+{self.count}"


class Reference(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The ids of messages: `count` of one sender and one level, numbered from `first` on."""

    sender: ProcessId
    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    first: Number
    count: Annotated[int, msgspec.Meta(ge=1, le=BATCH_COUNT_MAX)]

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.first}+{self.count}"


def reference_to(batch: Batch) -> Reference:
    """The reference to a batch's messages."""
    return Reference(batch.sender, batch.level, batch.first, batch.count)


def pack(
    sender: ProcessId,
    level: int,
    first: int,
    payloads: list[bytes],
    priorities: bytes = b"",
    scope: Scope = TO_ALL,
) -> Batch:
    """Encode payloads as a batch."""
    return Batch(sender, level, first, len(payloads), _encode(payloads), priorities, scope)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message as the application receives it."""

    sender: ProcessId
    level: int
    number: int
    priority: int
    payload: bytes
    scope: Scope = TO_ALL

    @property
    def id(self) -> MessageId:
        """The id of the message, the same at every member and in every trace."""
        return MessageId(self.sender, self.level, self.number)

    @property
    def traceparent(self) -> str:
        """The trace context that the sender gave (W3C); empty if it gave none."""
        return self.scope.traceparent


class OrderedBatch(msgspec.Struct):
    """A batch that has its position and waits for the application to consume it.

    `taken` counts the messages that the application has consumed so far. `dependencies` is the dependency
    vector: how many of each member's packets to all one must have received to know the position, by rank.
    `damaged`: the block was decoded and cannot be read. `stamp` is that of the first message, where the order
    has stamps.
    """

    view: ViewId
    position: int
    batch: Batch
    dependencies: tuple[int, ...] = ()
    taken: int = 0
    damaged: bool = False
    stamp: Stamp | None = None
    _payloads: list[bytes] | None = None

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of the whole batch, decoded once."""
        if self._payloads is None:
            readable = self.batch.readable_payloads()
            self.damaged = readable is None
            self._payloads = readable or self.batch.payloads()
        return self._payloads

    def cut(self, start: int, count: int) -> Batch:
        """`count` messages of the batch, from the one with this index on."""
        batch = self.batch
        if count == batch.count:
            return batch
        payloads, priorities = self.payloads[start : start + count], batch.priorities[start : start + count]
        return pack(batch.sender, batch.level, batch.first + start, payloads, priorities, batch.scope)

    def message(self, index: int) -> Message:
        """The index-th message of the batch."""
        batch = self.batch
        return Message(
            batch.sender,
            batch.level,
            batch.first + index,
            batch.priority_of(index),
            self.payloads[index],
            batch.scope,
        )
