"""The recorder: turns what goes in and out of one member's protocol into rows.

It belongs to the driver. The protocol does not know it, so a trace cannot flatter the protocol.
"""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Reference
from priocast.core.protocol import Packet
from priocast.core.starvation import FirstInFirstOut
from priocast.core.view import View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.departure import Departed
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    NO_POSITION,
    RECEIVED,
    SENT,
    STATE,
    STOPPED,
    VIEW,
    Row,
    ViewOrder,
)

_OfBatch = tuple[str, int, int, int, int, bytes, bool, str, int, int]
_NO_BATCH: _OfBatch = ("", 0, 0, 0, 0, b"", False, "", NO_POSITION, 0)


class Recorder:
    """Writes down what one member does; `emit` takes the rows, in order."""

    def __init__(self, me: ProcessId, emit: Callable[[Row], None]) -> None:
        self._me = me
        self._emit = emit
        self._step = 0
        self._view: ViewId | None = None

    def installed(self, view: View) -> None:
        """From here on the protocol works in this view."""
        self._view = view.id

    def view(self, view: View, ordering: Ordering, position: int, reason: ViewReason, now: int) -> None:
        """The application was told of a view, and of how it is ordered."""
        members = ",".join(str(member) for member in view.members)
        orderer = find_protocol(ordering.order).orderer(view)
        of_orderer = (orderer.name, orderer.incarnation) if orderer else ("", 0)
        of_batch = (*of_orderer, 0, 0, 0, b"", False, "", position, 0)
        self._emit_row(now, view.id, VIEW, str(reason), members, of_batch, 0, str(view_order(ordering)))

    def stopped(self, departed: Departed, now: int) -> None:
        """The member is out of the group."""
        self._emit_row(now, self._view, STOPPED, str(departed), "", _NO_BATCH, 0)

    def restored(self, view: View, position: int, size: int, now: int) -> None:
        """The application took over the group's state as it was before this position."""
        of_batch = ("", 0, 0, 0, 0, b"", False, "", position, size)
        self._emit_row(now, view.id, STATE, "", "", of_batch, 0)

    def broadcast(self, batch: Batch, now: int, backlog: int) -> None:
        client, request = batch.scope.client, batch.scope.request
        name = f"{client}/{request}" if client else ""
        self._row(now, self._view, BROADCAST, name, "", batch, NO_POSITION, backlog)

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        self._packet(SENT, packet, to.name if to else "", now, backlog)

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        self._packet(RECEIVED, packet, peer.name, now, backlog)

    def delivered(self, ordered_batch: OrderedBatch, count: int, now: int, backlog: int) -> None:
        """The application took the next `count` messages of the stretch."""
        batch, taken = ordered_batch.batch, ordered_batch.taken
        if count < batch.count:
            priorities = batch.priorities[taken : taken + count]
            size = len(batch.block) * count // batch.count
            batch = Batch(
                batch.sender, batch.level, batch.first + taken, count, bytes(size), priorities, batch.scope
            )
        self._row(now, ordered_batch.view, DELIVERED, "", "", batch, ordered_batch.position + taken, backlog)

    def _packet(self, event: str, packet: Packet, peer: str, now: int, backlog: int) -> None:
        messages = packet.messages
        position: int = getattr(packet, "position", NO_POSITION)
        name = packet.name() if messages else ""
        for batch in messages:
            self._row(now, self._view, event, name, peer, batch, position, backlog)
            if position != NO_POSITION:
                position += batch.count

    def _row(
        self,
        now: int,
        view: ViewId | None,
        event: str,
        packet: str,
        peer: str,
        batch: Batch | Reference,
        position: int,
        backlog: int,
    ) -> None:
        sender = batch.sender
        named = (sender.name, sender.incarnation, batch.level, batch.first, batch.count)
        if isinstance(batch, Batch):
            scope = batch.scope
            carried = (batch.priorities, scope.safe, ",".join(scope.to), position, len(batch.block))
        else:
            carried = (b"", False, "", position, 0)
        of_batch = (*named, *carried)
        self._emit_row(now, view, event, packet, peer, of_batch, backlog)

    def _emit_row(
        self,
        now: int,
        view: ViewId | None,
        event: str,
        packet: str,
        peer: str,
        of_batch: _OfBatch,
        backlog: int,
        order: str = "",
    ) -> None:
        me = self._me
        number, coordinator = (view.number, str(view.coordinator)) if view else (0, "")
        who = (me.name, me.incarnation, number, coordinator, self._step)
        self._emit(Row._make((*who, now, event, packet, peer, *of_batch, backlog, order)))
        self._step += 1


def view_order(ordering: Ordering) -> ViewOrder:
    """What a trace says of an ordering."""
    protocol = find_protocol(ordering.order)
    return ViewOrder(
        order=ordering.order,
        policy=ordering.starvation if ordering.prioritised else str(FirstInFirstOut()),
        priorities_act=protocol.PRIORITIES_ACT,
        sends_by_priority=protocol.SENDS_BY_PRIORITY,
    )
