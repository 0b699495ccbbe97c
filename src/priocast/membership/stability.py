"""The packets that were sent to all in a view, kept until they are stable.

Each member numbers the packets that it sends to all, from 1 on, and links keep their order. So one count per
sender says what a member has received. Members report these counts to each other. What every member has
acknowledged is *stable* and is forgotten; the rest may be needed in a flush.

A packet acknowledges itself: its sender has it, so nobody reports what it sent. Where one member sends all
packets, as a fixed sequencer does, that member reports nothing between its heartbeats.

A report costs one comparison for each sender. What is stable depends on the reports of all: it is determined
once all others have reported, and at the latest at the next tick.
"""

from collections import deque
from collections.abc import Sequence

_EVERYTHING = 1 << 62


class Stability:
    """The packets to all of one view, by the rank of their sender, and how many each member acknowledged.

    `received` counts them by sender; `acknowledged` has such a row for each member. `unstable_bytes` is what
    is kept now, `unreported_bytes` what was received from others since the last report, `packets_total` and
    `bytes_total` everything that was ever received.
    """

    def __init__(self, size: int, my_rank: int) -> None:
        self._my_rank = my_rank
        self.received = [0] * size
        self.acknowledged = [[0] * size for _ in range(size)]
        self.acknowledged[my_rank] = self.received
        self._bodies: list[deque[bytes]] = [deque() for _ in range(size)]
        self._received_by_others = [0 if size > 1 else _EVERYTHING] * size
        self._reporters = 0
        self._blocking_rank = my_rank
        self.unstable_bytes = 0
        self.packets_total = 0
        self.bytes_total = 0
        self.unreported_bytes = 0

    def add(self, rank: int, body: bytes) -> int:
        """Keep one more packet of a sender, which has acknowledged it; return its number."""
        size = len(body)
        self.received[rank] = number = self.received[rank] + 1
        self._bodies[rank].append(body)
        self.unstable_bytes += size
        self.packets_total += 1
        self.bytes_total += size
        if rank != self._my_rank:
            self.unreported_bytes += size
            if self.acknowledged[rank][rank] < number:
                self.acknowledged[rank][rank] = number
                self._reporters |= 1 << rank
        if self._received_by_others[rank] >= number:
            self._forget_stable(rank)
        return number

    def report(self, rank: int, received: Sequence[int]) -> bool:
        """A member reports what it has received; forget what is stable now. Returns whether that was news."""
        row = self.acknowledged[rank]
        if rank == self._my_rank or len(received) != len(row) or all(map(int.__le__, received, row)):
            return False
        self.acknowledged[rank] = list(map(max, row, received))
        self._reporters |= 1 << rank
        if self._reporters.bit_count() == len(row) - 1:
            self.forget_stable()
        return True

    def forget_stable(self) -> None:
        """Forget what every member has acknowledged, if there were reports since the last time."""
        if not self._reporters:
            return
        self._reporters = 0
        others = [row for rank, row in enumerate(self.acknowledged) if rank != self._my_rank]
        self._received_by_others = list(map(min, zip(*others, strict=True)))
        for sender in range(len(self.received)):
            self._forget_stable(sender)

    def merge(self, acknowledged: Sequence[Sequence[int]]) -> None:
        """Adopt what others know; nothing is forgotten, because a flush is in progress."""
        for rank, row in enumerate(acknowledged):
            if rank != self._my_rank:
                self.acknowledged[rank] = list(map(max, self.acknowledged[rank], row))

    def is_received_by(self, rank: int, dependencies: Sequence[int]) -> bool:
        """Whether a member has acknowledged this many packets of each sender."""
        return all(map(int.__ge__, self.acknowledged[rank], dependencies))

    def is_stable(self, dependencies: Sequence[int]) -> bool:
        """Whether every member has acknowledged this many packets of each sender."""
        count = len(self.acknowledged)
        for rank in (self._blocking_rank, *range(count)):
            if not all(map(int.__ge__, self.acknowledged[rank], dependencies)):
                self._blocking_rank = rank
                return False
        return True

    def bodies(self, rank: int, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Packets of a sender by number, as many as are kept here and fit; one, however large it is."""
        kept = self._bodies[rank]
        index = first - (self.received[rank] - len(kept)) - 1
        found: list[bytes] = []
        size = 0
        while 0 <= index < len(kept) and first + len(found) <= last:
            size += len(kept[index])
            if found and size > bytes_max:
                break
            found.append(kept[index])
            index += 1
        return found

    def _forget_stable(self, sender: int) -> None:
        kept = self._bodies[sender]
        unstable = self.received[sender] - min(self.received[sender], self._received_by_others[sender])
        while len(kept) > unstable:
            self.unstable_bytes -= len(kept.popleft())
