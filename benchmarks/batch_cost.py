"""What a message costs at full load, plain and prioritised: `python -m benchmarks.batch_cost`.

All members are in one process, without a network and in virtual time (`driven_group.py`). Every member
broadcasts bursts of one level, eight levels in turn, as fast as flow control allows, and consumes all that is
deliverable. The two variants are measured by turns, in processor time, and the shortest time of all rounds
counts. A plain group puts bursts of all levels into one batch, so what priorities cost is what more batches
cost.
"""

import argparse
from dataclasses import dataclass

from benchmarks.driven_group import Arrived, DrivenGroup
from priocast.core.protocol import OrderingOptions
from priocast.member import Member

ORDERS = ("sequencer-ub", "token-ring", "causal-history", "agreement-skeen", "reorder", "reorder-locks")
BURSTS = (64, 512)
LEVELS = 8
MEMBERS = 4
_PRIORITIES = [256 // LEVELS * level for level in range(LEVELS)]
_SETTLING_MS = 300
_STARTING_MS = 20


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

    @property
    def batch_size(self) -> float:
        """How many messages the application got at a time."""
        return self.messages / self.batches


class LoadedGroup(DrivenGroup):
    """Members that broadcast whenever there is room."""

    def __init__(self, order: str, burst: int, *, prioritised: bool) -> None:
        super().__init__(MEMBERS, order, OrderingOptions(prioritised=prioritised))
        self._payloads = [bytes(64)] * burst
        self._bursts = dict.fromkeys(self.members, 0)
        self.loaded = False

    def _turn(self, member: Member, arrived: Arrived) -> None:
        name = member.me.name
        while self.loaded and member.room(_PRIORITIES[self._bursts[name] % LEVELS]) >= len(self._payloads):
            member.broadcast_many(self._payloads, _PRIORITIES[self._bursts[name] % LEVELS])
            self._bursts[name] += 1
        super()._turn(member, arrived)


def measured(order: str, burst: int, messages: int, *, prioritised: bool) -> FullLoad:
    """Let a group deliver so many messages at full load."""
    group = LoadedGroup(order, burst, prioritised=prioritised)
    group.wait_view()
    group.run(_SETTLING_MS)
    group.loaded = True
    group.run(_STARTING_MS)
    group.seconds, group.batches, before = 0.0, 0, group.deliveries
    group.run_until(lambda: group.deliveries - before >= messages * MEMBERS)
    return FullLoad(group.seconds, (group.deliveries - before) // MEMBERS, group.batches // MEMBERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("orders", nargs="*", default=ORDERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    arguments = parser.parse_args()
    print(f"{MEMBERS} members, us of processor time per message in all members together, messages in a batch")
    for order in arguments.orders:
        for burst in BURSTS:
            rounds = [
                [measured(order, burst, arguments.messages, prioritised=each) for each in (False, True)]
                for _ in range(arguments.rounds)
            ]
            plain, prioritised = (min(each, key=_message_us) for each in zip(*rounds, strict=True))
            print(
                f"{order:20} bursts of {burst:3}   plain {plain.message_us:6.2f} ({plain.batch_size:4.0f})   "
                f"prioritised {prioritised.message_us:6.2f} ({prioritised.batch_size:4.0f})   "
                f"plain over prioritised {plain.message_us / prioritised.message_us:.2f}"
            )


def _message_us(load: FullLoad) -> float:
    return load.message_us


if __name__ == "__main__":
    main()
