"""Equal states: in a group with a state, all who are there in the end have the same one.

It is what agreement and state transfer are for, seen from the application.
"""

from collections.abc import Callable, Mapping

from priocast.core.guarantees import AGREEMENT
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.checker import Checker, Report


class EqualStates(Checker):
    """Compares the states of the applications when the run is over, if the promise applies to it."""

    PROPERTY = AGREEMENT

    def __init__(
        self,
        report: Report,
        states: Callable[[], Mapping[str, ApplicationState]],
        applies: Callable[[], bool],
    ) -> None:
        super().__init__(report)
        self._states = states
        self._applies = applies

    def finish(self, now: int) -> None:
        if not self._applies():
            return
        states = self._states()
        first = next(iter(states))
        for process, state in states.items():
            if state != states[first]:
                differing = sorted(state.wishes ^ states[first].wishes) or ["another order"]
                text = f"{process} and {first} have different states: {', '.join(differing[:8])}"
                self.violated(text, now, members=[process, first])
                return
