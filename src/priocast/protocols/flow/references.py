"""Messages and the positions that refer to them: either may arrive first."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference
from priocast.core.protocol import PacketId
from priocast.protocols.flow.message_store import MessageStore


class OrderedReference(NamedTuple):
    """Messages that have a position, and the member and the packet that assigned it.

    `is_bottleneck`: further messages wait for this member.
    """

    reference: Reference
    orderer: ProcessId
    packet_id: PacketId
    is_bottleneck: bool


class ReferencedMessages:
    """Messages whose positions are not known, and positions whose messages have not arrived."""

    def __init__(self) -> None:
        self._store = MessageStore()
        self._references: deque[OrderedReference] = deque()

    def received(self, batch: Batch, packet_id: PacketId) -> None:
        """A packet brought messages."""
        self._store.put(batch, packet_id)

    def ordered(self, reference: OrderedReference) -> None:
        """A packet says that these messages are next in the order."""
        self._references.append(reference)

    def next_ordered(self) -> Iterator[tuple[OrderedReference, PacketId, list[Batch]]]:
        """Take what is next in the order and has arrived, with the id of the packet that brought it."""
        while self._references and self._store.has(self._references[0].reference):
            reference = self._references.popleft()
            batches, packet_id = self._store.take(reference.reference)
            yield reference, packet_id, batches
