"""What the classes share in which every member sends by itself: each sender has a share of the window."""

from typing import ClassVar

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch
from priocast.core.protocol import WINDOW_MAX, OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.consumption import Consumption
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX, fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.submission_validator import SubmissionValidator


class PacedProtocol(FlowControlledProtocol):
    """Every member sends its own messages to all, as far as its share of the window allows.

    A frame has at most `FRAME_BATCHES_MAX` batches, where what is answered to each is large.
    """

    FRAME_BATCHES_MAX: ClassVar[int] = FRAME_BATCHES_MAX

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        shares = len(view.members)
        super().__init__(me, view, options, position)
        self._consumption = Consumption(options, shares)
        self.grants = Grants(view, options, shares)
        # A sender may know places that this member does not know yet: its credit says nothing here.
        self._validator = SubmissionValidator(view, WINDOW_MAX)
        self._held = dict.fromkeys(view.members, False)

    def inspect(self, now: int) -> ProtocolInspection:
        """The bottleneck is a member that could consume own messages; those without a position it cannot."""
        slowest = self._bottleneck()
        placed = self.grants.ordered_count - self.in_flight.count
        is_late = slowest is not None and self.grants.consumed_by(slowest) < placed
        return msgspec.structs.replace(super().inspect(now), bottleneck=slowest if is_late else None)

    # Sender

    def take_frame(self) -> tuple[tuple[Batch, ...], str]:
        """What is to be sent next, if anything, and the name of the member for which the rest waits."""
        batches = fill_frame(self.outgoing, self._room, self._leaves, self.FRAME_BATCHES_MAX)
        bottleneck = self._bottleneck() if batches else None
        return batches, bottleneck.name if bottleneck else ""

    def _bottleneck(self) -> ProcessId | None:
        return self.grants.bottleneck(self.outgoing.head_level()) if self.outgoing else None

    def _room(self, level: int) -> int:
        return min(self.in_flight.room(level), self.grants.room(level))

    def _leaves(self, batch: Batch) -> None:
        self.in_flight.sent(batch)
        self.grants.ordered(batch)

    # Destination

    def accept(self, sender: ProcessId, batches: tuple[Batch, ...], bottleneck: str) -> None:
        """A member sent messages of its own: check that they are, and note whether it waits for us."""
        for batch in batches:
            self._validator.check(sender, batch)
            self._consumption.announced(sender, batch.count, len(batch.block))
        self._held[sender] = bottleneck == self.me.name

    def place_next(self, batch: Batch) -> None:
        """Messages that were accepted are next in the order."""
        self._validator.ordered(batch)
        self.queue_ordered(batch)
        self._consumption.window.queued(batch.count, self._held[batch.sender])
        if batch.sender == self.me:
            self.in_flight.ordered(batch)

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        report = self._consumption.consumed(batch.sender, count, now)
        if report is not None:
            self.send(batch.sender, report)
