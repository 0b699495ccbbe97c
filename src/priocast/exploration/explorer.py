"""The search through all states that a scenario can reach, breadth first.

Breadth first, so that the first violation has the shortest story; what is to be remembered is the same as for
a search in depth, which has to know the states it has met, too.
"""

from array import array
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from priocast.exploration.counterexample import StepDescriber
from priocast.exploration.member_states import CONSUME, Action
from priocast.exploration.properties import PropertyChecks
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.state_graph import State, StateGraph
from priocast.exploration.view_ends import ViewEnds
from priocast.exploration.violation import PropertyViolation

_REPORT_EVERY = 2_000
_MOVES_BITS = 8
_MOVES_MAX = (1 << _MOVES_BITS) - 1


class ExplorationProgress(NamedTuple):
    """How far a search is: states met, states looked at, and moves made from the first state to these."""

    states: int
    explored: int
    depth: int


class Counterexample(NamedTuple):
    """A violation, and the shortest way there, step by step."""

    violation: PropertyViolation
    story: tuple[str, ...]


class Exploration(NamedTuple):
    """What a search has seen.

    `steps` are those that a protocol's code made: the same step of a member in many states of the group is
    made once. `endings` are the ends of the view that were looked at.
    """

    scenario: ExplorationScenario
    states: int
    transitions: int
    rests: int
    depth: int
    member_states: int
    steps: int
    endings: int
    found: Counterexample | None


def explore(
    scenario: ExplorationScenario, tell: Callable[[ExplorationProgress], None] = lambda _: None
) -> Exploration:
    """Look at every state that can be reached, or at all until a violation is found."""
    return _Search(scenario).run(tell)


class _Search:
    def __init__(self, scenario: ExplorationScenario) -> None:
        self._scenario = scenario
        self.space = StateGraph(scenario)
        self._checks = PropertyChecks(scenario)
        self._endings = ViewEnds(scenario, self.space) if scenario.view_ends else None
        self._numbers: dict[State, int] = {self.space.first: 0}
        self._narrator = StepDescriber(scenario, self.space.locals)
        self._came_from = array("q", [-1])
        self._transitions = 0
        self._rests = 0
        self._depth = 0

    def run(self, tell: Callable[[ExplorationProgress], None]) -> Exploration:
        frontier = [self.space.first]
        explored = 0
        try:
            while frontier:
                following: list[State] = []
                for state in frontier:
                    if explored % _REPORT_EVERY == 0:
                        tell(ExplorationProgress(len(self._numbers), explored, self._depth))
                    explored += 1
                    following += self._look_at(state)
                frontier = following
                self._depth += bool(frontier)
        except _Stop as stop:
            return self._report(stop.found)
        return self._report(None)

    def _look_at(self, state: State) -> list[State]:
        """Check a state and everything that may follow; return the states that are new."""
        number = self._numbers[state]
        if self._endings is not None:
            self._look_at_endings(state)
        new, rests = [], True
        for index, (rank, move, step, after) in enumerate(self.space.moves(state)):
            rests = False
            self._transitions += 1
            if step.violation is not None:
                self._stop(step.violation, state, (rank, state[rank], move))
            if after in self._numbers:
                continue
            self._numbers[after] = len(self._numbers)
            self._came_from.append(number << _MOVES_BITS | index)
            new.append(after)
            if move.kind == CONSUME:
                try:
                    self._checks.after_consuming(rank, self.space.members(after))
                except PropertyViolation as violation:
                    self._stop(violation, state, (rank, state[rank], move))
        if rests:
            self._rests += 1
            try:
                self._checks.at_rest(self.space.members(state))
            except PropertyViolation as violation:
                self._stop(violation, state)
        return new

    def _look_at_endings(self, state: State) -> None:
        assert self._endings is not None
        found = self._endings.check(state)
        if found is not None:
            violation, survivors = found
            end = f"the view ends for {', '.join(map(name_of, survivors))}"
            raise _Stop(Counterexample(violation, (*self._story(state), end)))

    def _stop(self, violation: PropertyViolation, state: State, *last: tuple[int, int, Action]) -> None:
        raise _Stop(
            Counterexample(violation, (*self._story(state), *(self._narrator.tell(*each) for each in last)))
        )

    def _story(self, state: State) -> tuple[str, ...]:
        """How the search came to a state."""
        states = list(self._numbers)
        backwards: list[str] = []
        came_from = self._came_from[self._numbers[state]]
        while came_from >= 0:
            before, index = states[came_from >> _MOVES_BITS], came_from & _MOVES_MAX
            rank, move, _, _ = next(islice(self.space.moves(before), index, None))
            backwards.append(self._narrator.tell(rank, before[rank], move))
            came_from = self._came_from[came_from >> _MOVES_BITS]
        return tuple(reversed(backwards))

    def _report(self, found: Counterexample | None) -> Exploration:
        return Exploration(
            self._scenario,
            len(self._numbers),
            self._transitions,
            self._rests,
            self._depth,
            len(self.space.locals),
            self.space.locals.steps_made,
            self._endings.count if self._endings else 0,
            found,
        )


class _Stop(Exception):
    def __init__(self, found: Counterexample) -> None:
        super().__init__(str(found.violation))
        self.found = found
