"""Timestamp order: the stamps of an order that has them are unique, the same everywhere, and in order.

- In a view a message has one stamp, wherever it is delivered. A message that is delivered in two views has
  two, which Total order allows only where the first delivery binds nobody.
- A stamp has one message, also on two sides of a partition.
- An incarnation delivers in the order of the stamps, through all its views.
- A message has a greater stamp than everything that its incarnation had delivered when it broadcast it.
"""

from typing import NamedTuple

from priocast.core.guarantees import TIMESTAMP_ORDER
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import (
    Key,
    ViewKey,
    keys_of,
    message_name,
    process_of,
    view_name,
    view_of,
)
from priocast.trace.schema import MessageRow


class _RecordedStamp(NamedTuple):
    """A stamp as rows have it; stamps of one process compare by the numbers of its views."""

    view: ViewKey
    distribution: tuple[int, int]
    number: int

    def __str__(self) -> str:
        number, rank = self.distribution
        return f"{view_name(self.view)}/{number}.{rank}/{self.number}"


class TimestampOrder(Checker):
    """Remembers every stamp, its message, and the last one that each incarnation has delivered."""

    GUARANTEE = TIMESTAMP_ORDER

    def __init__(self, report: ReportViolation) -> None:
        super().__init__(report)
        self._stamp_of: dict[tuple[ViewKey, Key], _RecordedStamp] = {}
        self._message_of: dict[_RecordedStamp, Key] = {}
        self._last: dict[str, _RecordedStamp] = {}
        self._delivered_before: dict[Key, _RecordedStamp] = {}

    def on_broadcast(self, row: MessageRow) -> None:
        last = self._last.get(process_of(row))
        if last is not None:
            self._delivered_before.update(dict.fromkeys(keys_of(row), last))

    def on_delivered(self, row: MessageRow) -> None:
        if not row.distribution:
            return
        number, _, rank = row.distribution.partition(".")
        for stamp_number, key in enumerate(keys_of(row), row.stamp_number):
            stamp = _RecordedStamp(view_of(row), (int(number), int(rank)), stamp_number)
            self._check(process_of(row), key, stamp, row)
            self._last[process_of(row)] = stamp

    def _check(self, process: str, key: Key, stamp: _RecordedStamp, row: MessageRow) -> None:
        last, before = self._last.get(process), self._delivered_before.get(key)
        known = self._stamp_of.setdefault((stamp.view, key), stamp)
        other = self._message_of.setdefault(stamp, key)
        wrong = None
        if last is not None and stamp <= last:
            wrong = f"after {last}"
        elif before is not None and stamp <= before:
            wrong = f"although its sender had delivered {before} when it broadcast it"
        elif known != stamp:
            wrong = f"elsewhere it has the stamp {known}"
        elif other != key:
            wrong = f"which {message_name(other)} has, too"
        if wrong:
            summary = f"{process} delivers {message_name(key)} with the stamp {stamp}, {wrong}"
            messages = [key] if other == key else [key, other]
            self.violated(summary, row.time_ns, view=stamp.view, messages=messages, members=[process])
