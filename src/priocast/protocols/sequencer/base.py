"""What the classes with a fixed sequencer share: one member, the coordinator of the view, gives the places.

- `FixedSequencer`: who that is, and that members report to it what they have consumed;
- `QueueingSequencer`: it has the messages in a queue, from which they get their places by priority.
"""

from abc import abstractmethod

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Consumed, Grants, fill_frame


class FixedSequencer(FlowControlledProtocol):
    """The view's coordinator is the sequencer; all members report to it."""

    PRIORITIES_ACT = "sequencing"

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._sequencer = view.coordinator
        self._number_next = position
        self._grants = Grants(view, options)

    def report(self, source: ProcessId, consumed: Consumed) -> None:
        self.send(self._sequencer, consumed)

    def _on_report(self, sender: ProcessId, consumed: Consumed) -> None:
        self._check_sequencer(sender)
        self._grants.granted(sender, consumed.total, consumed.window)

    def _check_sequencer(self, sender: ProcessId) -> None:
        if self.me != self._sequencer:
            raise PeerFault(f"{sender} takes {self.me} for the sequencer, which is {self._sequencer}")


class QueueingSequencer(FixedSequencer):
    """The sequencer has all messages without a place in its queue, and orders what members have room for."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        size = len(view.members)
        self._incoming = PriorityQueue(
            options.policy, size * options.submit_max, size * options.submit_bytes_max
        )

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._incoming.count

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self._incoming or self.in_flight.count)

    def bottleneck(self) -> ProcessId | None:
        return self._grants.bottleneck(self._incoming.head_level()) if self._incoming else None

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._incoming.waiting(now) if self.me == self._sequencer else super().waiting(now)

    def _order(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            if self.blocked:
                return
            position = self._number_next
            batches = fill_frame(self._incoming, self._grants.of_level, self._number)
            if not batches:
                return
            bottleneck = self.bottleneck()
            self.send_all(self._ordered(position, batches, bottleneck.name if bottleneck else ""))
        self.more_to_do()

    def _number(self, batch: Batch) -> None:
        self._number_next += batch.count
        self._grants.placed(batch)

    @abstractmethod
    def _ordered(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Packet:
        """The packet that gives these messages their places, from this position on."""
