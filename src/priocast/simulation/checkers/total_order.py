"""Total order: the n-th message that a member delivers is the n-th that every member delivers.

Members are compared by what they did, not by the positions that the protocol claims; a claimed position
that is not the true one is a violation, too.
"""

from priocast.core.guarantees import TOTAL_ORDER
from priocast.simulation.checkers.checker import Checker, Key, Report, keys_of, name_of
from priocast.trace.schema import Row


class TotalOrder(Checker):
    """Holds the order that the fastest member has shown so far."""

    PROPERTY = TOTAL_ORDER

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._order: list[Key] = []
        self._first_by: list[str] = []
        self._count: dict[str, int] = {}

    def on_delivered(self, row: Row) -> None:
        member, order = row.member, self._order
        position = self._count.get(member, 0)
        if row.position != position:
            key = keys_of(row)[0]
            text = (
                f"{member} claims position {row.position} for {name_of(key)}, its delivery number {position}"
            )
            self.violated(text, row.time_ns, position=position, messages=[key], members=[member])
        for key in keys_of(row):
            assert position <= len(order), "a member is at most one ahead"
            if position == len(order):
                order.append(key)
                self._first_by.append(member)
            elif order[position] != key:
                self._differs(row, position, key)
            position += 1
        self._count[member] = position

    def _differs(self, row: Row, position: int, key: Key) -> None:
        other, first_by = self._order[position], self._first_by[position]
        text = f"{row.member} delivers {name_of(key)} where {first_by} delivered {name_of(other)}"
        self.violated(
            text, row.time_ns, position=position, messages=[key, other], members=[row.member, first_by]
        )
