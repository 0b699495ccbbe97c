"""What was sent to all in a view, kept until every member has it.

Each member numbers what it sends to all, from 1 on, and links keep the order, so what a member holds of
another one is told by one number. Members tell each other these numbers; what all hold is *stable* and is
forgotten. The rest is what a flush may have to hand to those who lack it.
"""

from collections import deque
from collections.abc import Sequence

_EVERYTHING = 1 << 62


class Retention:
    """The packets to all of one view, by the rank of their sender, and who is known to hold how many.

    `bytes` is what is kept now, `received` and `received_bytes` what there ever was.
    """

    def __init__(self, size: int, my_rank: int) -> None:
        self._my_rank = my_rank
        self.held = [0] * size
        self.known = [[0] * size for _ in range(size)]
        self.known[my_rank] = self.held
        self._bodies: list[deque[bytes]] = [deque() for _ in range(size)]
        self._held_by_others = [0 if size > 1 else _EVERYTHING] * size
        self.bytes = 0
        self.received = 0
        self.received_bytes = 0

    def add(self, rank: int, body: bytes) -> int:
        """Keep one more packet of a sender; return its number."""
        self.held[rank] += 1
        self._bodies[rank].append(body)
        self.bytes += len(body)
        self.received += 1
        self.received_bytes += len(body)
        if self._held_by_others[rank] >= self.held[rank]:
            self._forget_stable(rank)
        return self.held[rank]

    def report(self, rank: int, held: Sequence[int]) -> bool:
        """A member says what it holds; forget what is stable now. Returns whether that was news."""
        known = self.known[rank]
        if rank == self._my_rank or len(held) != len(known) or all(map(int.__le__, held, known)):
            return False
        for sender, count in enumerate(held):
            if count > known[sender]:
                known[sender] = count
                others = (row[sender] for member, row in enumerate(self.known) if member != self._my_rank)
                self._held_by_others[sender] = min(others)
                self._forget_stable(sender)
        return True

    def merge(self, known: Sequence[Sequence[int]]) -> None:
        """Take over what others know; nothing is forgotten, because a flush is under way."""
        for rank, row in enumerate(known):
            if rank != self._my_rank:
                self.known[rank] = list(map(max, self.known[rank], row))

    def is_held_by(self, rank: int, dependencies: Sequence[int]) -> bool:
        """Whether a member is known to hold this many packets of each sender."""
        return all(map(int.__ge__, self.known[rank], dependencies))

    def is_stable(self, dependencies: Sequence[int]) -> bool:
        """Whether every member is known to hold this many packets of each sender."""
        return all(all(map(int.__ge__, row, dependencies)) for row in self.known)

    def bodies(self, rank: int, first: int, last: int, bytes_cut: int) -> list[bytes]:
        """Packets of a sender by number, as many as are kept here and fit."""
        kept = self._bodies[rank]
        index = first - (self.held[rank] - len(kept)) - 1
        found: list[bytes] = []
        size = 0
        while 0 <= index < len(kept) and first + len(found) <= last and size < bytes_cut:
            found.append(kept[index])
            size += len(kept[index])
            index += 1
        return found

    def _forget_stable(self, sender: int) -> None:
        kept = self._bodies[sender]
        unstable = self.held[sender] - min(self.held[sender], self._held_by_others[sender])
        while len(kept) > unstable:
            self.bytes -= len(kept.popleft())
