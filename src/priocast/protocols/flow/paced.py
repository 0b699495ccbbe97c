"""The base of protocols in which every member sends its messages to all, within its share of the window."""

from typing import ClassVar

import msgspec

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch
from priocast.core.protocol import WINDOW_MAX, OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumption
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX, fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.submission_validator import SubmissionValidator


@mypyc_attr(allow_interpreted_subclasses=True)
class PacedProtocol(OrderingProtocol):
    """Flow control by shares: each sender has its part of the window and learns what was consumed.

    `in_flight` holds this member's messages that were sent and are not ordered; `grants` is how many messages
    all members allow it to send. A frame has at most `FRAME_BATCHES_MAX` batches. A protocol in which members
    reply at length to each batch lowers that limit.
    """

    FRAME_BATCHES_MAX: ClassVar[int] = FRAME_BATCHES_MAX

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        shares = len(view.members)
        # sender
        self.in_flight = InFlight(options.submit_max, options.submit_bytes_max, options.prioritised)
        self.grants = Grants(view, options, shares)
        # destination
        # A sender may know positions that this member does not know yet, so its credit is no limit here.
        self._validator = SubmissionValidator(view, WINDOW_MAX)
        self._consumption = Consumption(options, shares)
        self._is_bottleneck_of = dict.fromkeys(view.members, False)

    @property
    def settled(self) -> bool:
        return not (self.outgoing.count or self.in_flight.count)

    def unordered(self) -> list[Batch]:
        return self.in_flight.unordered() + super().unordered()

    def inspect(self, now: int) -> ProtocolInspection:
        """The bottleneck could consume ordered messages of this member; unordered ones nobody can."""
        slowest = self._bottleneck()
        ordered = self.grants.ordered_count - self.in_flight.count
        is_late = slowest is not None and self.grants.consumed_by(slowest) < ordered
        return msgspec.structs.replace(super().inspect(now), bottleneck=slowest if is_late else None)

    # Sender

    def take_frame(self) -> tuple[tuple[Batch, ...], str]:
        """The batches to send next, if any, and the name of the member that the rest waits for."""
        batches = fill_frame(self.outgoing, self._room, self._sent, self.FRAME_BATCHES_MAX)
        bottleneck = self._bottleneck() if batches else None
        return batches, bottleneck.name if bottleneck else ""

    def _bottleneck(self) -> ProcessId | None:
        return self.grants.bottleneck(self.outgoing.head_level) if self.outgoing.count else None

    def _room(self, level: int) -> int:
        return min(self.in_flight.room(level), self.grants.room(level))

    def _sent(self, batch: Batch) -> None:
        self.in_flight.sent(batch)
        self.grants.ordered(batch)

    # Destination

    def accept(self, sender: ProcessId, batches: tuple[Batch, ...], bottleneck: str) -> None:
        """A member sent messages: check that they are its own, and note whether it waits for this member."""
        for batch in batches:
            self._validator.check(sender, batch)
            self._consumption.announced(sender, batch.count, len(batch.block))
        self._is_bottleneck_of[sender] = bottleneck == self.me.name

    def append(self, batch: Batch) -> None:
        """Messages that were accepted are next in the order."""
        self._validator.ordered(batch)
        self.queue_ordered(batch)
        self._consumption.window.queued(batch.count, self._is_bottleneck_of[batch.sender])
        if batch.sender == self.me:
            self.in_flight.ordered(batch)

    def on_undeliverable(self) -> None:
        self._consumption.window.application_waits()

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        report = self._consumption.consumed(batch.sender, count, now)
        if report is not None:
            self.send(batch.sender, report)
