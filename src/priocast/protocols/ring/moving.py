"""The state that moving sequencers share which queue messages: any member may come to assign positions."""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from priocast.core.compiling import mypyc_attr
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.frames import FRAMES_PER_TURN, BatchQueue, fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Order, Ordered
from priocast.protocols.flow.reorder_buffer import ReorderBuffer
from priocast.protocols.ring.pending_queue import PendingQueue
from priocast.protocols.ring.ring import Ring

OrderT = TypeVar("OrderT", Order, Ordered)


@mypyc_attr(allow_interpreted_subclasses=True)
class MovingSequencer(FlowControlledProtocol, Generic[OrderT]):
    """A member of the ring, with the messages that wait here for the token in `_pending`.

    The holder orders no more than one turn's worth, the most urgent first, and passes the token to its
    successor. A member that has nothing to order keeps the token, so the token rests in an idle group.
    Packets that assign positions come from different members and in any order: they take effect in the order
    of the positions. Positions below `_positions_end` are known here.
    """

    PRIORITIES_ACT = "sequencing"

    def __init__(
        self, me: ProcessId, view: View, options: OrderingOptions, position: int, pending: PendingQueue
    ) -> None:
        super().__init__(me, view, options, position)
        self._pending = pending
        self._grants = Grants(view, options, alone=False)
        self._ring = Ring(me, view, position)
        self._positions_end = position
        self._ahead: ReorderBuffer[tuple[ProcessId, OrderT, PacketId]] = ReorderBuffer()

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._pending.count

    @property
    def idle(self) -> bool:
        return self.settled and not self._pending

    def inspect(self, now: int) -> ProtocolInspection:
        """Every member receives all reports, so every member knows the bottleneck."""
        inspection = super().inspect(now)
        return msgspec.structs.replace(
            inspection,
            queues_of=lambda: self._pending.inspect(now) or inspection.queues,
            bottleneck=self._grants.bottleneck_of(self._pending),
        )

    def _numbered_frames(self, queue: BatchQueue) -> Iterator[tuple[int, tuple[Batch, ...], str]]:
        """Number the most urgent messages of the holder's queue that all members have room for, by frames.

        Yields the first position of a frame, its batches, and the name of the member that the rest waits for.
        """
        for _ in range(FRAMES_PER_TURN):
            batches = fill_frame(queue, self._grants.room, self._grants.ordered)
            if not batches:
                return
            position = self._ring.position
            assert position is not None, "only the holder of the token orders"
            self._ring.position = position + sum(batch.count for batch in batches)
            yield position, batches, self._grants.bottleneck_name(queue)
        if not self._ring.others:
            self.more_to_do()

    def _in_order(
        self, sender: ProcessId, order: OrderT, packet_id: PacketId
    ) -> Iterator[tuple[ProcessId, OrderT, PacketId]]:
        """A packet that assigns positions arrived; yield those whose turn it is now, in order."""
        position = order.position
        self._ahead.check(sender, position, self._positions_end, self.position_next)
        self._ring.check_may_order(sender, position, order.position_end)
        self._ahead.put(position, (sender, order, packet_id))
        while (found := self._ahead.take(self._positions_end)) is not None:
            orderer, next_order, _ = found
            self._positions_end = next_order.position_end
            for messages in next_order.messages:
                if messages.sender not in self.ranks:
                    raise PeerFault(f"{orderer} orders {messages}, which no member sent")
                self._pending.ordered(orderer, messages)
            yield found
