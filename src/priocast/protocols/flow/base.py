"""Flow control of a protocol in which one member at a time assigns positions: sender and destination.

A sender keeps its own messages until they have a position, so that the next view's protocol can send them
again; its credit bounds how many there are. A destination reports how many messages its application has
consumed to those who assign positions. (`PacedProtocol` is for protocols in which every member sends at its
own pace, and receives reports about its own messages only.)
"""

from collections.abc import Callable, Sequence

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumption
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.frames import FRAMES_PER_TURN, fill_frame
from priocast.protocols.flow.ordering_protocol import OrderingProtocol


@mypyc_attr(allow_interpreted_subclasses=True)
class FlowControlledProtocol(OrderingProtocol):
    """Own messages in flight, and consumption reports.

    `in_flight` are the own messages that were sent and have no position yet. Reports go to `reports_to`, the
    only member that assigns positions, or to all members if it is None: any of them may be the next one.
    """

    def __init__(
        self,
        me: ProcessId,
        view: View,
        options: OrderingOptions,
        position: int = 0,
        reports_to: ProcessId | None = None,
    ) -> None:
        super().__init__(me, view, options, position)
        self.in_flight = InFlight(options.submit_max, options.submit_bytes_max, options.prioritised)
        self._reports_to = reports_to
        self._consumption = Consumption(options)
        # One account for all messages, regardless of the member that assigned their positions.
        self._account = view.coordinator

    @property
    def settled(self) -> bool:
        return not (self.outgoing.count or self.in_flight.count)

    def unordered(self) -> list[Batch]:
        return self.in_flight.unordered() + super().unordered()

    def send_own(self, to: ProcessId | None, packet: Callable[[tuple[Batch, ...]], Packet]) -> None:
        """Send own messages to a member (None: to all), the most urgent first, within the credit."""
        for _ in range(FRAMES_PER_TURN):
            if not self.outgoing.count or (self.blocked if to is None else to in self.blocked):
                return
            batches = fill_frame(self.outgoing, self.in_flight.room, self.in_flight.sent)
            if not batches:
                return
            if to is None:
                self.send_all(packet(batches))
            else:
                self.send(to, packet(batches))
        self.more_to_do()

    def append_ordered(self, batches: Sequence[Batch], is_bottleneck: bool) -> None:
        """Append batches to the order that the member which assigned their positions counted as one.

        `is_bottleneck` says that further messages wait for this member to grant more.
        """
        count = size = 0
        for batch in batches:
            self.queue_ordered(batch)
            count += batch.count
            size += len(batch.block)
            if batch.sender == self.me:
                self.in_flight.ordered(batch)
        self._consumption.announced(self._account, count, size)
        self._consumption.window.queued(count, is_bottleneck)

    def on_undeliverable(self) -> None:
        self._consumption.window.application_waits()

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        report = self._consumption.consumed(self._account, count, now)
        if report is None:
            return
        if self._reports_to is None:
            self.send_each(report)
        else:
            self.send(self._reports_to, report)
