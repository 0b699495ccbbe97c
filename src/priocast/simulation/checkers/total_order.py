"""Total order: a message has one place, a place has one message, and places are passed in their order.

A place is a view and a position in it, and every life delivers at ever later ones. So two lives that
deliver two messages deliver them in the same order; and a message that is delivered in two views, wherever
that is, has two places.

There is one exception. In a primary group with agreed delivery, what a life delivers in a view that it does
not survive binds nobody, unless it is safe: those who go on may never have heard of it.
"""

from priocast.core.guarantees import TOTAL_ORDER
from priocast.simulation.checkers.checker import (
    Checker,
    Key,
    Report,
    ViewKey,
    keys_of,
    name_of,
    process_of,
    text_of,
    view_of,
)
from priocast.simulation.checkers.chronicle import FELL_OUT, Chronicle
from priocast.trace.schema import MessageRow

_Place = tuple[ViewKey, int]


class TotalOrder(Checker):
    """Remembers every place, and who showed it first; `strict` if there is no exception."""

    PROPERTY = TOTAL_ORDER

    def __init__(self, report: Report, chronicle: Chronicle, strict: bool) -> None:
        super().__init__(report)
        self._chronicle = chronicle
        self._strict = strict
        self._place_of: dict[Key, tuple[_Place, str]] = {}
        self._message_at: dict[_Place, tuple[Key, str]] = {}
        self._reached: dict[str, int] = {}

    def on_delivered(self, row: MessageRow) -> None:
        process, view = process_of(row), view_of(row)
        reached = self._reached.get(process, -1)
        if row.position <= reached:
            key = keys_of(row)[0]
            text = f"{process} delivers {name_of(key)} at {row.position} after {reached}"
            self.violated(text, row.time_ns, position=row.position, messages=[key], members=[process])
        if self._strict or row.safe:
            for position, key in enumerate(keys_of(row), row.position):
                self._place(key, (view, position), process, row.time_ns)
        self._reached[process] = row.position + row.count - 1

    def finish(self, now: int) -> None:
        if self._strict:
            return
        for view, stays in self._chronicle.by_view().items():
            for stay in stays:
                if stay.onward != FELL_OUT:
                    for key, delivered in stay.delivered.items():
                        self._place(key, (view, delivered.position), stay.process, now)

    def _place(self, key: Key, place: _Place, process: str, now: int) -> None:
        view, position = place
        first, by = self._place_of.setdefault(key, (place, process))
        if first != place:
            text = (
                f"{process} delivers {name_of(key)} at position {position} of view {text_of(view)}, "
                f"{by} delivered it at {first[1]} of {text_of(first[0])}"
            )
            self.violated(text, now, position=position, messages=[key], members=[process, by])
        other, by = self._message_at.setdefault(place, (key, process))
        if other != key:
            text = f"{process} delivers {name_of(key)} where {by} delivered {name_of(other)}"
            self.violated(text, now, position=position, messages=[key, other], members=[process, by])
