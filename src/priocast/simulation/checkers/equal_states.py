"""Equal states: in a group with a state, all members have the same state when the run is over.

It is the purpose of agreement and state transfer, seen from the application.
"""

from collections.abc import Callable, Mapping

from priocast.core.guarantees import AGREEMENT
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.checker import Checker, ReportViolation


class EqualStates(Checker):
    """Compares the states of the applications when the run is over, if `applies` says so."""

    GUARANTEE = AGREEMENT

    def __init__(
        self,
        report: ReportViolation,
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
                differing = sorted(state.applied ^ states[first].applied) or ["another order"]
                summary = f"{process} and {first} have different states: {', '.join(differing[:8])}"
                self.violated(summary, now, members=[process, first])
                return
