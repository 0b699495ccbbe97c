"""What a batch costs at full load: `python -m benchmarks.batch_cost`, plain and prioritised, in processor time.

All members are in one process, without a network and in virtual time (`driven_group.py`), so figures do not
depend on what else the machine does. Every member broadcasts bursts of one level, eight levels in turn, as fast
as flow control allows, and consumes all that is deliverable. The two variants are measured by turns, and the
shortest time of all rounds counts. A plain group puts bursts of all levels into one batch; what eight levels
cost is the cost of the batches that they add.
"""

import argparse
from dataclasses import dataclass

from priocast.core.message import OrderedBatch
from priocast.core.protocol import OrderingOptions
from priocast.member import Member

from benchmarks.driven_group import MILLISECOND, DrivenGroup

ORDERS = ("sequencer-ub", "token-ring", "causal-history", "agreement-skeen", "reorder", "reorder-locks")
BURSTS = (64, 512)
LEVELS = 8
MEMBERS = 4
_PRIORITIES = [256 // LEVELS * level for level in range(LEVELS)]
_SETTLING_MS = 300
_MESSAGES = 300_000


@dataclass(frozen=True)
class FullLoad:
    """What one variant was measured to cost, in all members together."""

    seconds: float
    messages: int
    batches: int

    @property
    def message_us(self) -> float:
        """The processor time of a message."""
        return self.seconds / self.messages * 1e6


class LoadedGroup(DrivenGroup):
    """Members that broadcast whenever there is room."""

    def __init__(self, order: str, burst: int, *, prioritised: bool) -> None:
        super().__init__(MEMBERS, order, OrderingOptions(prioritised=prioritised))
        self._payloads = [bytes(64)] * burst
        self._bursts = dict.fromkeys(self.members, 0)
        self.loaded = False

    def _turn(self, member: Member, arrived: list) -> None:
        name = member.me.name
        while self.loaded and member.room(_PRIORITIES[self._bursts[name] % LEVELS]) >= len(self._payloads):
            member.broadcast_many(self._payloads, _PRIORITIES[self._bursts[name] % LEVELS])
            self._bursts[name] += 1
        super()._turn(member, arrived)


def measured(order: str, burst: int, *, prioritised: bool) -> FullLoad:
    """Let a group deliver some messages at full load."""
    group = LoadedGroup(order, burst, prioritised=prioritised)
    group.wait_view()
    group.run(_SETTLING_MS)
    group.loaded = True
    group.run(20)
    group.seconds, group.batches, before = 0.0, 0, group.deliveries
    group.run_until(lambda: group.deliveries - before >= _MESSAGES * MEMBERS)
    return FullLoad(group.seconds, (group.deliveries - before) // MEMBERS, group.batches // MEMBERS)
