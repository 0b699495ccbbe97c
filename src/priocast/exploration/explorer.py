"""Breadth-first search through all states that a scenario can reach.

Breadth first finds the shortest counterexample. It needs no more memory than depth first, which has to
remember the visited states as well.
"""

from array import array
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from priocast.exploration.counterexample import Counterexample, StepDescriber
from priocast.exploration.member_states import CONSUME, Action
from priocast.exploration.properties import PropertyChecks
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.state_graph import State, StateGraph
from priocast.exploration.view_ends import ViewEndChecks
from priocast.exploration.violation import PropertyViolation

_REPORT_EVERY = 2_000
_TRANSITION_BITS = 8
_TRANSITION_MASK = (1 << _TRANSITION_BITS) - 1


class ExplorationProgress(NamedTuple):
    """States found, states explored, and transitions from the initial state to those explored now."""

    states: int
    explored: int
    depth: int


class Exploration(NamedTuple):
    """The result of a search.

    `protocol_steps` counts calls of the protocol's code: the same step of a member in many states of the
    group runs once. `view_ends` counts the ends of the view that were checked.
    """

    scenario: ExplorationScenario
    states: int
    transitions: int
    terminal_states: int
    depth: int
    member_states: int
    protocol_steps: int
    view_ends: int
    counterexample: Counterexample | None


OnProgress = Callable[[ExplorationProgress], None]


def explore(scenario: ExplorationScenario, on_progress: OnProgress = lambda _: None) -> Exploration:
    """Check every reachable state, up to the first violation."""
    return _Search(scenario).run(on_progress)


class _Search:
    def __init__(self, scenario: ExplorationScenario) -> None:
        self._scenario = scenario
        self._graph = StateGraph(scenario)
        self._checks = PropertyChecks(scenario)
        self._view_ends = ViewEndChecks(scenario, self._graph) if scenario.view_ends else None
        self._describer = StepDescriber(scenario, self._graph.member_states)
        self._numbers: dict[State, int] = {self._graph.initial: 0}
        #: By state: the number of the state before it, and which of that state's transitions leads here.
        self._reached_by = array("q", [-1])
        self._transitions = 0
        self._terminal_states = 0
        self._depth = 0

    def run(self, on_progress: OnProgress) -> Exploration:
        frontier = [self._graph.initial]
        explored = 0
        try:
            while frontier:
                next_frontier: list[State] = []
                for state in frontier:
                    if explored % _REPORT_EVERY == 0:
                        on_progress(ExplorationProgress(len(self._numbers), explored, self._depth))
                    explored += 1
                    next_frontier += self._expand(state)
                frontier = next_frontier
                self._depth += bool(frontier)
        except _Found as found:
            return self._result(found.counterexample)
        return self._result(None)

    def _expand(self, state: State) -> list[State]:
        """Check a state and its transitions; return the states that are new."""
        number = self._numbers[state]
        if self._view_ends is not None:
            self._check_view_ends(state)
        new, is_terminal = [], True
        for index, (rank, action, of_member, following) in enumerate(self._graph.transitions(state)):
            is_terminal = False
            self._transitions += 1
            if of_member.violation is not None:
                self._stop(of_member.violation, state, (rank, state[rank], action))
            if following in self._numbers:
                continue
            self._numbers[following] = len(self._numbers)
            self._reached_by.append(number << _TRANSITION_BITS | index)
            new.append(following)
            if action.kind == CONSUME:
                try:
                    self._checks.after_consuming(rank, self._graph.members(following))
                except PropertyViolation as violation:
                    self._stop(violation, state, (rank, state[rank], action))
        if is_terminal:
            self._terminal_states += 1
            try:
                self._checks.in_terminal_state(self._graph.members(state))
            except PropertyViolation as violation:
                self._stop(violation, state)
        return new

    def _check_view_ends(self, state: State) -> None:
        assert self._view_ends is not None
        found = self._view_ends.check(state)
        if found is not None:
            violation, survivors = found
            end = f"the view ends for {', '.join(map(name_of, survivors))}"
            raise _Found(Counterexample(violation, (*self._steps_to(state), end)))

    def _stop(self, violation: PropertyViolation, state: State, *last: tuple[int, int, Action]) -> None:
        steps = (*self._steps_to(state), *(self._describer.describe(*each) for each in last))
        raise _Found(Counterexample(violation, steps))

    def _steps_to(self, state: State) -> tuple[str, ...]:
        """The steps by which the search reached a state."""
        states = list(self._numbers)
        backwards: list[str] = []
        reached_by = self._reached_by[self._numbers[state]]
        while reached_by >= 0:
            before, index = states[reached_by >> _TRANSITION_BITS], reached_by & _TRANSITION_MASK
            rank, action, _, _ = next(islice(self._graph.transitions(before), index, None))
            backwards.append(self._describer.describe(rank, before[rank], action))
            reached_by = self._reached_by[reached_by >> _TRANSITION_BITS]
        return tuple(reversed(backwards))

    def _result(self, counterexample: Counterexample | None) -> Exploration:
        member_states = self._graph.member_states
        return Exploration(
            self._scenario,
            len(self._numbers),
            self._transitions,
            self._terminal_states,
            self._depth,
            len(member_states),
            member_states.steps_run,
            self._view_ends.count if self._view_ends else 0,
            counterexample,
        )


class _Found(Exception):
    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(str(counterexample.violation))
        self.counterexample = counterexample
