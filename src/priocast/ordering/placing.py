"""What every class of protocol does alike, at the sender and at the destination.

A sender keeps its own messages until they have a place, so that the next view can send them again. A
destination tells those who put messages into the order how many of them its application has consumed:

- `PlacingProtocol`: one member at a time gives out places, and is told about all messages;
- `PacedProtocol`: every member sends by itself, and is told about its own ones.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, Protocol
from priocast.core.view import View
from priocast.ordering.credit import Outstanding
from priocast.ordering.flow import (
    FRAME_BATCHES_MAX,
    FRAMES_PER_TURN,
    Consumed,
    Consumption,
    Grants,
    fill_frame,
)
from priocast.ordering.submissions import Submissions


class PlacingProtocol(Protocol):
    """The sender's and the destination's part where one member at a time gives out places.

    `under_way` are the own messages that were sent and have no place yet.
    """

    def __init__(
        self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0, shares: int = 1
    ) -> None:
        super().__init__(me, view, options, position)
        self.under_way = Outstanding(options.submit_max, options.submit_bytes_max, options.prioritised)
        self._consumption = Consumption(options, shares)

    @property
    def settled(self) -> bool:
        return not (self.outgoing or self.under_way.count)

    def unordered(self) -> list[Batch]:
        return self.under_way.unordered() + super().unordered()

    def send_own(self, to: ProcessId | None, packet: Callable[[tuple[Batch, ...]], Packet]) -> None:
        """Send own messages, the most urgent first, as far as there is credit; to all, if to nobody."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked if to is None else to in self.blocked:
                return
            batches = fill_frame(self.outgoing, self.under_way.room, self.under_way.sent)
            if not batches:
                return
            if to is None:
                self.send_all(packet(batches))
            else:
                self.send(to, packet(batches))
        self.more_to_do()

    def place(self, batch: Batch, held: bool) -> None:
        """The batch is next in the order; `held` says that more wait for this member's grant."""
        self.place_together((batch,), held)

    def place_together(self, batches: Sequence[Batch], held: bool) -> None:
        """These batches, which whoever gave them their places counts as one, are next in the order."""
        count, size = sum(batch.count for batch in batches), sum(len(batch.block) for batch in batches)
        self._consumption.announced(self.view.coordinator, count, size)
        for batch in batches:
            self.queue(batch, held)

    def queue(self, batch: Batch, held: bool) -> None:
        """The batch, which was announced, is next in the order."""
        self.queue_ordered(batch)
        self._consumption.queued(batch.count, held)
        if batch.sender == self.me:
            self.under_way.placed(batch)

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        source = self.source(batch)
        report = self._consumption.consumed(source, count, now)
        if report is not None:
            self.report(source, report)

    def source(self, batch: Batch) -> ProcessId:
        """On whose account a message goes; the coordinator stands for whoever gives out places."""
        return self.view.coordinator

    def report(self, source: ProcessId, consumed: Consumed) -> None:
        """Tell what was consumed; anybody may be the next to give out places."""
        self.send_each(consumed)


class PacedProtocol(PlacingProtocol):
    """Every member sends its own messages to all, as far as its share of the window allows.

    A frame has at most `FRAME_BATCHES_MAX` batches, where what is answered to each is large.
    """

    FRAME_BATCHES_MAX: ClassVar[int] = FRAME_BATCHES_MAX

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        shares = len(view.members)
        super().__init__(me, view, options, position, shares)
        self.grants = Grants(view, options, shares)
        # A sender may know places that this member does not know yet: its credit says nothing here.
        self._submissions = Submissions(view, WINDOW_MAX)
        self._held = dict.fromkeys(view.members, False)

    def bottleneck(self) -> ProcessId | None:
        """Who could consume own messages that have a place; as long as they have none, nobody is to blame."""
        slowest = self._bottleneck()
        placed = self.grants.placed_count - self.under_way.count
        return slowest if slowest and self.grants.consumed_by(slowest) < placed else None

    # Sender

    def take_frame(self) -> tuple[tuple[Batch, ...], str]:
        """What is to be sent next, if anything, and the name of the member for which the rest waits."""
        batches = fill_frame(self.outgoing, self._room, self._leaves, self.FRAME_BATCHES_MAX)
        bottleneck = self._bottleneck() if batches else None
        return batches, bottleneck.name if bottleneck else ""

    def _bottleneck(self) -> ProcessId | None:
        return self.grants.bottleneck(self.outgoing.head_level()) if self.outgoing else None

    def _room(self, level: int) -> int:
        return min(self.under_way.room(level), self.grants.of_level(level))

    def _leaves(self, batch: Batch) -> None:
        self.under_way.sent(batch)
        self.grants.placed(batch)

    # Destination

    def accept(self, sender: ProcessId, batches: tuple[Batch, ...], bottleneck: str) -> None:
        """A member sent messages of its own: check that they are, and note whether it waits for us."""
        for batch in batches:
            self._submissions.check(sender, batch)
            self._consumption.announced(sender, batch.count, len(batch.block))
        self._held[sender] = bottleneck == self.me.name

    def place_next(self, batch: Batch) -> None:
        """Messages that were accepted are next in the order."""
        self._submissions.placed(batch)
        self.queue(batch, self._held[batch.sender])

    def source(self, batch: Batch) -> ProcessId:
        return batch.sender

    def report(self, source: ProcessId, consumed: Consumed) -> None:
        self.send(source, consumed)
