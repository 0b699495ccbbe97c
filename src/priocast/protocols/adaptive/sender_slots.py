"""What was received from one member: which of its turns are filled or skipped, and its unordered messages."""

from collections import deque

from priocast.core.message import Batch
from priocast.core.stamp import DistributionId
from priocast.protocols.adaptive.slots import Distribution

SlotKey = tuple[int, int, int]
"""A slot of a view: the id of its distribution, and its number there. Messages are ordered by these."""


def key_of(id_: DistributionId, slot: int) -> SlotKey:
    """The key of a slot."""
    return id_[0], id_[1], slot


class SenderSlots:
    """The slots of one member, as far as its packets have arrived.

    All its turns in `distribution` before `turn_next` are filled or skipped, and all in earlier ones. `clock`
    is the first slot that it may still fill. `filled` are its unordered messages, one entry per slot.
    """

    def __init__(self, distribution: Distribution, rank: int) -> None:
        self._rank = rank
        self.distribution = distribution
        self.turn_next = 0
        self.clock = key_of(distribution.id, distribution.slot(rank, 0))
        self.filled: deque[tuple[Batch, ...]] = deque()
        self._packets: deque[tuple[SlotKey, int]] = deque([(self.clock, 0)])

    def advance(self, distribution: Distribution, turn_next: int, packet_number: int) -> None:
        """The member's next packet to all."""
        self.distribution = distribution
        self.turn_next = turn_next
        self.clock = key_of(distribution.id, distribution.slot(self._rank, turn_next))
        self._packets.append((self.clock, packet_number))

    def packet_after(self, key: SlotKey) -> int:
        """The number of the first packet by which one knows that the member fills no slot up to this one.

        It is 0 if that is known without any packet. Keys must not decrease from call to call.
        """
        while self._packets[0][0] <= key:
            self._packets.popleft()
        return self._packets[0][1]
