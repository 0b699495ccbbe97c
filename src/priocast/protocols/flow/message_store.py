"""Messages that were received and wait for their positions, which name them by reference."""

from collections import deque

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import PacketId
from priocast.core.starvation import FirstInFirstOut

_UNBOUNDED = 1 << 62
#: Batches that wait here join up to this many messages. What joins is decoded and encoded once more at every
#: member, about 60 ns a message, and a batch costs each of them 10 to 15 us: only short ones are worth it.
_JOINED_MAX = 64


class MessageStore:
    """Each sender's messages of each level, in order, with the id of the packet that brought them."""

    def __init__(self) -> None:
        self._streams: dict[tuple[ProcessId, int], _Stream] = {}

    def put(self, batch: Batch, packet_id: PacketId) -> None:
        """Keep received messages; they follow those that their sender sent before on the same level."""
        key = (batch.sender, batch.level)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(batch.first)
        stream.put(batch, packet_id)

    def has(self, reference: Reference) -> bool:
        """Whether all these messages were received."""
        stream = self._streams.get((reference.sender, reference.level))
        return stream is not None and reference.first + reference.count <= stream.number_next

    def take(self, reference: Reference) -> tuple[list[Batch], PacketId]:
        """Remove messages, the next of their sender and level; return the id of the packet of the last."""
        return self._streams[reference.sender, reference.level].take(reference)


class _Stream:
    def __init__(self, number_first: int) -> None:
        self.number_next = self._number_first = number_first
        self._queue = PriorityQueue(FirstInFirstOut(), _UNBOUNDED, _UNBOUNDED, _JOINED_MAX)
        self._packet_ids: deque[tuple[int, PacketId]] = deque()

    def put(self, batch: Batch, packet_id: PacketId) -> None:
        self.number_next = batch.first + batch.count
        self._queue.put(batch, 0)
        self._packet_ids.append((self.number_next, packet_id))

    def take(self, reference: Reference) -> tuple[list[Batch], PacketId]:
        if reference.first != self._number_first:
            raise PeerFault(f"{reference} is ordered; number {self._number_first} is next")
        batches: list[Batch] = []
        left = reference.count
        while left:
            batches.append(self._queue.take(left))
            left -= batches[-1].count
        self._number_first += reference.count
        while self._packet_ids[0][0] < self._number_first:
            self._packet_ids.popleft()
        return batches, self._packet_ids[0][1]
