"""Destinations agreement on a single message (Skeen): destinations propose a number, the highest is final.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at each sender, Bounded
    overtaking within a sender's queue by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and 3(n - 1) frames a message (data, proposals, final number), shared by all messages of a
    frame; proposals and final numbers of several frames share one. Per member, sender and quarter of a
    window one report of consumption.
Orders: the destinations, by their proposals; the sender takes the highest.
Assumes: reliable FIFO links, a fixed view. A member knows places by its own proposals, which others do not
    have, so the sides of a cut cannot both go on.
Priorities act: in the sender's outgoing queue (priority sending). What was sent is not overtaken, so a sender
    has no more under way than its share of the window.
Reference: the techniques paper, sections 5.5.1 and 6.2.
Diverges: the paper does not say which proposal becomes final, and that clocks follow it: the highest, and
    every clock is raised to it, or members deliver in different orders. The senders' ranks break ties, not
    the proposers'. Frames of batches get numbers, not messages.
"""

from collections import deque
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Consumed
from priocast.protocols.flow.paced import PacedProtocol

_STAMPS_MAX = 1024

Number = Annotated[int, msgspec.Meta(ge=0)]
Stamps = Annotated[
    tuple[Annotated[int, msgspec.Meta(ge=1, le=1 << 62)], ...],
    msgspec.Meta(min_length=1, max_length=_STAMPS_MAX),
]


class Proposed(Packet, frozen=True, tag="proposed"):
    """From a destination to a sender: your frames, from this number on, get these stamps or later ones."""

    first: Number
    stamps: Stamps


class Final(Packet, frozen=True, tag="final"):
    """From a sender to all: my frames, from this number on, have these stamps."""

    TO_ALL = True

    first: Number
    stamps: Stamps


class _Frame:
    """A frame without a place: the stamp that was proposed here, or the final one and its packet's mark."""

    __slots__ = ("batches", "packet_id", "stamp")

    def __init__(self, batches: tuple[Batch, ...], stamp: int) -> None:
        self.batches = batches
        self.stamp = stamp
        self.packet_id: tuple[int, int] | None = None


class _Stamped:
    """How many frames of one sender one member has stamped, each with a later stamp than the one before."""

    def __init__(self) -> None:
        self.count = 0
        self._last = 0

    def check(self, member: ProcessId, first: int, stamps: tuple[int, ...], count_max: int) -> None:
        """Accept the next stamps, or say what is wrong with them."""
        if first != self.count or first + len(stamps) > count_max:
            raise PeerFault(
                f"{member} stamps {len(stamps)} frames from {first} on; {self.count} is next of {count_max}"
            )
        for stamp in stamps:
            if stamp <= self._last:
                raise PeerFault(f"{member} gives stamp {stamp} to a frame after one with {self._last}")
            self._last = stamp
        self.count += len(stamps)


class AgreementSkeen(PacedProtocol):
    """A member's part in the protocol; all members do the same.

    The order is that of (stamp, rank of the sender). A sender's frames have rising stamps: every destination
    proposes a later one for a later frame, so the highest of them rise as well.
    """

    NAME = "agreement-skeen"
    PRIORITIES_ACT = "sending"
    PARTITIONABLE = False
    PACKETS = (NumberedData, Proposed, Final, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._sent_count = 0
        self._final_count = 0
        self._highest: deque[int] = deque()
        self._proposals = {member: _Stamped() for member in view.members}
        # destination
        self._clock = 0
        self._received = dict.fromkeys(view.members, 0)
        self._finals = {member: _Stamped() for member in view.members}
        self._owed = {member: list[int]() for member in view.members}
        self._frames = {member: deque[_Frame]() for member in view.members}

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self.in_flight.count or any(self._owed.values()))

    def on_turn(self, event: Turn, now: int) -> None:
        self._propose()
        if not self.blocked:
            self._decide()
            self._send()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case NumberedData() as data:
                self._on_data(event.sender, data)
            case Proposed(first=first, stamps=stamps):
                self._on_proposed(event.sender, first, stamps)
            case Final(first=first, stamps=stamps):
                self._on_final(event.sender, first, stamps, event.packet_id)
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _send(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(NumberedData(self._sent_count, batches, bottleneck))
            self._sent_count += 1
            self._highest.append(0)
        self.more_to_do()

    def _on_proposed(self, sender: ProcessId, first: int, stamps: tuple[int, ...]) -> None:
        self._proposals[sender].check(sender, first, stamps, self._sent_count)
        for index, stamp in enumerate(stamps, first - self._final_count):
            self._highest[index] = max(self._highest[index], stamp)

    def _decide(self) -> None:
        """The highest proposal is final when all are here, which is so for earlier frames first."""
        proposed_count = min(proposals.count for proposals in self._proposals.values())
        count = min(proposed_count - self._final_count, _STAMPS_MAX)
        if count > 0:
            stamps = tuple(self._highest.popleft() for _ in range(count))
            self.send_all(Final(self._final_count, stamps))
            self._final_count += count

    # Destination

    def _on_data(self, sender: ProcessId, data: NumberedData) -> None:
        if data.number != self._received[sender]:
            raise PeerFault(f"{sender} sends frame {data.number}; {self._received[sender]} is next")
        self.accept(sender, data.batches, data.bottleneck)
        self._received[sender] += 1
        self._clock += 1
        self._owed[sender].append(self._clock)
        self._frames[sender].append(_Frame(data.batches, self._clock))

    def _propose(self) -> None:
        for sender, stamps in self._owed.items():
            while stamps and sender not in self.blocked:
                first = self._received[sender] - len(stamps)
                self.send(sender, Proposed(first, tuple(stamps[:_STAMPS_MAX])))
                del stamps[:_STAMPS_MAX]

    def _on_final(self, sender: ProcessId, first: int, stamps: tuple[int, ...], packet_id: PacketId) -> None:
        received, frames = self._received[sender], self._frames[sender]
        self._finals[sender].check(sender, first, stamps, received)
        for number, stamp in enumerate(stamps, first):
            frame = frames[number - received]  # counted from the end, which is the last one received
            if stamp < frame.stamp:
                raise PeerFault(f"{sender} decides on stamp {stamp}, where {self.me} proposed {frame.stamp}")
            frame.stamp, frame.packet_id = stamp, packet_id
        self._clock = max(self._clock, stamps[-1])
        self._place_final()

    def _place_final(self) -> None:
        """Place what has a final stamp, as long as no other frame can have a lower one.

        It is enough to look at each sender's first frame, because later ones get higher stamps. A stamp that
        is not final can only rise. What was not received yet will get a higher one: our clock is not behind
        any final stamp, and we will propose a later one.
        """
        while firsts := [frames for frames in self._frames.values() if frames]:
            lowest = min(firsts, key=lambda frames: frames[0].stamp)  # the first of equals: by rank
            frame = lowest[0]
            if frame.packet_id is None:
                return
            lowest.popleft()
            self.depends_on(frame.packet_id)
            for batch in frame.batches:
                self.append(batch)

    def close(self) -> None:
        """Place all that has a final stamp; what has none goes back to its sender.

        Whatever a member has consumed comes first in that order. It was placed because all other frames could
        only get higher stamps, by what this member had proposed or would propose; and no stamp is final
        without the proposals of all members, that one's among them.
        """
        for frames in self._frames.values():
            while frames and frames[-1].packet_id is None:
                frames.pop()
        self._place_final()
