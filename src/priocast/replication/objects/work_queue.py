"""A replicated queue of work with priorities: each item is given to one worker at a time.

An item that was taken belongs to its worker until the worker is done with it, gives it back, or leaves the
group: then another worker gets it. So an item may be worked on more than once, and `attempts` says how often;
`done` tells a worker whether the item was still its own.
"""

import time
from typing import Any, Generic, TypeVar

import msgspec

from priocast.core.errors import DeadlineExceeded
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.view import View
from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject

TAKE_SECONDS = 30.0

T = TypeVar("T")


class WorkItem(msgspec.Struct, Generic[T], frozen=True, array_like=True):
    """An item of work: its number in the queue, its priority, and how often it was taken."""

    number: int
    priority: int
    item: T
    attempts: int = 0


class ReplicatedQueue(ReplicatedObject, Generic[T]):
    """A queue whose most urgent item is next; items are what msgpack can carry."""

    def __init__(self) -> None:
        self._next = 0
        self._waiting: list[WorkItem[Any]] = []
        self._taken: dict[int, tuple[str, WorkItem[Any]]] = {}

    async def put(self, item: T, priority: int = ROUTINE) -> int:
        """Add an item, with the priority of the call and of the item; return its number."""
        return await self._put.at(priority=check_priority(priority))(item)

    async def take(self, timeout_seconds: float = TAKE_SECONDS) -> WorkItem[T]:
        """Wait for the most urgent item and take it; after `timeout_seconds`, raise `DeadlineExceeded`."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            found = await self.take_nowait()
            if found is not None:
                return found
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded(f"timed out after {timeout_seconds:g} s: the queue is empty")
            await self.replica.wait_until(lambda: bool(self._waiting), left)

    @replicated
    def _put(self, item: T) -> int:
        number, self._next = self._next, self._next + 1
        self._enqueue(WorkItem(number, self.context.priority, item))
        return number

    @replicated
    def take_nowait(self) -> WorkItem[T] | None:
        """Take the most urgent item; None if there is none."""
        if not self._waiting:
            return None
        first = self._waiting.pop(0)
        taken = msgspec.structs.replace(first, attempts=first.attempts + 1)
        self._taken[taken.number] = (str(self.context.sender), taken)
        return taken

    @replicated
    def done(self, number: int) -> bool:
        """The worker is done with an item; return whether it was still its own."""
        return self._owned(number) and self._taken.pop(number, None) is not None

    @replicated
    def give_back(self, number: int) -> bool:
        """Let another worker take the item; return whether it was this worker's own."""
        if not self._owned(number):
            return False
        self._enqueue(self._taken.pop(number)[1])
        return True

    @query
    def counts(self) -> tuple[int, int]:
        """How many items wait, and how many are taken."""
        return len(self._waiting), len(self._taken)

    def on_view(self, view: View) -> None:
        """The items of workers that are gone, or were evicted, wait again."""
        present = {str(member) for member in view.members}
        for number, (worker, item) in list(self._taken.items()):
            if worker not in present:
                del self._taken[number]
                self._enqueue(item)

    def _owned(self, number: int) -> bool:
        worker, _ = self._taken.get(number, ("", None))
        return worker == str(self.context.sender)

    def _enqueue(self, item: WorkItem[Any]) -> None:
        self._waiting.append(item)
        self._waiting.sort(key=lambda each: (-each.priority, each.number))

    def snapshot(self) -> bytes:
        """All items."""
        return msgspec.msgpack.encode((self._next, self._waiting, list(self._taken.items())))

    def restore(self, data: bytes) -> None:
        """Replace all items."""
        kind = tuple[int, list[WorkItem[Any]], list[tuple[int, tuple[str, WorkItem[Any]]]]]
        self._next, self._waiting, taken = msgspec.msgpack.decode(data, type=kind)
        self._taken = dict(taken)
