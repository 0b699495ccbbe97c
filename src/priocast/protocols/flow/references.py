"""Messages and the places that name them: either may come first, and the places say what is next."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference
from priocast.core.protocol import PacketId
from priocast.protocols.flow.message_store import MessageStore


class OrderedReference(NamedTuple):
    """Messages that have a place, who gave it by which packet, and whether more wait for this member."""

    reference: Reference
    orderer: ProcessId
    packet_id: PacketId
    held: bool


class ReferencedMessages:
    """Messages whose places are not known, and places whose messages have not come."""

    def __init__(self) -> None:
        self._store = MessageStore()
        self._places: deque[OrderedReference] = deque()

    def came(self, batch: Batch, packet_id: PacketId) -> None:
        """A packet brought messages."""
        self._store.put(batch, packet_id)

    def named(self, place: OrderedReference) -> None:
        """A packet says that these are next in the order."""
        self._places.append(place)

    def next_ordered(self) -> Iterator[tuple[OrderedReference, PacketId, list[Batch]]]:
        """Give out what is next in the order and has come, with the mark of the packet that brought it."""
        while self._places and self._store.has(self._places[0].reference):
            place = self._places.popleft()
            batches, packet_id = self._store.take(place.reference)
            yield place, packet_id, batches
