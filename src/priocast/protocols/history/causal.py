"""Causal history: members stamp their messages with Lamport clocks, and the stamps are the order.

Gives: Integrity, Total order, Agreement, FIFO among equals, Causal order; prioritised: the most urgent first
    of what has one timestamp or is in one bucket, Bounded overtaking by the bucket and, at the sender, by the
    chosen starvation policy. Plain: FIFO order. Causal order is that of applications: whoever has delivered a
    message and then broadcasts another one has it delivered later, whatever the bucket. With a bucket of 1
    even what has only come to a member goes before what it sends after that.
Costs: two hops, and up to n frames from each of the n members for a message of one of them, because whoever
    has nothing to send says so in a null message. Whoever is slow to speak holds up all. A bucket waits until
    every clock has passed its end: each member pushes its own there when it has nothing more to send.
Orders: every member by itself, from the timestamps.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending), and where messages of one timestamp, or of
    one bucket, are delivered (priority delivering).
Reference: the techniques paper, sections 5.4.1 and 6.3, figure 4; the cost paper, figure 3.
Diverges: figure 4 delivers in increasing order of priority; here the more urgent goes first. A message is
    stamped when it leaves the send queue and not before, or an urgent one would be stamped later than those
    that it overtakes. One's own clock counts as that of the last own packet that came back, like the clocks
    of others: nothing that is on its way to oneself is left out of a decision. Figure 4 has no null messages,
    and stops when a member is silent. Few messages have one timestamp, so priorities do little there;
    `bucket` timestamps together are delivered as one, from each sender in the order in which it sent them.
    The price is time, and that a message that has come, but was not delivered, no longer goes before what its
    receiver then sends. Every sender has a share of the window, and the backlog waits in its queue.
"""

from collections import deque
from heapq import heapify, heappop, heapreplace
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Batches, BottleneckName, Consumed
from priocast.protocols.flow.paced import PacedProtocol

_NEVER = 1 << 62

Timestamp = Annotated[int, msgspec.Meta(ge=1, lt=_NEVER)]


class Stamped(Packet, frozen=True, tag="stamped"):
    """From a sender to all: messages of mine, of this time.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    timestamp: Timestamp
    batches: Batches
    bottleneck: BottleneckName = ""


class Null(Packet, frozen=True, tag="null"):
    """From a member to all: up to this time there is nothing more of mine."""

    TO_ALL = True

    timestamp: Timestamp


class CausalHistory(PacedProtocol):
    """A member's part in the protocol; all have the same."""

    NAME = "causal-history"
    PRIORITIES_ACT = "delivering"
    PACKETS = (Stamped, Null, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._bucket = options.bucket if options.prioritised else 1
        # sender
        self._clock = 0
        self._said = 0
        self._awaited = 0
        # destination
        self._histories = [_History() for _ in view.members]

    @property
    def idle(self) -> bool:
        return self.settled and not any(history.batches for history in self._histories)

    def on_turn(self, event: Turn, now: int) -> None:
        for _ in range(FRAMES_PER_TURN):
            if self.blocked:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                self._catch_up()
                return
            self._said = self._clock = self._clock + 1
            self.send_all(Stamped(self._clock, batches, bottleneck))
        self.more_to_do()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Stamped(timestamp=timestamp, batches=batches, bottleneck=bottleneck):
                self.accept(event.sender, batches, bottleneck)
                self._hear(event.sender, timestamp, batches, event.packet_id)
                self._awaited = max(self._awaited, self._bucket_end(timestamp))
                self._place_buckets()
            case Null(timestamp=timestamp):
                self._hear(event.sender, timestamp, (), event.packet_id)
                self._place_buckets()
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _catch_up(self) -> None:
        """Say that nothing of ours is missing, if messages wait for that; null messages wait for nothing."""
        if self._said < self._awaited:
            self._said = self._awaited
            self._clock = max(self._clock, self._said)
            self.send_all(Null(self._said))

    # Destination

    def _hear(
        self, sender: ProcessId, timestamp: int, batches: tuple[Batch, ...], packet_id: PacketId
    ) -> None:
        history = self._histories[self.ranks[sender]]
        if timestamp <= history.heard:
            raise PeerFault(f"{sender} says {timestamp} after {history.heard}: its clock does not go forward")
        self._clock = max(self._clock, timestamp)
        history.add(timestamp, packet_id[1], batches)

    def _bucket_end(self, timestamp: int) -> int:
        """The last timestamp that is delivered together with this one."""
        return -(-timestamp // self._bucket) * self._bucket

    def _place_buckets(self) -> None:
        """Give places to all messages of every bucket that nobody can add to any more."""
        complete = min(history.heard for history in self._histories)
        while (first := min(history.first for history in self._histories)) <= complete:
            end = self._bucket_end(first)
            if end > complete:
                return
            for rank, history in enumerate(self._histories):
                self.depends_on((rank, history.packet_at(end)))
            self._place_bucket(end)

    def _place_bucket(self, end: int) -> None:
        """Merge what the members sent up to this time, the most urgent of their next ones first."""
        nexts = [
            (self._precedence(history.batches[0][1]), rank)
            for rank, history in enumerate(self._histories)
            if history.first <= end
        ]
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
        """What goes first of messages that are delivered together; among equals it is the member's rank."""
        return -batch.urgency if self.options.prioritised else 0


class _History:
    """What came from one member: the time of its last packet, and the messages that have no place yet."""

    def __init__(self) -> None:
        self.heard = 0
        self.batches: deque[tuple[int, Batch]] = deque()
        self._packets: deque[tuple[int, int]] = deque()

    @property
    def first(self) -> int:
        """The time of the first message that has no place; later than all others if there is none."""
        return self.batches[0][0] if self.batches else _NEVER

    def add(self, timestamp: int, number: int, batches: tuple[Batch, ...]) -> None:
        """The member's next packet to all."""
        self.heard = timestamp
        self._packets.append((timestamp, number))
        self.batches.extend((timestamp, batch) for batch in batches)

    def packet_at(self, timestamp: int) -> int:
        """The number of the first packet that tells that there is nothing more up to this time."""
        while self._packets[0][0] < timestamp:
            self._packets.popleft()
        return self._packets[0][1]
