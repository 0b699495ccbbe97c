"""Destinations agreement on a single message (Skeen): destinations propose a number, the highest is final.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and 3(n - 1) frames a message (data, proposals, final number), shared by all messages of a
    frame; proposals and final numbers of several frames share one. Per member, sender and quarter of a
    window one report of consumption.
Orders: the destinations, by their proposals; the sender takes the highest.
Assumes: reliable FIFO links, a fixed view. A member knows positions by its own proposals, which others do not
    have, so the two sides of a partition cannot both continue.
Priorities act: in the sender's outgoing queue (priority sending). What was sent is not overtaken, so a sender
    has no more in flight than its share of the window.
Reference: the techniques paper, sections 5.5.1 and 6.2.
Diverges: the paper does not say which proposal becomes final, and that clocks follow it: the highest, and
    every clock is raised to it, or members deliver in different orders. The senders' ranks break ties, not
    the proposers'. Frames of batches get numbers, not messages.
"""

from collections import deque

from priocast.core.errors import PeerFault
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.agreement.skeen_packets import TIMESTAMPS_MAX, FinalTimestamps, ProposedTimestamps
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed


class AgreementSkeen(PacedProtocol):
    """A member's part in the protocol; all members do the same.

    The order is that of (timestamp, rank of the sender). A sender's frames have rising timestamps: every
    destination proposes a later one for a later frame, so the highest proposals rise as well.
    """

    NAME = "agreement-skeen"
    PRIORITIES_ACT = "sending"
    PARTITIONABLE = False
    PACKETS = (NumberedData, ProposedTimestamps, FinalTimestamps, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._sent_count = 0
        self._final_count = 0
        self._highest: deque[int] = deque()
        self._proposals = {member: _TimestampCheck() for member in view.members}
        # destination
        self._clock = 0
        self._received_counts = dict.fromkeys(view.members, 0)
        self._finals = {member: _TimestampCheck() for member in view.members}
        self._proposals_due = {member: list[int]() for member in view.members}
        self._frames = {member: deque[_UnorderedFrame]() for member in view.members}

    @property
    def idle(self) -> bool:
        return self.settled and not any(self._proposals_due.values())

    def on_turn(self, event: Turn, now: int) -> None:
        self._send_proposals()
        if not self.blocked:
            self._send_finals()
            self._send_data()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case NumberedData() as data:
                self._on_data(event.sender, data)
            case ProposedTimestamps() as proposed:
                self._on_proposed(event.sender, proposed)
            case FinalTimestamps() as final:
                self._on_final(event.sender, final, event.packet_id)
                self._append_final()
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _send_data(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(NumberedData(self._sent_count, batches, bottleneck))
            self._sent_count += 1
            self._highest.append(0)
        self.more_to_do()

    def _on_proposed(self, sender: ProcessId, proposed: ProposedTimestamps) -> None:
        first, timestamps = proposed.first, proposed.timestamps
        self._proposals[sender].check(sender, first, timestamps, self._sent_count)
        for index, timestamp in enumerate(timestamps, first - self._final_count):
            self._highest[index] = max(self._highest[index], timestamp)

    def _send_finals(self) -> None:
        """The highest proposal is final once all destinations have proposed; earlier frames come first."""
        proposed_count = min(proposals.count for proposals in self._proposals.values())
        count = min(proposed_count - self._final_count, TIMESTAMPS_MAX)
        if count > 0:
            timestamps = tuple(self._highest.popleft() for _ in range(count))
            self.send_all(FinalTimestamps(self._final_count, timestamps))
            self._final_count += count

    # Destination

    def _on_data(self, sender: ProcessId, data: NumberedData) -> None:
        expected = self._received_counts[sender]
        if data.number != expected:
            raise PeerFault(f"{sender} sends frame {data.number}; expected {expected}")
        self.accept(sender, data.batches, data.bottleneck)
        self._received_counts[sender] += 1
        self._clock += 1
        self._proposals_due[sender].append(self._clock)
        self._frames[sender].append(_UnorderedFrame(data.batches, self._clock))

    def _send_proposals(self) -> None:
        for sender, timestamps in self._proposals_due.items():
            while timestamps and sender not in self.blocked:
                first = self._received_counts[sender] - len(timestamps)
                self.send(sender, ProposedTimestamps(first, tuple(timestamps[:TIMESTAMPS_MAX])))
                del timestamps[:TIMESTAMPS_MAX]

    def _on_final(self, sender: ProcessId, final: FinalTimestamps, packet_id: PacketId) -> None:
        received, frames = self._received_counts[sender], self._frames[sender]
        self._finals[sender].check(sender, final.first, final.timestamps, received)
        for number, timestamp in enumerate(final.timestamps, final.first):
            frame = frames[number - received]  # counted from the end, which is the last one received
            if timestamp < frame.timestamp:
                raise PeerFault(
                    f"{sender} decides on timestamp {timestamp}, where {self.me} proposed {frame.timestamp}"
                )
            frame.timestamp, frame.packet_id = timestamp, packet_id
        self._clock = max(self._clock, final.timestamps[-1])

    def _append_final(self) -> None:
        """Append frames with final timestamps, as long as no other frame can have a lower one.

        It is enough to look at each sender's first frame, because later ones get higher timestamps. A
        timestamp that is not final can only rise. A frame that was not received yet will get a higher one:
        this member's clock is not behind any final timestamp, and it will propose a later one.
        """
        while firsts := [frames for frames in self._frames.values() if frames]:
            lowest = min(firsts, key=lambda frames: frames[0].timestamp)  # the first of equals: by rank
            frame = lowest[0]
            if frame.packet_id is None:
                return
            lowest.popleft()
            self.depends_on(frame.packet_id)
            for batch in frame.batches:
                self.append(batch)

    def close(self) -> None:
        """Append all frames with final timestamps; the others go back to their senders.

        What any member has consumed comes first in that order. It was appended because all other frames could
        only get higher timestamps, by what this member had proposed or would propose; and no timestamp is
        final without the proposals of all members, including that one's.
        """
        for frames in self._frames.values():
            while frames and frames[-1].packet_id is None:
                frames.pop()
        self._append_final()


class _UnorderedFrame:
    """A frame with its timestamp: this member's proposal or, if `packet_id` is set, the final one."""

    __slots__ = ("batches", "packet_id", "timestamp")

    def __init__(self, batches: tuple[Batch, ...], timestamp: int) -> None:
        self.batches = batches
        self.timestamp = timestamp
        self.packet_id: PacketId | None = None


class _TimestampCheck:
    """How many frames of one sender have timestamps from one member, which must rise from frame to frame."""

    def __init__(self) -> None:
        self.count = 0
        self._last = 0

    def check(self, member: ProcessId, first: int, timestamps: tuple[int, ...], count_max: int) -> None:
        """Accept the next timestamps, or say what is wrong with them."""
        if first != self.count or first + len(timestamps) > count_max:
            raise PeerFault(
                f"{member} sends timestamps of {len(timestamps)} frames from {first} on; "
                f"expected {self.count} of {count_max}"
            )
        for timestamp in timestamps:
            if not self._last < timestamp <= self._last + STEP_MAX:
                raise PeerFault(f"{member} sends timestamp {timestamp} after {self._last}")
            self._last = timestamp
        self.count += len(timestamps)
