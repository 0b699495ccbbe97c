"""PendingQueue: messages that wait here for a place, where another member may give them theirs."""

from collections.abc import Callable, Iterator

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference, reference_to
from priocast.core.priority_queue import PriorityQueue
from priocast.core.starvation import Starvation

_UNBOUNDED = 1 << 62


def _ignored(messages: Reference) -> None:
    """Nobody counts what waits."""


class PendingQueue(PriorityQueue):
    """A priority queue that what has a place leaves, too, whoever gave it.

    Messages of one sender and level get their places in the order of their numbers, so it is enough to know
    which number is next. Whatever is behind that one stays in the queue until it would be the next to leave,
    and is forgotten then. `left` is told of all that is no longer here.
    """

    def __init__(self, starvation: Starvation, left: Callable[[Reference], None] = _ignored) -> None:
        super().__init__(starvation, _UNBOUNDED, _UNBOUNDED)
        self._left = left
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def put(self, batch: Batch, now: int) -> None:
        super().put(batch, now)
        self._forget()

    def take(self, count_max: int) -> Batch:
        batch = super().take(count_max)
        self._left(reference_to(batch))
        self._forget()
        return batch

    def placed(self, orderer: ProcessId, messages: Batch | Reference) -> None:
        """Messages got a place from a member; each gets only one, and in its turn."""
        stream = (messages.sender, messages.level)
        expected = self._number_next.get(stream, messages.first)
        if messages.first != expected:
            raise PeerFault(f"{orderer} orders {messages}, where number {expected} of that level is next")
        self._number_next[stream] = expected + messages.count
        self._forget()

    def leaving(self) -> Iterator[tuple[int, int, Batch]]:
        for rank, since, batch in super().leaving():
            behind = self._behind(batch)
            if behind < batch.count:
                yield rank, since, batch.after(behind)

    def _behind(self, messages: Batch | Reference) -> int:
        """How many of these, the first ones, have a place."""
        return max(0, self._number_next.get((messages.sender, messages.level), 0) - messages.first)

    def _forget(self) -> None:
        while self and (behind := self._behind(head := self.head())):
            count = min(behind, head.count)
            self.drop(count)
            self._left(Reference(head.sender, head.level, head.first, count))
