"""What the application gets: one stream of messages and views, the same at every member."""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.view import View


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A message, at its place in the order (counted from 0)."""

    message: Message
    position: int


class DeliveredBatch(msgspec.Struct, frozen=True):
    """Consecutive messages of one sender and level, for those who want a batch at a time."""

    sender: ProcessId
    level: int
    first: int
    position: int
    payloads: list[bytes]
    priorities: bytes

    def priority_of(self, index: int) -> int:
        """The priority that the index-th message was broadcast with."""
        return self.priorities[index] if self.priorities else self.level


class ViewChange(msgspec.Struct, frozen=True):
    """The group has these members from here on; the next message has this position or a later one.

    `order` is the protocol that orders from here on, `reason` says why there is a new view.
    """

    view: View
    position: int = 0
    reason: str = ""
    order: str = ""


class Evicted(msgspec.Struct, frozen=True):
    """This member is no longer in the group, and says why; it tries to come back as a new member."""

    reason: str


class Restored(msgspec.Struct, frozen=True):
    """The application's state is now the group's at this position; what follows comes as messages."""

    position: int
    bytes: int


Event = Delivery | ViewChange | Evicted | Restored
