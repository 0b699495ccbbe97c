"""Messages, and the batches that they travel in.

Everything between `broadcast` and delivery moves *batches*: consecutive messages of one sender and one
level whose payloads are one block of bytes, so that queueing, ordering and sending cost the same for one
message as for a thousand. A block is opened where the application takes the messages, or where a window
cuts a batch in two.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import ForeignFrame
from priocast.core.identity import MessageId, ProcessId

BATCH_COUNT_MAX = 4096
BATCH_BYTES_CUT = 64 * 1024
PAYLOAD_BYTES_MAX = 1024 * 1024
_BLOCK_BYTES_MAX = PAYLOAD_BYTES_MAX + 64 * 1024

_encode = msgspec.msgpack.Encoder().encode
_decode_block = msgspec.msgpack.Decoder(list[bytes]).decode


class Batch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` messages of one sender and one level, numbered from `first` on.

    In a prioritised group the level is the priority. In a plain group everything has level 0 and
    `priorities` says, a byte a message, which priorities were asked for (and ignored by the order).
    """

    sender: ProcessId
    level: Annotated[int, msgspec.Meta(ge=0, le=255)]
    first: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1, le=BATCH_COUNT_MAX)]
    block: Annotated[bytes, msgspec.Meta(max_length=_BLOCK_BYTES_MAX)]
    priorities: Annotated[bytes, msgspec.Meta(max_length=BATCH_COUNT_MAX)] = b""

    def payloads(self) -> list[bytes]:
        """Open the block."""
        try:
            payloads = _decode_block(self.block)
        except msgspec.MsgspecError as error:
            raise ForeignFrame(f"the batch {self} has a damaged block: {error}") from error
        if len(payloads) != self.count:
            raise ForeignFrame(f"the batch {self} does not hold as many messages as it says")
        return payloads

    def priority_of(self, index: int) -> int:
        """The priority that the index-th message was broadcast with."""
        return self.priorities[index] if self.priorities else self.level

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.first}+{self.count}"


def pack(sender: ProcessId, level: int, first: int, payloads: list[bytes], priorities: bytes = b"") -> Batch:
    """Close payloads into a batch."""
    return Batch(sender, level, first, len(payloads), _encode(payloads), priorities)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message as the application gets it."""

    sender: ProcessId
    level: int
    number: int
    priority: int
    payload: bytes

    @property
    def id(self) -> MessageId:
        """The name of the message, the same at every member and in every trace."""
        return MessageId(self.sender, self.level, self.number)


class Stretch:
    """A batch that has its place in the order and waits for the application to consume it.

    `taken` counts the messages that the application took so far.
    """

    __slots__ = ("_payloads", "batch", "position", "taken")

    def __init__(self, position: int, batch: Batch) -> None:
        self.position = position
        self.batch = batch
        self.taken = 0
        self._payloads: list[bytes] | None = None

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of the whole batch, opened once."""
        if self._payloads is None:
            self._payloads = self.batch.payloads()
        return self._payloads

    def message(self, index: int) -> Message:
        """The index-th message of the batch."""
        batch = self.batch
        return Message(
            batch.sender, batch.level, batch.first + index, batch.priority_of(index), self.payloads[index]
        )
