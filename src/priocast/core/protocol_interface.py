"""The interface of an ordering protocol: what the rest of Priocast calls.

Its inputs, outputs and options are in `core/protocol.py`.
"""

from abc import abstractmethod
from typing import ClassVar

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import Input, OrderingOptions, Output, Packet, PrioritiesAct
from priocast.core.stall import StallMeter
from priocast.core.view import View


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol:
    """What the rest of Priocast knows of an ordering protocol; `OrderingProtocol` is the base of all.

    A protocol exists for one view, whose first message has `position`. `outgoing` is what the application
    broadcast and the protocol has not sent yet. `position_next` is the position of the next message,
    `has_safe` says that safe messages were ordered. `stalls` measures how long the application had to wait
    for the head of its queue.

    In a protocol that is not `PARTITIONABLE`, a member may also learn positions by other means than packets
    to all. In one that does not take a starvation policy (`TAKES_STARVATION_POLICY`), the policy would not
    bound how far a message is overtaken.
    """

    NAME: ClassVar[str]
    PACKETS: ClassVar[tuple[type[Packet], ...]]
    PRIORITIES_ACT: ClassVar[PrioritiesAct]
    SENDS_BY_PRIORITY: ClassVar[bool] = True
    PARTITIONABLE: ClassVar[bool] = True
    TAKES_STARVATION_POLICY: ClassVar[bool] = True

    ranks: dict[ProcessId, int]
    outgoing: PriorityQueue
    has_safe: bool
    stalls: StallMeter

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        self.me = me
        self.view = view
        self.options = options
        self.position_next = position

    @classmethod
    @abstractmethod
    def orderer(cls, view: View) -> ProcessId | None:
        """The member whose queue decides the order, or None where there is no such member."""

    @abstractmethod
    def step(self, event: Input, now: int) -> list[Output]:
        """Handle one input at time `now` (nanoseconds) and return the outputs."""

    @property
    @abstractmethod
    def backlog(self) -> int:
        """How many messages wait at this member for a position."""

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether every message that this member has to order, or has broadcast, has its position."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether every message that this member has broadcast has its position."""

    @abstractmethod
    def head(self) -> OrderedBatch | None:
        """What the application may consume next; valid until the next step."""

    @abstractmethod
    def inspect(self, now: int) -> ProtocolInspection:
        """What status and slow-member detection need to know; changes nothing."""

    @abstractmethod
    def close(self) -> None:
        """The view has ended, and every packet to all is here that any continuing member has received."""

    @abstractmethod
    def unconsumed(self) -> list[OrderedBatch]:
        """What has its position and was not consumed yet."""

    @abstractmethod
    def unordered(self) -> list[Batch]:
        """This member's own messages that have no position yet, in the order in which to send them again."""

    def on_undeliverable(self) -> None:
        """The application waits: the head of the queue is ordered and not deliverable yet."""
