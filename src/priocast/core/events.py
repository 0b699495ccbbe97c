"""What the application receives: one stream of messages and views, the same at every member.

Messages with a quality of service come in the same stream, with the order that their quality gives.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.quality import Quality
from priocast.core.stamp import Stamp
from priocast.core.view import View
from priocast.core.view_reason import ViewReason


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A message and its position in the order, from 0; its stamp, if the order has stamps (`adaptive`)."""

    message: Message
    position: int
    stamp: Stamp | None = None


class ServiceDelivery(msgspec.Struct, frozen=True, gc=False):
    """A message that was sent with a quality of service; it has no position in the order.

    Of a message with several units, each unit is delivered by itself: `index` is that of this one, from 0,
    and `count` how many there are. `recipients` are the members that it was sent to. Its sender's receipt has
    the same `sender` and `number`. `late_ms` is 0 unless a *delta* message was delivered outside of its
    window: then it is how long after its time.
    """

    sender: ProcessId
    number: int
    quality: Quality
    priority: int
    payload: bytes
    recipients: tuple[ProcessId, ...]
    index: int = 0
    count: int = 1
    late_ms: float = 0.0


class DeliveredBatch(msgspec.Struct, frozen=True):
    """Consecutive messages of one sender and level, for applications that consume batches.

    `stamp` is that of the first message, if the order has stamps. `traceparent` is the trace context that
    their sender gave, empty if none.
    """

    sender: ProcessId
    level: int
    first: int
    position: int
    payloads: list[bytes]
    priorities: bytes
    stamp: Stamp | None = None
    traceparent: str = ""

    def priority_of(self, index: int) -> int:
        """The priority that the index-th message was broadcast with."""
        return self.priorities[index] if self.priorities else self.level


class ViewChange(msgspec.Struct, frozen=True):
    """The group has these members from here on; the next message has this position or a later one.

    `order` is the protocol that orders from here on. `reason` is what is new in the view; `str(reason)` is
    text.
    """

    view: View
    position: int = 0
    reason: ViewReason = ViewReason()
    order: str = ""


class Evicted(msgspec.Struct, frozen=True):
    """This member was evicted: the group continued without it.

    If it may, it rejoins with a new incarnation when the application asks for the next event.
    `reason` is that of the view that excludes it, as far as it is known; `str(reason)` is text.
    """

    reason: ViewReason


class Restored(msgspec.Struct, frozen=True):
    """The application's state was replaced by the group's at this position; messages follow from there on."""

    position: int
    bytes: int


Event = Delivery | ServiceDelivery | ViewChange | Evicted | Restored
