"""What every class of protocol does alike, at the sender and at the destination.

A sender keeps its own messages until they have a place, so that the next view can send them again. A
destination tells those who put messages into the order how many of them its application has consumed:

- `FlowControlledProtocol`: one member at a time gives out places, and is told about all messages;
- `PacedProtocol`: every member sends by itself, and is told about its own ones.
"""

from collections.abc import Callable, Sequence

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet, Protocol
from priocast.core.view import View
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.grants import (
    FRAMES_PER_TURN,
    Consumed,
    Consumption,
    fill_frame,
)


class FlowControlledProtocol(Protocol):
    """The sender's and the destination's part where one member at a time gives out places.

    `in_flight` are the own messages that were sent and have no place yet.
    """

    def __init__(
        self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0, shares: int = 1
    ) -> None:
        super().__init__(me, view, options, position)
        self.in_flight = InFlight(options.submit_max, options.submit_bytes_max, options.prioritised)
        self._consumption = Consumption(options, shares)

    @property
    def settled(self) -> bool:
        return not (self.outgoing or self.in_flight.count)

    def unordered(self) -> list[Batch]:
        return self.in_flight.unordered() + super().unordered()

    def send_own(self, to: ProcessId | None, packet: Callable[[tuple[Batch, ...]], Packet]) -> None:
        """Send own messages, the most urgent first, as far as there is credit; to all, if to nobody."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked if to is None else to in self.blocked:
                return
            batches = fill_frame(self.outgoing, self.in_flight.room, self.in_flight.sent)
            if not batches:
                return
            if to is None:
                self.send_all(packet(batches))
            else:
                self.send(to, packet(batches))
        self.more_to_do()

    def place(self, batch: Batch, held: bool) -> None:
        """The batch is next in the order; `held` says that more wait for this member's grant."""
        self.append_ordered((batch,), held)

    def append_ordered(self, batches: Sequence[Batch], held: bool) -> None:
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
            self.in_flight.placed(batch)

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
