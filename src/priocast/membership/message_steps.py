"""The steps of a member that every message needs: it is broadcast, a turn acts on it, and it is consumed.

    broadcast ─▶ assembler ── a turn ─▶ protocol ─▶ … ─▶ protocol ─▶ stream ─▶ consume

A turn comes once all inputs that were ready have been given to the member. It has steps, whose frames can be
transmitted before the next one: a packet to all reaches its own sender only in the next step, so that the
other members need not wait for that.
"""

from collections.abc import Callable

from priocast.core.assembler import Assembler, Run
from priocast.core.errors import ForeignFrame
from priocast.core.message import OrderedBatch
from priocast.core.protocol import Broadcast, OrderingOptions
from priocast.membership.epoch import Epoch
from priocast.membership.fault_handler import FaultHandler
from priocast.membership.membership import Membership
from priocast.membership.message_meter import MessageMeter
from priocast.membership.observer import Observer
from priocast.membership.progress_monitor import ProgressMonitor
from priocast.membership.stream import Stream
from priocast.services.service_host import ServiceHost


class MessageSteps:
    """These steps of one member; `serve` is what it does in a turn for its qualities of service."""

    def __init__(
        self,
        options: OrderingOptions,
        membership: Membership,
        assembler: Assembler,
        stream: Stream,
        progress: ProgressMonitor,
        services: ServiceHost,
        serve: Callable[[int], None],
        observer: Observer | None,
        fault_handler: FaultHandler,
        meter: MessageMeter | None,
    ) -> None:
        self._options = options
        self._membership = membership
        self._assembler = assembler
        self._stream = stream
        self._progress = progress
        self._services = services
        self._serve = serve
        self._observer = observer
        self._fault_handler = fault_handler
        self._meter = meter

    def room(self, priority: int) -> int:
        """How many messages of this priority may be broadcast now."""
        epoch, assembler = self._membership.epoch, self._assembler
        if epoch is None:
            full = assembler.bytes >= self._options.queue_bytes_max
            return 0 if full else self._options.queue_max - assembler.count
        return epoch.protocol.outgoing.room(priority, assembler.count, assembler.bytes)

    def broadcast(self, payload: bytes, priority: int) -> Run | None:
        """Accept a message, which is sent in the next turn, if there is room; return the run it ends then."""
        return self._assembler.add(payload, priority) if self.room(priority) > 0 else None

    def act(self, now: int) -> bool:
        """One step of a turn, if there is something to do; returns whether the turn goes on after it."""
        membership, services = self._membership, self._services
        try:
            if services.turn_is_due or services.suspects or services.receipts:
                self._serve(now)
            epoch = membership.epoch
            if epoch is None:
                return False
            may_order = not membership.trigger.suspended
            missed_turn = epoch.turn_is_due and may_order
            if not (epoch.restless or self._assembler.count or epoch.to_myself or missed_turn):
                return False
            if self._assembler.count:
                self._submit(epoch, now)
            if epoch.frozen:
                return False
            epoch.act(now, may_order)
            for peer in epoch.overflowing:
                membership.evict(peer, "overflow", now)
            if self._stream.awaits_state or self._progress.probation is not None:
                self._progress.catch_up(epoch, now)
            return epoch.restless or len(epoch.to_myself) > 0
        except Exception as error:
            self._fault_handler.on_step(error, now)
            return False

    def _submit(self, epoch: Epoch, now: int) -> None:
        """Give the protocol what the application has broadcast since the last turn."""
        batches = self._assembler.close()
        if self._observer is not None:
            for batch in batches:
                self._observer.broadcast(batch, now, epoch.protocol.backlog)
        for batch in batches:
            if self._meter is not None:
                self._meter.on_broadcast(batch, now)
            epoch.step(Broadcast(batch), now)

    def consume(self, count: int, now: int) -> bool:
        """The application took the next `count` messages of the head that it asked for.

        Returns whether that gave the member something to do: others may wait for it.
        """
        stream, head = self._stream, self._stream.offered
        assert isinstance(head, OrderedBatch), "the application consumes what it was offered"
        if head.damaged:
            damage = ForeignFrame(f"{head.batch} cannot be read")
            self._fault_handler.on_input(head.batch.sender, damage, now)
        if self._meter is not None:
            self._meter.on_delivered(head, count, now)
        if self._observer is not None:
            epoch, backlog = self._membership.epoch, self._assembler.count
            self._observer.delivered(head, count, now, backlog + epoch.protocol.backlog if epoch else backlog)
        try:
            return stream.consume(head, count, now)
        except Exception as error:
            self._fault_handler.on_step(error, now)
            return True
