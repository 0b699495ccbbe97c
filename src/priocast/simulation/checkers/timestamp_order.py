"""Timestamp order: the stamps of an order that has them are unique, the same everywhere, and in order.

- In a view a message has one stamp, wherever it is delivered. A message that is delivered in two views has
  two, which Total order allows only where the first delivery binds nobody.
- A stamp has one message, also on two sides of a partition.
- An incarnation delivers in the order of the stamps, through all its views.
- A message has a greater stamp than everything that its incarnation had delivered when it broadcast it.

Rows do not contain stamps: the recorder of a simulated member passes them on.
"""

from collections.abc import Sequence

from priocast.core.guarantees import TIMESTAMP_ORDER
from priocast.core.stamp import Stamp
from priocast.core.view import ViewId
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import Key, keys_of, message_name, process_of
from priocast.trace.schema import MessageRow


class TimestampOrder(Checker):
    """Remembers every stamp, its message, and the last one that each incarnation has delivered."""

    GUARANTEE = TIMESTAMP_ORDER

    def __init__(self, report: ReportViolation) -> None:
        super().__init__(report)
        self._stamp_of: dict[tuple[ViewId, Key], Stamp] = {}
        self._message_of: dict[Stamp, Key] = {}
        self._last: dict[str, Stamp] = {}
        self._delivered_before: dict[Key, Stamp] = {}

    def on_broadcast(self, row: MessageRow) -> None:
        last = self._last.get(process_of(row))
        if last is not None:
            self._delivered_before.update(dict.fromkeys(keys_of(row), last))

    def on_stamped(self, process: str, keys: Sequence[Key], first: Stamp, now: int) -> None:
        for index, key in enumerate(keys):
            stamp = first.after(index)
            self._check(process, key, stamp, now)
            self._last[process] = stamp

    def _check(self, process: str, key: Key, stamp: Stamp, now: int) -> None:
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
            view = (stamp.view.number, str(stamp.view.coordinator))
            self.violated(summary, now, view=view, messages=[key, other], members=[process])
