"""The base of every ordering protocol: its queues, its inputs and outputs, and what a position depends on.

The rest of Priocast knows a protocol by its interface (`core/protocol.py`), never by this class.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Consume,
    Input,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Output,
    Packet,
    PacketId,
    Received,
    Send,
    SendAll,
    SendEach,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.protocol_interface import Protocol
from priocast.core.stall import StallMeter
from priocast.core.view import View


@mypyc_attr(allow_interpreted_subclasses=True)
class OrderingProtocol(Protocol):
    """A protocol with its two queues; a subclass reads like the paper's figure.

    The queues are `outgoing` and the ordered batches that wait for the application. When the view ends, the
    protocol returns what is left in both: all messages that have a position, and its own messages that have
    none, which the next view's protocol sends again.

    Positions must follow from packets to all, and from nothing else: all members that continue together have
    the same ones. `depends_on` records the packets that a position depends on.
    """

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        assert me in view.members
        super().__init__(me, view, options, position)
        self._view_id = view.id
        self.ranks = {member: rank for rank, member in enumerate(view.members)}
        self._dependencies = (0,) * len(view.members)
        self.has_safe = False
        self.stalls = StallMeter()
        self.outgoing = PriorityQueue(options.policy, options.queue_max, options.queue_bytes_max)
        self.blocked: dict[ProcessId, bool] = {}
        self._ordered_batches: deque[OrderedBatch] = deque()
        self._outputs: list[Output] = []
        self._handlers: dict[type, Callable[[Any, int], None]] = {
            Broadcast: self.on_broadcast,
            Received: self.on_received,
            Turn: self.on_turn,
            Consume: self._on_consume,
            LinkBlocked: self._on_link_blocked,
            LinkCleared: self._on_link_cleared,
            TimerFired: self.on_timer,
        }

    def step(self, event: Input, now: int) -> list[Output]:
        self._handlers[type(event)](event, now)
        outputs, self._outputs = self._outputs, []
        return outputs

    @classmethod
    def orderer(cls, view: View) -> ProcessId | None:  # noqa: ARG003  # most classes have none
        return None

    @property
    def backlog(self) -> int:
        return self.outgoing.count

    @property
    def settled(self) -> bool:
        return not self.outgoing.count

    def head(self) -> OrderedBatch | None:
        return self._ordered_batches[0] if self._ordered_batches else None

    def inspect(self, now: int) -> ProtocolInspection:
        return ProtocolInspection(
            backlog=self.backlog,
            queues_of=partial(self.outgoing.inspect, now),
            unconsumed=sum(waiting.batch.count - waiting.taken for waiting in self._ordered_batches),
            stalls=self.stalls.until(now),
            stalled_ns=self.stalls.lasting(now),
        )

    def close(self) -> None:
        """Most classes have nothing left to do."""

    def unconsumed(self) -> list[OrderedBatch]:
        return list(self._ordered_batches)

    def unordered(self) -> list[Batch]:
        return self.outgoing.drain()

    # Outputs, for subclasses

    def send(self, to: ProcessId, packet: Packet) -> None:
        assert not packet.TO_ALL
        self._outputs.append(Send(to, packet))

    def send_all(self, packet: Packet) -> None:
        assert packet.TO_ALL
        self._outputs.append(SendAll(packet))

    def send_each(self, packet: Packet) -> None:
        assert not packet.TO_ALL
        self._outputs.append(SendEach(packet))

    def set_timer(self, name: str, at: int) -> None:
        self._outputs.append(SetTimer(name, at))

    def cancel_timer(self, name: str) -> None:
        self._outputs.append(CancelTimer(name))

    def more_to_do(self) -> None:
        self._outputs.append(MoreToDo())

    def depends_on(self, packet_id: PacketId) -> None:
        """The positions of messages that are queued from here on depend on this packet, too."""
        rank, number = packet_id
        dependencies = self._dependencies
        if number > dependencies[rank]:
            self._dependencies = (*dependencies[:rank], number, *dependencies[rank + 1 :])

    def depends_on_all(self, numbers: Sequence[int]) -> None:
        """The positions of messages that are queued from here on depend on a packet of every member."""
        self._dependencies = tuple(map(max, self._dependencies, numbers))

    def queue_ordered(self, batch: Batch) -> None:
        """Append a batch to the order; it waits here until the application consumes it."""
        self._ordered_batches.append(
            OrderedBatch(self._view_id, self.position_next, batch, self._dependencies)
        )
        self.position_next += batch.count
        self.has_safe |= batch.scope.safe

    # Inputs, for subclasses to handle

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        self.outgoing.put(event.batch, now)

    @abstractmethod
    def on_received(self, event: Received, now: int) -> None: ...

    @abstractmethod
    def on_turn(self, event: Turn, now: int) -> None: ...

    @abstractmethod
    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        """The application consumed `count` messages of a batch; they have left the queue."""

    def on_timer(self, event: TimerFired, now: int) -> None:
        raise AssertionError(f"{self.NAME} set no timer {event.name!r}")

    def _on_consume(self, event: Consume, now: int) -> None:
        ordered_batch = self._ordered_batches[0]
        ordered_batch.taken += event.count
        assert event.count > 0 and ordered_batch.taken <= ordered_batch.batch.count
        if ordered_batch.taken == ordered_batch.batch.count:
            self._ordered_batches.popleft()
        self.on_consumed(ordered_batch.batch, event.count, now)

    def _on_link_blocked(self, event: LinkBlocked, now: int) -> None:
        self.blocked[event.peer] = True

    def _on_link_cleared(self, event: LinkCleared, now: int) -> None:
        self.blocked.pop(event.peer, None)
