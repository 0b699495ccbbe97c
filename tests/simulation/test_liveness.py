"""Which broadcasts may be lost: the exceptions of Liveness, as `docs/guarantees.md` states them.

In each case a process a delivers, or does not, one of its broadcasts in view 1. Process b continues to view 2
without it.
"""

from typing import NamedTuple

import pytest

from priocast.core.guarantees import LIVENESS
from priocast.core.identity import ProcessId
from priocast.core.message import Message, Scope
from priocast.core.view_reason import Eviction, ViewReason
from priocast.core.violation import Violation
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.liveness import Liveness
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.rows import DepartureEvent, ViewEvent, ViewKey
from priocast.simulation.workload import PlannedBroadcast, payload_of

A, B = ProcessId("a"), ProcessId("b")
VIEWS: list[ViewKey] = [(1, "a#1"), (2, "b#1")]


class Case(NamedTuple):
    name: str
    lost: bool
    delivered_by: tuple[ProcessId, ...] = ()
    owner: str = "a"
    safe: bool = False
    all_safe: bool = False
    primary: bool = True
    evicted_as_slow: bool = False
    in_state: bool = False


CASES = [
    Case("delivered by nobody", lost=True),
    Case("delivered by one who continued", lost=False, delivered_by=(B,)),
    Case("contained in a state", lost=False, in_state=True),
    Case("delivered by the sender alone", lost=False, delivered_by=(A,)),
    Case("safe, delivered by the sender alone", lost=True, delivered_by=(A,), safe=True),
    Case("in a safe group, delivered by the sender alone", lost=True, delivered_by=(A,), all_safe=True),
    Case("of a client, delivered by one member", lost=False, delivered_by=(A,), owner="client"),
    Case("of a client, delivered by nobody", lost=True, owner="client"),
    Case("of another, delivered by one who dropped out", lost=True, delivered_by=(A,), owner="b"),
    Case("of a slow member in a primary group", lost=True, evicted_as_slow=True),
    Case("of a slow member on its side", lost=False, primary=False, evicted_as_slow=True),
    Case(
        "safe, of a slow member on its side",
        lost=False,
        delivered_by=(A,),
        safe=True,
        primary=False,
        evicted_as_slow=True,
    ),
    Case("of a fast member on its side", lost=True, primary=False),
]


def installed(process: ProcessId, view: ViewKey) -> ViewEvent:
    return ViewEvent(str(process), view, ("a#1", "b#1"), 0, "", "", ViewReason(), 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loss_is_a_violation_unless_an_exception_applies(case: Case) -> None:
    violations: list[Violation] = []
    planned = PlannedBroadcast(f"{case.owner}.0", 0, 0, payload_of(f"{case.owner}.0", 0, 8), Scope(case.safe))
    history = RunHistory()
    checker = Liveness(
        violations.append,
        history,
        primary=case.primary,
        all_safe=case.all_safe,
        pending=lambda: None,
        expected=lambda: [planned],
        states=lambda: {"b#1": ApplicationState(b"", {planned.name} if case.in_state else set())},
    )
    for process, view in ((A, VIEWS[0]), (B, VIEWS[0]), (B, VIEWS[1])):
        history.on_view(installed(process, view))
    for process in case.delivered_by:
        checker.on_message(process, Message(A, 0, 0, 0, planned.payload, planned.scope), 1)
    if case.evicted_as_slow:
        checker.on_departure(DepartureEvent("a#1", False, ViewReason(evicted=(Eviction("a", "slow"),))))
    checker.finish(1)
    assert [violation.guarantee for violation in violations] == ([LIVENESS] if case.lost else [])


def test_run_that_is_not_quiescent_is_a_violation() -> None:
    violations: list[Violation] = []
    checker = Liveness(
        violations.append,
        RunHistory(),
        primary=True,
        all_safe=False,
        pending=lambda: "a#1 waits",
        expected=list,
        states=dict,
    )
    checker.finish(1)
    assert [violation.summary for violation in violations] == ["a#1 waits"]
