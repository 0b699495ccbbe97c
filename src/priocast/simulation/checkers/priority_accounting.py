"""Priority accounting: a less urgent message is ordered first exactly if some member had consumed it.

This is checked when the run is over, in the prioritised views of protocols whose priorities act where
messages are consumed. Let l be less urgent than h, and let both have a position in the view. Then l is
before h if, and only if, some member of the view had passed l when h arrived there: it had delivered l, or
a message at a later position.

What members deliver is a prefix of one order. So one number says how far any of them had *reached* when h
arrived: nothing up to there may be behind h, and nothing less urgent beyond it may be before h. Members
that dropped out of the view count like any other; what they delivered counts where the others have it. A
member where h never arrived had reached everything that it delivered.

Members may have passed messages that they did not deliver: messages that are not addressed to them, and
those that they kept, or found in the state, when they joined. A member *may* have reached everything before
its next delivery. A joiner may have reached anything before it has the state, and after that as many
messages as it had received, or as the state contains.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import Checker, ReportViolation, is_joiner, reorders, view_key
from priocast.simulation.checkers.process_history import EpochHistory, RunHistory
from priocast.simulation.checkers.rows import (
    Key,
    StateEvent,
    ViewEvent,
    ViewKey,
    keys_of,
    message_name,
    process_of,
    urgency_of,
    view_of,
)
from priocast.trace.schema import MessageRow

_NOTHING = -1
_EVERYTHING = 1 << 62


class _OrderedMessage(NamedTuple):
    """A message at its position."""

    position: int
    urgency: int
    key: Key

    def __str__(self) -> str:
        return f"{message_name(self.key)} (urgency {self.urgency})"


class _Arrivals:
    """What arrived at one member in one view.

    `delivered_before` says of each message that arrived how many messages the member had delivered there by
    then. Those in `before_state` arrived before the member had the state.
    """

    def __init__(self) -> None:
        self.delivered_before: dict[Key, int] = {}
        self.before_state: frozenset[Key] = frozenset()
        self._passed, self._next = [_NOTHING], [_EVERYTHING]
        self._state_position = _NOTHING

    def set_deliveries(
        self, delivered: Mapping[Key, object], position_of: dict[Key, int], state_position: int
    ) -> None:
        """Set what it delivered, in order; it may have passed everything before `state_position`."""
        passed = (position_of.get(key, _NOTHING) for key in delivered)
        coming = (position_of.get(key, _EVERYTHING) for key in reversed(list(delivered)))
        self._passed = list(accumulate(passed, max, initial=_NOTHING))
        self._next = list(accumulate(coming, min, initial=_EVERYTHING))[::-1]
        self._state_position = state_position

    def reached(self, key: Key) -> int:
        """The last position that the member had passed when a message arrived."""
        return self._passed[self.delivered_before.get(key, -1)]

    def may_have_reached(self, key: Key, selective: bool) -> int:
        """The same, with what it may have passed unseen; `selective` if some messages are not for all."""
        if key in self.before_state:
            return _EVERYTHING
        if key not in self.delivered_before:
            return self.reached(key)
        coming = self._next[self.delivered_before[key]] if selective else _NOTHING
        return max(self.reached(key), self._state_position - 1, coming - 1)


class PriorityAccounting(Checker):
    """Records how far each member was when each message arrived, and compares that with the order.

    `all_safe` says that every message is safe, `joiners_wait` that joiners take over a state.
    """

    GUARANTEE = PRIORITY_ACCOUNTING

    def __init__(
        self, report: ReportViolation, history: RunHistory, *, all_safe: bool, joiners_wait: bool
    ) -> None:
        super().__init__(report)
        self._history = history
        self._all_safe = all_safe
        self._joiners_wait = joiners_wait
        self._without_state: set[str] = set()
        self._arrivals: dict[ViewKey, dict[str, _Arrivals]] = {}
        self._begins_at: dict[ViewKey, int] = {}
        self._urgency: dict[Key, int] = {}
        self._selective = False

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        if self._joiners_wait and is_joiner(me, view):
            self._without_state.add(str(me))
        if reorders(ordering):
            self._arrivals.setdefault(view_key(view), {str(member): _Arrivals() for member in view.members})

    def on_view(self, event: ViewEvent) -> None:
        self._begins_at[event.view] = event.position

    def on_received(self, row: MessageRow) -> None:
        arrivals = self._arrivals.get(view_of(row))
        if arrivals is None or not row.bytes:
            return
        process, keys = process_of(row), keys_of(row)
        delivered = self._delivered_by(process, view_of(row))
        arrivals[process].delivered_before.update(dict.fromkeys(keys, delivered))
        self._urgency.update(dict.fromkeys(keys, urgency_of(row)))
        self._selective |= bool(row.to)

    def _delivered_by(self, process: str, view: ViewKey) -> int:
        incarnation = self._history.incarnations.get(process)
        if incarnation is None or incarnation.epochs[-1].view != view:
            return 0
        return len(incarnation.epochs[-1].delivered)

    def on_state(self, event: StateEvent) -> None:
        self._without_state.discard(event.process)
        self._had_no_state(event.process)

    def _had_no_state(self, process: str) -> None:
        """No row shows what a member has passed so far."""
        for arrivals in self._arrivals.values():
            if process in arrivals:
                arrivals[process].before_state = frozenset(arrivals[process].delivered_before)

    def finish(self, now: int) -> None:
        for process in self._without_state:
            self._had_no_state(process)
        for view, epochs in self._history.by_view().items():
            if view in self._arrivals:
                self._check_view(view, epochs, now)

    def _check_view(self, view: ViewKey, epochs: list[EpochHistory], now: int) -> None:
        """Report the first message of a view that is at a wrong position."""
        position_of, arrivals = self._positions(epochs), self._arrivals[view]
        for epoch in epochs:
            of_member = arrivals[epoch.process]
            state_position = max(
                self._history.incarnations[epoch.process].state_position,
                self._begins_at[view] + len(of_member.before_state),
            )
            of_member.set_deliveries(epoch.delivered, position_of, state_position)
        order = sorted(
            _OrderedMessage(position, self._urgency.get(key, key[2]), key)
            for key, position in position_of.items()
        )
        last_of: dict[int, _OrderedMessage] = {}
        for message in order:
            reached, process = max((each.reached(message.key), name) for name, each in arrivals.items())
            if reached >= message.position:
                self._too_early(view, message, order, reached, process, now)
                return
            may_reach = max(each.may_have_reached(message.key, self._selective) for each in arrivals.values())
            before = max((last for level, last in last_of.items() if level < message.urgency), default=None)
            if before is not None and before.position > may_reach:
                self._too_late(view, message, before, list(arrivals), now)
                return
            last_of[message.urgency] = message

    def _positions(self, epochs: list[EpochHistory]) -> dict[Key, int]:
        """The positions that bind: see Total order. If nobody continued, all do."""
        survived = any(not epoch.dropped_out for epoch in epochs)
        return {
            key: delivered.position
            for epoch in epochs
            for key, delivered in epoch.delivered.items()
            if not epoch.dropped_out or not survived or self._all_safe or delivered.safe
        }

    def _too_early(
        self,
        view: ViewKey,
        message: _OrderedMessage,
        order: list[_OrderedMessage],
        reached: int,
        process: str,
        now: int,
    ) -> None:
        """A member had passed its position: name the first less urgent message there, or the last one."""
        passed = [other for other in order if message.position < other.position <= reached]
        lower = [other for other in passed if other.urgency < message.urgency]
        others = lower[:1] or passed[-1:]
        named = f", before {others[0]} at {others[0].position}" if others else ""
        self.violated(
            f"{message} is at position {message.position}{named}, but when it arrived at {process} "
            f"that had reached {reached}",
            now,
            view=view,
            position=message.position,
            messages=[message.key, *(other.key for other in others)],
            members=[process],
        )

    def _too_late(
        self, view: ViewKey, message: _OrderedMessage, before: _OrderedMessage, members: list[str], now: int
    ) -> None:
        self.violated(
            f"{message} is at position {message.position}, behind {before} at {before.position}, but none of "
            f"{', '.join(members)} had got there when it arrived",
            now,
            view=view,
            position=message.position,
            messages=[message.key, before.key],
            members=members,
        )
