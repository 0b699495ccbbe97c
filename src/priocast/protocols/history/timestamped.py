"""The base of orders by Lamport timestamps: what members stamp, and how each derives the order from it.

A member's packets to all have rising timestamps, and a message can be ordered when every member has sent a
timestamp as late: nothing can come before it any more. A member that has nothing to send says so in a null
message; the protocols differ in when it does.
"""

from abc import abstractmethod
from collections import deque
from heapq import heapify, heappop, heappush, heapreplace

from priocast.core.compiling import mypyc_attr
from priocast.core.errors import PeerFault
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.history.timestamped_packets import NullMessage, StampedData

_NEVER = 1 << 64


@mypyc_attr(allow_interpreted_subclasses=True)
class TimestampedHistory(PacedProtocol):
    """A member's part in the protocol; all members do the same."""

    PRIORITIES_ACT = "delivering"
    PACKETS = (StampedData, NullMessage, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._bucket = options.bucket if options.prioritised else 1
        # sender
        self._clock = 0
        self._sent_timestamp = 0
        self._awaited_timestamp = 0
        # destination
        self._histories = [_MemberHistory() for _ in view.members]
        self._complete = 0
        self._slowest_count = len(view.members)
        self._unordered: list[tuple[int, int]] = []

    @property
    def idle(self) -> bool:
        return self.settled and not self._unordered

    def on_turn(self, event: Turn, now: int) -> None:
        """Stamp and send what may be sent, or else the null message that others wait for, if it is due."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                if self.is_awaited and self.null_is_due(now):
                    self._send_null()
                return
            self._sent_timestamp = self._clock = self._clock + 1
            self.send_all(StampedData(self._clock, batches, bottleneck))
        self.more_to_do()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case StampedData(timestamp=timestamp, batches=batches, bottleneck=bottleneck):
                self.accept(event.sender, batches, bottleneck)
                self._receive(event.sender, timestamp, batches, event.packet_id)
                self._awaited_timestamp = max(self._awaited_timestamp, self._bucket_end(timestamp))
            case NullMessage(timestamp=timestamp):
                self._receive(event.sender, timestamp, (), event.packet_id)
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    @property
    def is_awaited(self) -> bool:
        """Whether messages that this member has received wait for a packet of it."""
        return self._sent_timestamp < self._awaited_timestamp

    @abstractmethod
    def null_is_due(self, now: int) -> bool:
        """Whether a member that is awaited and has nothing to send says so now."""

    def _send_null(self) -> None:
        """Send nothing more up to the timestamp that messages wait for; null messages wait for nothing."""
        self._sent_timestamp = self._awaited_timestamp
        self._clock = max(self._clock, self._sent_timestamp)
        self.send_all(NullMessage(self._sent_timestamp))

    # Destination

    def _receive(
        self, sender: ProcessId, timestamp: int, batches: tuple[Batch, ...], packet_id: PacketId
    ) -> None:
        rank = self.ranks[sender]
        history = self._histories[rank]
        before = history.clock
        if not before < timestamp <= self._clock + STEP_MAX:
            raise PeerFault(f"{sender} sends timestamp {timestamp} after {before}")
        self._clock = max(self._clock, timestamp)
        history.add(timestamp, packet_id[1], batches)
        if batches:
            heappush(self._unordered, (timestamp, rank))
        if before == self._complete:
            self._slowest_count -= 1
            if not self._slowest_count:
                self._advance()

    def _advance(self) -> None:
        """The last of the slowest members has sent something: more may be complete.

        Looking at all members here, and not for each packet, keeps the cost of a packet constant.
        """
        clocks = [history.clock for history in self._histories]
        self._complete = min(clocks)
        self._slowest_count = clocks.count(self._complete)
        self._append_buckets()

    def _bucket_end(self, timestamp: int) -> int:
        """The last timestamp that is delivered together with this one."""
        return -(-timestamp // self._bucket) * self._bucket

    def _append_buckets(self) -> None:
        """Order the messages of every bucket that no member can add to any more."""
        while self._unordered and (end := self._bucket_end(self._unordered[0][0])) <= self._complete:
            self.depends_on_all([history.packet_at(end) for history in self._histories])
            self._append_bucket(end)

    def _append_bucket(self, end: int) -> None:
        """Merge what the members sent up to this timestamp, the most urgent of their next ones first."""
        ranks: dict[int, None] = {}
        while self._unordered and self._unordered[0][0] <= end:
            ranks[heappop(self._unordered)[1]] = None
        nexts = [(self._precedence(self._histories[rank].batches[0][1]), rank) for rank in ranks]
        heapify(nexts)
        while nexts:
            rank = nexts[0][1]
            history = self._histories[rank]
            self.append(history.batches.popleft()[1])
            if history.first <= end:
                heapreplace(nexts, (self._precedence(history.batches[0][1]), rank))
            else:
                heappop(nexts)

    def _precedence(self, batch: Batch) -> int:
        """What goes first of messages that are delivered together; the member's rank breaks ties."""
        return -batch.urgency if self.options.prioritised else 0


class _MemberHistory:
    """What was received from one member: the timestamp of its last packet, and its unordered messages."""

    def __init__(self) -> None:
        self.clock = 0
        self.batches: deque[tuple[int, Batch]] = deque()
        self._packets: deque[tuple[int, int]] = deque()

    @property
    def first(self) -> int:
        """The timestamp of the first unordered message; later than all others if there is none."""
        return self.batches[0][0] if self.batches else _NEVER

    def add(self, timestamp: int, number: int, batches: tuple[Batch, ...]) -> None:
        """The member's next packet to all."""
        self.clock = timestamp
        self._packets.append((timestamp, number))
        self.batches.extend((timestamp, batch) for batch in batches)

    def packet_at(self, timestamp: int) -> int:
        """The number of the first packet by which the member's messages up to this timestamp are known."""
        while self._packets[0][0] < timestamp:
            self._packets.popleft()
        return self._packets[0][1]
