"""Packets that assign positions and come from several members take effect in the order of the positions."""

from typing import Generic, TypeVar

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import WINDOW_MAX

Item = TypeVar("Item")


class ReorderBuffer(Generic[Item]):
    """What arrived ahead of the positions before it, by its first position."""

    def __init__(self) -> None:
        self._ahead: dict[int, Item] = {}

    def check(self, sender: ProcessId, position: int, expected: int, position_next: int) -> None:
        """Raise if a packet cannot begin at this position: it was assigned before, or no window allows it.

        All positions below `expected` are known, all messages below `position_next` are here.
        """
        if position < expected or position in self._ahead:
            raise PeerFault(f"{sender} orders position {position}; {expected} is next")
        if position > position_next + WINDOW_MAX:
            raise PeerFault(f"{sender} orders position {position}, which no window allows")

    def put(self, position: int, item: Item) -> None:
        """Keep a packet until all positions before it are known."""
        self._ahead[position] = item

    def take(self, position: int) -> Item | None:
        """The packet that begins at this position, if it is here."""
        return self._ahead.pop(position, None)
