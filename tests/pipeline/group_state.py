"""The state of a modelled group: its views at work, and its processes."""

from collections import deque
from dataclasses import dataclass, field

from pipeline.sample_runs import Ordered, by_reference
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import Packet
from priocast.core.starvation import FirstInFirstOut, Starvation, parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.trace.recorder import Recorder


@dataclass(eq=False)
class Component:
    """An active view: what its coordinator has ordered, and what still waits there."""

    view: View
    ordering: Ordering
    everybody: tuple["Process", ...]
    members: list["Process"]
    position: int
    log: list[Ordered] = field(default_factory=list)
    queue: list[tuple[int, int, Batch]] = field(default_factory=list)

    @property
    def orderer(self) -> "Process | None":
        return next((member for member in self.members if member.me == self.view.coordinator), None)

    @property
    def policy(self) -> Starvation:
        ordering = self.ordering
        return parse_starvation(ordering.starvation) if ordering.prioritised else FirstInFirstOut()

    @property
    def orders_by_reference(self) -> bool:
        return self.ordering.order == "sequencer-bb"

    def as_sent(self, packet: Ordered) -> Packet:
        return by_reference(packet) if self.orders_by_reference else packet

    def end_of(self, count: int) -> int:
        """The position after the first packets."""
        return self.position + sum(batch.count for packet in self.log[:count] for batch in packet.batches)


@dataclass(frozen=True)
class ViewItem:
    component: Component
    reason: ViewReason


@dataclass(frozen=True)
class StateItem:
    component: Component
    position: int


@dataclass(frozen=True)
class OrderedItem:
    component: Component
    index: int
    ordered_batch: OrderedBatch

    def may_be_read(self, reader: "Process") -> bool:
        """A safe message may be read when all have it, or when its view has ended for the reader."""
        if not self.ordered_batch.batch.scope.safe or reader.component is not self.component:
            return True
        return all(process.got > self.index for process in self.component.everybody)


@dataclass(eq=False)
class Process:
    """One incarnation of a member; `got` counts the packets of its view, `read` those that it consumed.

    `state_after` is how many packets of its view a joining process awaits before it receives the state.
    """

    me: ProcessId
    recorder: Recorder
    component: Component | None = None
    got: int = 0
    read: int = 0
    state_after: int | None = None
    stream: deque[ViewItem | StateItem | OrderedItem] = field(default_factory=deque)
    numbers: dict[int, int] = field(default_factory=dict)
    pending: dict[tuple[ProcessId, int, int], Batch] = field(default_factory=dict)


def key_of(batch: Batch) -> tuple[ProcessId, int, int]:
    return batch.sender, batch.level, batch.first
