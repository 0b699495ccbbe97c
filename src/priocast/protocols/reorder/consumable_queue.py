"""What both re-ordering protocols need of the queue in which messages wait to be consumed."""

from abc import abstractmethod
from typing import Generic

from priocast.protocols.reorder.level_order import InsertionT


class ConsumableQueue(Generic[InsertionT]):
    """The messages that a member has received and its application has not consumed; `waiting` counts them."""

    def __init__(self) -> None:
        self.waiting = 0

    @abstractmethod
    def consumable(self) -> tuple[InsertionT, int] | None:
        """What may be consumed next, if anything, and how many messages of it."""

    @abstractmethod
    def blocked(self) -> InsertionT | None:
        """What could be consumed if more urgent messages were decided."""

    @abstractmethod
    def consume(self, insertion: InsertionT, count: int) -> None:
        """Messages were consumed that were consumable."""

    @abstractmethod
    def end(self) -> None:
        """The view ends: forget what is not decided."""
