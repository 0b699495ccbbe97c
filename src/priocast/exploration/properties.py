"""The properties that must hold between members: in every state, in terminal states, at the end of a view.

What each member has consumed is part of its state, so the checks need only the members' states. Total order
is checked whenever a member consumes: of any two members, one has consumed a prefix of what the other has.

Priority accounting is an equivalence. Let l be less urgent than h. A member consumes l before h exactly if l
had been consumed, or had a final position, at some member when that member received h. It is checked whenever
a member consumes h, again in terminal states, and at the end of a view.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from priocast.core.guarantees import LIVENESS, PRIORITY_ACCOUNTING, TOTAL_ORDER
from priocast.exploration.member_states import MemberState
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.violation import PropertyViolation


class PropertyChecks:
    """The checks of one scenario."""

    def __init__(self, scenario: ExplorationScenario) -> None:
        self._scenario = scenario
        self._all = range(len(scenario.messages))
        self._checks_priority = scenario.checks_priority

    def after_consuming(self, rank: int, members: Sequence[MemberState]) -> None:
        """A member has just consumed a message."""
        consumed = members[rank].consumed
        for other, member in enumerate(members):
            if other != rank:
                self._check_order(rank, consumed, other, member.consumed)
        if self._checks_priority:
            self._check_priority(consumed, consumed[-1], self._all, members)

    def in_terminal_state(self, members: Sequence[MemberState]) -> None:
        """No transition is left."""
        for rank, member in enumerate(members):
            missing = set(self._all) - set(member.consumed)
            if missing:
                raise PropertyViolation(
                    LIVENESS, f"{name_of(rank)} never consumes {self._scenario.names(sorted(missing))}"
                )
            if not member.idle:
                raise PropertyViolation(LIVENESS, f"{name_of(rank)} is not idle")
        for (rank, member), (other, next_one) in pairwise(enumerate(members)):
            self._check_order(rank, member.consumed, other, next_one.consumed)
        if self._checks_priority:
            for message in self._all:
                self._check_priority(members[0].consumed, message, self._all, members)

    def at_view_end(self, order: Sequence[int], members: Sequence[MemberState]) -> None:
        """The view ends with this order for its survivors."""
        if self._checks_priority:
            for message in order:
                self._check_priority(order, message, order, members)

    def _check_order(self, rank: int, one: Sequence[int], other_rank: int, other: Sequence[int]) -> None:
        common = min(len(one), len(other))
        if one[:common] != other[:common]:
            raise PropertyViolation(
                TOTAL_ORDER,
                f"{name_of(rank)} consumes {self._scenario.names(one)}, "
                f"and {name_of(other_rank)} consumes {self._scenario.names(other)}",
            )

    def _check_priority(
        self, order: Sequence[int], urgent: int, among: Iterable[int], members: Sequence[MemberState]
    ) -> None:
        """Compare what precedes an urgent message with what had been consumed when it was received."""
        messages, before = self._scenario.messages, set(order[: order.index(urgent)])
        for lower in among:
            if messages[lower].priority >= messages[urgent].priority:
                continue
            consumed_at = [
                name_of(rank)
                for rank, member in enumerate(members)
                if lower in member.ordered_before.get(urgent, ())
            ]
            if (lower in before) == bool(consumed_at):
                continue
            low, high = messages[lower].name, messages[urgent].name
            raise PropertyViolation(
                PRIORITY_ACCOUNTING,
                f"{high} precedes {low}, which {' and '.join(consumed_at)} had consumed on receiving {high}"
                if consumed_at
                else f"{low} precedes {high}, and no member had consumed it on receiving {high}",
            )
