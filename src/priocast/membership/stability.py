"""What was sent to all in a view, kept until every member has it.

Each member numbers what it sends to all, from 1 on, and links keep the order, so what a member holds of
another one is told by one number. Members tell each other these numbers; what all hold is *stable* and is
forgotten. The rest is what a flush may have to hand to those who lack it.
"""

from collections import deque
from collections.abc import Sequence

_EVERYTHING = 1 << 62


class Stability:
    """The packets to all of one view, by the rank of their sender, and who is known to hold how many.

    `unstable_bytes` is what is kept now, `packets_total` and `bytes_total` what there ever was.
    """

    def __init__(self, size: int, my_rank: int) -> None:
        self._my_rank = my_rank
        self.received = [0] * size
        self.acknowledged = [[0] * size for _ in range(size)]
        self.acknowledged[my_rank] = self.received
        self._bodies: list[deque[bytes]] = [deque() for _ in range(size)]
        self._received_by_others = [0 if size > 1 else _EVERYTHING] * size
        self.unstable_bytes = 0
        self.packets_total = 0
        self.bytes_total = 0

    def add(self, rank: int, body: bytes) -> int:
        """Keep one more packet of a sender; return its number."""
        self.received[rank] += 1
        self._bodies[rank].append(body)
        self.unstable_bytes += len(body)
        self.packets_total += 1
        self.bytes_total += len(body)
        if self._received_by_others[rank] >= self.received[rank]:
            self._forget_stable(rank)
        return self.received[rank]

    def report(self, rank: int, held: Sequence[int]) -> bool:
        """A member says what it holds; forget what is stable now. Returns whether that was news."""
        known = self.acknowledged[rank]
        if rank == self._my_rank or len(held) != len(known) or all(map(int.__le__, held, known)):
            return False
        for sender, count in enumerate(held):
            if count > known[sender]:
                known[sender] = count
                others = (
                    row[sender] for member, row in enumerate(self.acknowledged) if member != self._my_rank
                )
                self._received_by_others[sender] = min(others)
                self._forget_stable(sender)
        return True

    def merge(self, known: Sequence[Sequence[int]]) -> None:
        """Take over what others know; nothing is forgotten, because a flush is under way."""
        for rank, row in enumerate(known):
            if rank != self._my_rank:
                self.acknowledged[rank] = list(map(max, self.acknowledged[rank], row))

    def is_received_by(self, rank: int, dependencies: Sequence[int]) -> bool:
        """Whether a member is known to hold this many packets of each sender."""
        return all(map(int.__ge__, self.acknowledged[rank], dependencies))

    def is_stable(self, dependencies: Sequence[int]) -> bool:
        """Whether every member is known to hold this many packets of each sender."""
        return all(all(map(int.__ge__, row, dependencies)) for row in self.acknowledged)

    def bodies(self, rank: int, first: int, last: int, bytes_cut: int) -> list[bytes]:
        """Packets of a sender by number, as many as are kept here and fit."""
        kept = self._bodies[rank]
        index = first - (self.received[rank] - len(kept)) - 1
        found: list[bytes] = []
        size = 0
        while 0 <= index < len(kept) and first + len(found) <= last and size < bytes_cut:
            found.append(kept[index])
            size += len(kept[index])
            index += 1
        return found

    def _forget_stable(self, sender: int) -> None:
        kept = self._bodies[sender]
        unstable = self.received[sender] - min(self.received[sender], self._received_by_others[sender])
        while len(kept) > unstable:
            self.unstable_bytes -= len(kept.popleft())
