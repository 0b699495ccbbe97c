"""The moving sequencer's part that its classes share: whoever has the token orders what waits for it.

A holder gives places to no more than a turn's worth of what waits, the most urgent first, and then it is the
turn of the next member in the ring. Whoever has nothing to order does not pass the token on for that, so it
rests in a group at rest. Packets with places may come in any order, because they come from different members:
they take effect in the order of the places.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId
from priocast.core.view import View
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Consumed, Queue, fill_frame
from priocast.protocols.ring.base import RingProtocol, SharedGrants
from priocast.protocols.ring.pending_queue import PendingQueue


class Places(Packet, frozen=True):
    """From the holder to all: these messages have the places from `position` on."""

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def position_next(self) -> int:
        """The place after the last message."""
        return self.position + sum(each.count for each in self.messages)


class MovingSequencer(RingProtocol):
    """A member that orders, while it has the token, what waits at it as `_pending`."""

    PRIORITIES_ACT = "sequencing"

    def __init__(
        self,
        me: ProcessId,
        view: View,
        options: OrderingOptions,
        position: int,
        candidates: PendingQueue,
    ) -> None:
        super().__init__(me, view, options, position)
        self._pending = candidates
        self._grants = SharedGrants(view, options)
        self._known_next = position
        self._early: dict[int, tuple[ProcessId, Places, PacketId]] = {}

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._pending.count

    @property
    def idle(self) -> bool:
        return self.settled and not self._pending

    def bottleneck(self) -> ProcessId | None:
        """Everybody hears all reports, so everybody knows for whom it is that something waits."""
        return self._grants.bottleneck(self._pending.head_level()) if self._pending else None

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._pending.waiting(now) or super().waiting(now)

    # Holder

    def _order(self, queue: Queue) -> bool:
        """Give places to what is next in the queue and has room, a turn's worth; return whether any was."""
        position = self._number_next
        for _ in range(FRAMES_PER_TURN):
            first = self._number_next
            batches = fill_frame(queue, self._grants.of_level, self._number)
            if not batches:
                break
            assert first is not None
            bottleneck = self._grants.bottleneck(queue.head_level()) if queue else None
            self.send_all(self._places(first, batches, bottleneck.name if bottleneck else ""))
        else:
            if not self._others:
                self.more_to_do()
        return self._number_next != position

    def _number(self, batch: Batch) -> None:
        assert self._number_next is not None
        self._number_next += batch.count
        self._grants.placed(batch)

    @abstractmethod
    def _places(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Places:
        """The packet that gives these messages their places, from this position on."""

    # Destination

    def _on_places(self, sender: ProcessId, places: Places, packet_id: PacketId) -> None:
        """Let packets with places take effect in the order of the places, and then the token that waits."""
        position = places.position
        if position < self._known_next or position in self._early:
            raise PeerFault(f"{sender} orders position {position}; {self._known_next} is next")
        if position > self.position_next + WINDOW_MAX:
            raise PeerFault(f"{sender} orders position {position}, which no window allows")
        if sender != self.me and self._knows_better(places):
            raise PeerFault(f"{sender} orders position {position} although {self.me} has the token")
        self._early[position] = sender, places, packet_id
        while (found := self._early.pop(self._known_next, None)) is not None:
            orderer, next_places, told_by = found
            self._known_next = next_places.position_next
            for messages in next_places.messages:
                if messages.sender not in self.ranks:
                    raise PeerFault(f"{orderer} orders {messages}, which is no member's")
                self._pending.placed(orderer, messages)
            self._on_next(orderer, next_places, told_by)
        self._accept_token()

    def _knows_better(self, places: Places) -> bool:
        """Whether nobody else can have sent this, because the token came here before."""
        return self._number_next is not None or (
            self._token is not None and places.position_next > self._token.number
        )

    @abstractmethod
    def _on_next(self, orderer: ProcessId, places: Places, packet_id: PacketId) -> None:
        """All places before these are known."""

    def _place(self, orderer: ProcessId, batches: Sequence[Batch], held: bool) -> None:
        """What the holder took for one batch, and counted when it gave it the place, is next in the order."""
        if orderer != self.me:
            self._grants.placed_together(batches)
        self.append_ordered(batches, held)

    def _on_report(self, sender: ProcessId, consumed: Consumed) -> None:
        self._grants.granted(sender, consumed.total, consumed.window)
