"""The recorder: turns what goes in and out of one member's protocol into rows.

It belongs to the driver. The protocol does not know it, so a trace cannot flatter the protocol.
"""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Stretch
from priocast.core.protocol import Packet
from priocast.core.view import View
from priocast.trace.schema import BROADCAST, DELIVERED, NO_POSITION, RECEIVED, SENT, VIEW, Row


class Recorder:
    """Writes down what one member does; `emit` takes the rows, in order."""

    def __init__(self, me: ProcessId, emit: Callable[[Row], None]) -> None:
        self._me = me
        self._emit = emit
        self._step = 0
        self._view = 0

    def view(self, view: View, position: int, now: int) -> None:
        self._view = view.number
        members = ",".join(str(member) for member in view.members)
        self._row(now, VIEW, "", members, None, position, 0)

    def broadcast(self, batch: Batch, now: int, backlog: int) -> None:
        self._row(now, BROADCAST, "", "", batch, NO_POSITION, backlog)

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        self._packet(SENT, packet, to.name if to else "", now, backlog)

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        self._packet(RECEIVED, packet, peer.name, now, backlog)

    def delivered(self, stretch: Stretch, count: int, now: int, backlog: int) -> None:
        """The application took the next `count` messages of the stretch."""
        batch, taken = stretch.batch, stretch.taken
        if count < batch.count:
            priorities = batch.priorities[taken : taken + count]
            size = len(batch.block) * count // batch.count
            batch = Batch(batch.sender, batch.level, batch.first + taken, count, bytes(size), priorities)
        self._row(now, DELIVERED, "", "", batch, stretch.position + taken, backlog)

    def _packet(self, event: str, packet: Packet, peer: str, now: int, backlog: int) -> None:
        batches: tuple[Batch, ...] = getattr(packet, "batches", ())
        position: int = getattr(packet, "position", NO_POSITION)
        name = packet.name() if batches else ""
        for batch in batches:
            self._row(now, event, name, peer, batch, position, backlog)
            if position != NO_POSITION:
                position += batch.count

    def _row(
        self, now: int, event: str, packet: str, peer: str, batch: Batch | None, position: int, backlog: int
    ) -> None:
        me = self._me
        if batch is None:
            of_batch = ("", 0, 0, 0, 0, b"", position, 0)
        else:
            sender = batch.sender
            of_batch = (
                sender.name,
                sender.incarnation,
                batch.level,
                batch.first,
                batch.count,
                batch.priorities,
                position,
                len(batch.block),
            )
        self._emit(
            Row(me.name, me.incarnation, self._view, self._step, now, event, packet, peer, *of_batch, backlog)
        )
        self._step += 1
