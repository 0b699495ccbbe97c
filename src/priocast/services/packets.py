"""The packets of the qualities of service. Each is independent: it may be lost, repeated or late.

    ServiceData       a transmission of a message, by its sender or by a recipient on its behalf
    Response          a recipient has the message, or cannot accept it
    StatusRequest     a recipient waits for a decision, or for a message that was sent before another one
    Closed            this process does not have the message, or no longer transmits it
    Undecided         the sender still collects responses
    MessageDecision   a message is accepted, at this insertion point, or rejected
    DecisionReceived  a recipient has the decision
    Inquiry           a monitor asks what a recipient knows about a message whose sender is gone
    Report            the answer
    TimeRequest       a member asks for the time
    TimeReply         the time of the coordinator's clock

Every number has a limit, and `validation` checks what a type cannot express.

A message has several units if the application sent several at once: one transmission carries them all, and
recipients queue and deliver them one by one. Messages that are alike may share a transmission (`outgoing`).
"""

from enum import IntEnum
from typing import Annotated

import msgspec

from priocast.core.identity import Number, ProcessId
from priocast.core.message import BATCH_COUNT_MAX, PAYLOAD_BYTES_MAX
from priocast.core.quality import Quality, QualityKind

RECIPIENTS_MAX = 256
HISTORY_MAX = 4096
HISTORY_RECIPIENTS_MAX = 8192
"""How many recipients all messages of a causal history have together when a message carries it."""

REASON_LENGTH_MAX = 256
DECISIONS_KEPT = 4096
"""How many decisions a sender and a recipient remember, so that others can ask for them."""

OPEN_MAX = 65536
"""How far the numbers of the messages that a sender transmits may be apart: recipients keep track of them."""

_POINT_LENGTH_MAX = 64

Recipients = Annotated[tuple[ProcessId, ...], msgspec.Meta(max_length=RECIPIENTS_MAX)]
InsertionPoint = Annotated[tuple[Number, ...], msgspec.Meta(max_length=_POINT_LENGTH_MAX)]
ReasonText = Annotated[str, msgspec.Meta(max_length=REASON_LENGTH_MAX)]
Epoch = Annotated[int, msgspec.Meta(ge=0, lt=2**40)]


class ServicePacket(msgspec.Struct, frozen=True, array_like=True):
    """The base of all packets of the qualities of service."""


class ServiceStream(IntEnum):
    """The messages of a process are numbered in three streams, by the protocol that carries them."""

    DISSEMINATED = 0
    ATOMIC = 1
    TIGHT = 2


STREAMS = {QualityKind.ATOMIC: ServiceStream.ATOMIC, QualityKind.TIGHT: ServiceStream.TIGHT}
"""The streams of the qualities with a decision; all others are disseminated."""


class TransmissionId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The number-th message that a process sent in a stream, from 1.

    A transmission that several messages share has the id of the first one.
    """

    sender: ProcessId
    stream: ServiceStream
    number: Number

    def __str__(self) -> str:
        return f"{self.sender}/{self.stream.name.lower()}/{self.number}"


class MessagePacket(ServicePacket, frozen=True):
    """A packet about one message."""

    id: TransmissionId


class Predecessor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A causal pair: a message that must be delivered first, at those of its recipients that deliver both."""

    id: TransmissionId
    recipients: Recipients


class ServiceData(MessagePacket, frozen=True, tag="data"):
    """The `retry`-th transmission of a message.

    `previous` has one number per recipient: that of the sender's message that this recipient must deliver
    before. `open_from` is the sender's first message that is still transmitted: earlier ones do not come
    again. `clock` is the sender's clock: the time of sending for delta, an insertion point that the message
    must follow for atomic and tight. `history` has the messages that must be delivered before this one.

    `unit_counts` is empty if all units are of one message. Otherwise several messages with consecutive
    numbers share the transmission, and it has the number of units of each.
    """

    retry: Number
    quality: Quality
    recipients: Recipients
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)]
    units: Annotated[
        tuple[Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)], ...],
        msgspec.Meta(min_length=1, max_length=BATCH_COUNT_MAX),
    ]
    open_from: Number = 0
    previous: Annotated[tuple[Number, ...], msgspec.Meta(max_length=RECIPIENTS_MAX)] = ()
    clock: InsertionPoint = ()
    history: Annotated[tuple[Predecessor, ...], msgspec.Meta(max_length=HISTORY_MAX)] = ()
    unit_counts: Annotated[tuple[Number, ...], msgspec.Meta(max_length=BATCH_COUNT_MAX)] = ()

    @property
    def message_count(self) -> int:
        """How many messages share this transmission."""
        return len(self.unit_counts) or 1


def repeated(data: ServiceData, retry: int) -> ServiceData:
    """The same message, transmitted for the `retry`-th time."""
    return msgspec.structs.replace(data, retry=retry)


class Response(MessagePacket, frozen=True, tag="response"):
    """`reason`: why the message cannot be accepted; empty if the recipient has it.

    `lowest` is the earliest insertion point that the recipient can accept, `before` that of the next message
    in its queue, which this one may overtake.
    """

    retry: Number
    reason: ReasonText = ""
    lowest: InsertionPoint = ()
    before: InsertionPoint = ()


class StatusRequest(MessagePacket, frozen=True, tag="status-request"):
    """The sender of this packet wants to know what became of a message."""


class Closed(MessagePacket, frozen=True, tag="closed"):
    """This process does not have the message, or no longer transmits it; it is in no causal history here."""


class Undecided(MessagePacket, frozen=True, tag="undecided"):
    """The sender of the message still collects responses."""


class MessageDecision(MessagePacket, frozen=True, tag="decision"):
    """`epoch` is 0 if the sender decided, and counts the monitors after it."""

    epoch: Epoch
    accepted: bool
    point: InsertionPoint = ()
    reason: ReasonText = ""


class DecisionReceived(MessagePacket, frozen=True, tag="decision-received"):
    """A recipient knows the decision of this epoch, or has answered a later monitor."""

    epoch: Epoch


class Inquiry(MessagePacket, frozen=True, tag="inquiry"):
    """A monitor of this epoch asks what the recipient knows."""

    epoch: Epoch


class Knowledge(IntEnum):
    """What a recipient knows about a message; it `WAITS` if it must learn something else first."""

    NOTHING = 0
    HELD = 1
    ACCEPTED = 2
    REJECTED = 3
    WAITS = 4


class Report(MessagePacket, frozen=True, tag="report"):
    """`retry` is the transmission that the recipient holds; the points are those of its response."""

    epoch: Epoch
    knowledge: Knowledge
    retry: Number = 0
    lowest: InsertionPoint = ()
    before: InsertionPoint = ()


class TimeRequest(ServicePacket, frozen=True, tag="time-request"):
    """The number-th request for the time."""

    number: Number


class TimeReply(ServicePacket, frozen=True, tag="time-reply"):
    """The answer to the request of the same number."""

    number: Number
    time: Number


AnyServicePacket = (
    ServiceData
    | Response
    | StatusRequest
    | Closed
    | Undecided
    | MessageDecision
    | DecisionReceived
    | Inquiry
    | Report
    | TimeRequest
    | TimeReply
)
