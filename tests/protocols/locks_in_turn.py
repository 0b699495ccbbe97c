"""Queue re-ordering with lock-sets, one batch at a time (the reorder paper, section 4.3).

The view's coordinator decides whose turn it is. A batch locks its target-tail when the batch before it is
inserted, so an urgent one waits for those before it: what counts as its reception is its turn. Tests
compare `ReorderLocks` with this class, which needs none of the rules for concurrent insertions.
"""

from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.acknowledgments import Count
from priocast.protocols.reorder.exchange import DataId
from priocast.protocols.reorder.lock_block import LockInsertion
from priocast.protocols.reorder.lock_packets import LockDecision
from priocast.protocols.reorder.locks import ReorderLocks

_TURNS_MAX = 1024


class InsertionTurns(Packet, frozen=True, tag="insertion-turns"):
    """From the coordinator to all: which packets of data (sender's rank, number) are inserted next."""

    TO_ALL = True

    turns: Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(min_length=1, max_length=_TURNS_MAX)]


class ReorderLocksInTurn(ReorderLocks):
    """A member's part in the protocol; the view's coordinator assigns the turns as well."""

    NAME = "reorder-locks-in-turn"
    PACKETS = (*ReorderLocks.PACKETS, InsertionTurns)
    FRAME_BATCHES_MAX = 1

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._turns_due: list[DataId] = []
        self._turns: list[tuple[DataId, PacketId]] = []
        self._turn_counts = [0] * len(view.members)
        self._waiting: dict[DataId, tuple[NumberedData, PacketId]] = {}
        self._current: DataId | None = None

    @property
    def backlog(self) -> int:
        waiting = (batch.count for data, _ in self._waiting.values() for batch in data.batches)
        return super().backlog + sum(waiting)

    @property
    def idle(self) -> bool:
        return super().idle and not self._turns_due

    def on_turn(self, event: Turn, now: int) -> None:
        due, self._turns_due = self._turns_due, []
        for first in range(0, len(due), _TURNS_MAX):
            self.send_all(InsertionTurns(tuple(due[first : first + _TURNS_MAX])))
        super().on_turn(event, now)

    def on_received(self, event: Received, now: int) -> None:
        if isinstance(event.packet, InsertionTurns):
            self._on_turns(event.sender, event.packet, event.packet_id)
            self.queue_changed(now)
        else:
            super().on_received(event, now)

    def _on_data(self, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        self._waiting[rank, data.number] = (data, packet_id)
        if self.me == self.view.coordinator:
            self._turns_due.append((rank, data.number))
        self._lock_next()

    def _on_turns(self, sender: ProcessId, packet: InsertionTurns, packet_id: PacketId) -> None:
        for rank, number in packet.turns:
            is_next = rank < len(self._turn_counts) and number == self._turn_counts[rank]
            if sender != self.view.coordinator or not is_next:
                raise PeerFault(f"{sender} gives a turn to data {number} of rank {rank}, which is not next")
            self._turn_counts[rank] += 1
            self._turns.append(((rank, number), packet_id))
        self._lock_next()

    def _lock_next(self) -> None:
        """Let the next batch lock if it was received and the one before it is inserted."""
        if self._current is None and self._turns and self._turns[0][0] in self._waiting:
            self._current, turn_id = self._turns.pop(0)
            data, data_id = self._waiting.pop(self._current)
            self._lock(self._current[0], data, [data_id, turn_id])

    def _insert(self, insertions: list[LockInsertion], decision: LockDecision) -> None:
        super()._insert(insertions, decision)
        self._current = None
        self._lock_next()
