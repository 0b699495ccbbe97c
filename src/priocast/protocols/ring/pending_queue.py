"""The pending queue: messages that wait here for a position, which another member may assign."""

from collections.abc import Callable, Iterator

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference, reference_to
from priocast.core.priority_queue import PriorityQueue
from priocast.core.starvation import Starvation

_UNBOUNDED = 1 << 62


def _ignore(messages: Reference) -> None:
    """Nobody counts what waits."""


class PendingQueue(PriorityQueue):
    """A priority queue that messages also leave when another member orders them.

    Messages of one sender and level are ordered by their numbers, so it is enough to know which number is
    next. Messages that another member has ordered stay in the queue until they would be the next to leave,
    and are dropped then. `on_left` is called for all messages that leave.
    """

    def __init__(self, starvation: Starvation, on_left: Callable[[Reference], None] = _ignore) -> None:
        super().__init__(starvation, _UNBOUNDED, _UNBOUNDED)
        self._on_left = on_left
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def put(self, batch: Batch, now: int) -> None:
        super().put(batch, now)
        self._drop_ordered()

    def take(self, count_max: int) -> Batch:
        batch = super().take(count_max)
        self._on_left(reference_to(batch))
        self._drop_ordered()
        return batch

    def ordered(self, orderer: ProcessId, messages: Batch | Reference) -> None:
        """A member has ordered messages; each is ordered only once, and after those before it."""
        stream = (messages.sender, messages.level)
        expected = self._number_next.get(stream, messages.first)
        if messages.first != expected:
            raise PeerFault(f"{orderer} orders {messages}; number {expected} of that level is next")
        self._number_next[stream] = expected + messages.count
        self._drop_ordered()

    def leaving(self) -> Iterator[tuple[int, int, Batch]]:
        for sort_key, since, batch in super().leaving():
            ordered = self._count_ordered(batch)
            if ordered < batch.count:
                yield sort_key, since, batch.after(ordered)

    def _count_ordered(self, messages: Batch | Reference) -> int:
        """How many of these, the first ones, are ordered."""
        return max(0, self._number_next.get((messages.sender, messages.level), 0) - messages.first)

    def _drop_ordered(self) -> None:
        while self and (ordered := self._count_ordered(head := self.head())):
            count = min(ordered, head.count)
            self.drop(count)
            self._on_left(Reference(head.sender, head.level, head.first, count))
