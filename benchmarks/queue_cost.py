"""What an urgent message costs when others wait: `python -m benchmarks.queue_cost`, by how many wait.

All members are in one process, without a network and in virtual time (`driven_group.py`). Messages of three
levels wait at every member, because no application consumes; then every member broadcasts urgent ones, which
are inserted before them. The shortest processor time of some rounds counts.
"""

import argparse

from benchmarks.driven_group import DrivenGroup
from priocast.member import Member

ORDERS = ("reorder", "reorder-locks")
LENGTHS = (0, 100, 400, 800)
MEMBERS = 4
_SETTLING_MS = 300
#: An exchange, and the pause after it: no application consumes.
_ROUND_TRIPS_MS = 10
_WAITING_LEVELS = 3
_URGENT = 7
_ROUNDS = 5
_MESSAGES_PER_ROUND = 20


class WaitingGroup(DrivenGroup):
    """Members whose applications do not consume, and messages that wait for them."""

    def __init__(self, order: str, length: int) -> None:
        super().__init__(MEMBERS, order)
        self._consuming = True
        self.wait_view()
        self.run(_SETTLING_MS)
        self._consuming = False
        for number in range(length // MEMBERS):
            self.broadcast_at_all(number % _WAITING_LEVELS)
        self.run(_ROUND_TRIPS_MS)

    def broadcast_at_all(self, priority: int) -> None:
        """Let every member broadcast a message, and wait until it is inserted everywhere."""
        for name in self.members:
            self.broadcast(name, bytes(64), priority)
        self.run(_ROUND_TRIPS_MS)

    def insert_urgent(self) -> None:
        """Let every member broadcast an urgent message, which is inserted before what waits."""
        self.broadcast_at_all(_URGENT)

    def _consume(self, member: Member) -> None:
        if self._consuming:
            super()._consume(member)


def urgent_us(order: str, length: int) -> float:
    """The processor time of an urgent message, in all members together, when so many others wait."""
    group = WaitingGroup(order, length)
    times = []
    for _ in range(_ROUNDS):
        group.seconds = 0.0
        for _ in range(_MESSAGES_PER_ROUND // MEMBERS):
            group.insert_urgent()
        times.append(group.seconds / _MESSAGES_PER_ROUND)
    return min(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("orders", nargs="*", default=ORDERS)
    parser.add_argument("--length", type=int, action="append", help=f"messages that wait ({LENGTHS})")
    arguments = parser.parse_args()
    print(f"{MEMBERS} members, us of processor time per urgent message, in all members together")
    for order in arguments.orders:
        for length in arguments.length or LENGTHS:
            print(f"{order:16} {length:5} messages wait: {urgent_us(order, length):8.1f}", flush=True)


if __name__ == "__main__":
    main()
