"""Priority accounting: what is less urgent goes first exactly if some member had consumed it.

Judged are, when the run is over, the prioritised views of classes that let priorities act where messages are
consumed. Let l be less urgent than h, and let both have their places in the view. Then l is before h if, and
only if, some member of the view had got past l when h came to it: it had delivered l, or something at a later
place.

What members deliver is the beginning of one order, so one number says how far any of them had *reached* when
h came: nothing up to there may be behind h, and nothing less urgent beyond it may be before h. Members that
fell out of the view count like any other; what they delivered counts where the others have it. To whom h
never came had reached all that it delivered.

Members may have got past messages that they did not deliver: those that are not for them, and those that they
kept, or found in the state, when they joined. A member *may* have reached all that comes before its next
delivery; a joiner anything before it has the state, and then as many messages as it had received, or as the
state holds.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import (
    Checker,
    Key,
    Report,
    ViewKey,
    is_joiner,
    keys_of,
    name_of,
    process_of,
    re_orders,
    view_of,
)
from priocast.simulation.checkers.chronicle import FELL_OUT, Chronicle, Stay
from priocast.trace.recorded_run import urgency_of
from priocast.trace.schema import GroupEventRow, MessageRow

_NOTHING = -1
_EVERYTHING = 1 << 62


class _Placed(NamedTuple):
    """A message at its place."""

    position: int
    urgency: int
    key: Key

    def __str__(self) -> str:
        return f"{name_of(self.key)} (urgency {self.urgency})"


class _Visit:
    """One member in one view.

    `came` says of each message that came to it how many it had delivered there by then. Those in `unseen`
    came before it had the state.
    """

    def __init__(self) -> None:
        self.came: dict[Key, int] = {}
        self.unseen: frozenset[Key] = frozenset()
        self._past, self._next = [_NOTHING], [_EVERYTHING]
        self._known = _NOTHING

    def settle(self, delivered: Mapping[Key, object], place_of: dict[Key, int], known: int) -> None:
        """This is what it delivered there, by and by; what is before `known` it may have got past unseen."""
        past = (place_of.get(key, _NOTHING) for key in delivered)
        coming = (place_of.get(key, _EVERYTHING) for key in reversed(list(delivered)))
        self._past = list(accumulate(past, max, initial=_NOTHING))
        self._next = list(accumulate(coming, min, initial=_EVERYTHING))[::-1]
        self._known = known

    def reached(self, key: Key) -> int:
        """The last place that it had got past when a message came."""
        return self._past[self.came.get(key, -1)]

    def may_have_reached(self, key: Key, selective: bool) -> int:
        """The same, with what it may have got past unseen; `selective` if some messages are not for all."""
        if key in self.unseen:
            return _EVERYTHING
        if key not in self.came:
            return self.reached(key)
        coming = self._next[self.came[key]] if selective else _NOTHING
        return max(self.reached(key), self._known - 1, coming - 1)


class PriorityAccounting(Checker):
    """Notes how far each member was when each message came to it, and compares that with the order.

    `all_safe` says that every message is, `joiners_wait` that they take over a state.
    """

    PROPERTY = PRIORITY_ACCOUNTING

    def __init__(self, report: Report, chronicle: Chronicle, *, all_safe: bool, joiners_wait: bool) -> None:
        super().__init__(report)
        self._chronicle = chronicle
        self._all_safe = all_safe
        self._joiners_wait = joiners_wait
        self._waiting: set[str] = set()
        self._visits: dict[ViewKey, dict[str, _Visit]] = {}
        self._begins_at: dict[ViewKey, int] = {}
        self._urgency: dict[Key, int] = {}
        self._selective = False

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        if self._joiners_wait and is_joiner(me, view):
            self._waiting.add(str(me))
        if re_orders(ordering):
            visits = {str(member): _Visit() for member in view.members}
            self._visits.setdefault((view.number, str(view.coordinator)), visits)

    def on_view(self, row: GroupEventRow) -> None:
        self._begins_at[view_of(row)] = row.position

    def on_received(self, row: MessageRow) -> None:
        visits = self._visits.get(view_of(row))
        if visits is None or not row.bytes:
            return
        process, keys = process_of(row), keys_of(row)
        visits[process].came.update(dict.fromkeys(keys, self._delivered_by(process, view_of(row))))
        self._urgency.update(dict.fromkeys(keys, urgency_of(row)))
        self._selective |= bool(row.to)

    def _delivered_by(self, process: str, view: ViewKey) -> int:
        life = self._chronicle.lives.get(process)
        return len(life.stays[-1].delivered) if life and life.stays[-1].view == view else 0

    def on_state(self, row: GroupEventRow) -> None:
        self._waiting.discard(process_of(row))
        self._had_no_state(process_of(row))

    def _had_no_state(self, process: str) -> None:
        """Nobody can see what a member has got past so far."""
        for visits in self._visits.values():
            if process in visits:
                visits[process].unseen = frozenset(visits[process].came)

    def finish(self, now: int) -> None:
        for process in self._waiting:
            self._had_no_state(process)
        for view, stays in self._chronicle.by_view().items():
            if view in self._visits:
                self._judge(view, stays, now)

    def _judge(self, view: ViewKey, stays: list[Stay], now: int) -> None:
        """Report the first message of a view that is not where it has to be."""
        place_of, visits = self._places(stays), self._visits[view]
        for stay in stays:
            visit, owes_from = visits[stay.process], self._chronicle.lives[stay.process].owes_from
            known = max(owes_from, self._begins_at[view] + len(visit.unseen))
            visit.settle(stay.delivered, place_of, known)
        order = sorted(_Placed(place, self._urgency.get(key, key[2]), key) for key, place in place_of.items())
        last_of: dict[int, _Placed] = {}
        for placed in order:
            reached, process = max((visit.reached(placed.key), name) for name, visit in visits.items())
            if reached >= placed.position:
                self._too_early(placed, order, reached, process, now)
                return
            may_reach = max(visit.may_have_reached(placed.key, self._selective) for visit in visits.values())
            before = max((last for level, last in last_of.items() if level < placed.urgency), default=None)
            if before is not None and before.position > may_reach:
                self._too_late(placed, before, list(visits), now)
                return
            last_of[placed.urgency] = placed

    def _places(self, stays: list[Stay]) -> dict[Key, int]:
        """The places that bind: see Total order. If nobody went on, all do."""
        survived = any(stay.onward != FELL_OUT for stay in stays)
        return {
            key: delivered.position
            for stay in stays
            for key, delivered in stay.delivered.items()
            if stay.onward != FELL_OUT or not survived or self._all_safe or delivered.safe
        }

    def _too_early(self, placed: _Placed, order: list[_Placed], reached: int, process: str, now: int) -> None:
        """Somebody had got past its place: name the first less urgent one there, or else where it had got."""
        passed = [other for other in order if placed.position < other.position <= reached]
        lower = [other for other in passed if other.urgency < placed.urgency]
        others = lower[:1] or passed[-1:]
        named = f", before {others[0]} at {others[0].position}" if others else ""
        text = (
            f"{placed} is at {placed.position}{named}, but when it came to {process} "
            f"that had reached {reached}"
        )
        messages = [placed.key, *(other.key for other in others)]
        self.violated(text, now, position=placed.position, messages=messages, members=[process])

    def _too_late(self, placed: _Placed, before: _Placed, members: list[str], now: int) -> None:
        text = (
            f"{placed} is at {placed.position}, behind {before} at {before.position}, but when it came none "
            f"of {', '.join(members)} had got there"
        )
        messages = [placed.key, before.key]
        self.violated(text, now, position=placed.position, messages=messages, members=members)
