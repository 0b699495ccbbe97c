"""What the checkers judge by: the window, the starvation policy, the order of each view, and payloads."""

import msgspec
import pytest

from priocast.core.guarantees import BOUNDED_WINDOW, INTEGRITY, PRIORITY
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation
from priocast.core.violation import Violation
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.paced import PacedProtocol
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.faults import FaultOptions, PlannedOrderChange
from priocast.simulation.scenario import Scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.workload import payload_of
from simulation.replay import violations_in
from simulation.scenarios import HIGH, LOW, MILLISECOND, group, run_without_violation, view_rows

WINDOW = 4
STEP = 5 * MILLISECOND
#: A sender without credit keeps its messages in its own queue.
TIGHT = OrderingOptions(window=WINDOW, submit_max=1)
NO_WINDOW = OrderingOptions()
ORDERS = sorted(PROTOCOLS)
WINDOWED = [order for order in ORDERS if PROTOCOLS[order].PRIORITIES_ACT != "consuming"]


def crowded(order: str, ordering: OrderingOptions = TIGHT) -> Scenario:
    return group((60, 60, 60), rate_per_second=600, consume_us=1_000, order=order, ordering=ordering, seed=5)


@pytest.mark.parametrize("order", WINDOWED)
def test_smaller_window_than_the_run_had_is_violated(order: str) -> None:
    window = 12 if issubclass(PROTOCOLS[order], PacedProtocol) else WINDOW
    ordering = OrderingOptions(window=window)
    rows = run_scenario(crowded(order, ordering)).rows
    assert violations_in(crowded(order), rows, ordering) == []
    violation, *_ = violations_in(crowded(order), rows, OrderingOptions(window=window // 2))
    assert violation.guarantee == BOUNDED_WINDOW and "not consumed by" in violation.summary
    assert violation.members


def test_sender_of_a_paced_protocol_has_a_share_of_the_window() -> None:
    rows = run_scenario(crowded("causal-history", OrderingOptions(window=12))).rows
    violation, *_ = violations_in(crowded("causal-history"), rows, OrderingOptions(window=11))
    assert "4 messages are ordered" in violation.summary and violation.summary.endswith("the window is 3")


def test_window_violation_names_the_slowest_member() -> None:
    rows = run_scenario(crowded("sequencer-ub")).rows
    violation, *_ = violations_in(crowded("sequencer-ub"), rows, OrderingOptions(window=1))
    assert violation.members[0] == "a#1" and f"not consumed by {violation.members[1]}" in violation.summary


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("starvation", [Ageing(STEP), PeriodicRelease(STEP)], ids=str)
def test_queues_are_judged_by_the_starvation_policy(order: str, starvation: Starvation) -> None:
    """A run under one policy violates another one."""
    rows = run_without_violation(crowded(order)).rows
    violation, *_ = violations_in(crowded(order), rows, OrderingOptions(starvation=starvation))
    assert violation.guarantee == PRIORITY and len(violation.messages) == 2


def test_protocols_whose_orderers_are_judged() -> None:
    assert [order for order in ORDERS if PROTOCOLS[order].PRIORITIES_ACT == "sequencing"] == [
        "moving-bb",
        "moving-ub",
        "moving-uub",
        "sequencer-bb",
        "sequencer-ub",
        "sequencer-uub",
    ]


def test_layer_sends_first_in_first_out() -> None:
    """The same rows are correct for a layer and wrong for the protocol below it."""
    rows = run_without_violation(crowded("time-parts/sequencer-ub")).rows
    assert violations_in(crowded("time-parts/sequencer-ub"), rows) == []
    violation, *_ = violations_in(crowded("sequencer-ub"), rows, NO_WINDOW)
    assert violation.guarantee == PRIORITY


def test_each_view_is_judged_by_its_own_order() -> None:
    """The order changes from prioritised to plain and back, with another protocol and policy each time."""
    changes = (
        PlannedOrderChange(
            member="a", at_us=120_000, prioritised=False, starvation="none", order="token-ring"
        ),
        PlannedOrderChange(
            member="b", at_us=180_000, prioritised=True, starvation="ageing:1ms", order="sequencer-bb"
        ),
    )
    scenario = msgspec.structs.replace(
        crowded("sequencer-ub"), faults=FaultOptions(order_changes=changes, healed_at_us=200_000)
    )
    run = run_without_violation(scenario)
    orders = [(row.order, row.starvation) for row in view_rows(run, "c#1")]
    assert orders == [("sequencer-ub", "none"), ("token-ring", "fifo"), ("sequencer-bb", "ageing:1ms")]
    assert run.counters.occurred["order changed"] and run.counters.occurred["overtaking"]


MESSAGE = Message(ProcessId("b"), HIGH, 3, HIGH, payload_of("b.7", HIGH, 20))


@pytest.mark.parametrize(
    "wrong",
    [
        {"payload": payload_of("c.7", HIGH, 20)},
        {"payload": payload_of("b.8", HIGH, 20)},
        {"priority": LOW},
    ],
    ids=["payload of another sender", "payload of another message", "another priority"],
)
def test_changed_message_is_caught(wrong: dict[str, object]) -> None:
    violations: list[Violation] = []
    checker = Integrity(violations.append)
    checker.on_message(ProcessId("c"), MESSAGE, 7, ApplicationState(), 11)
    assert violations == []
    checker.on_message(ProcessId("c"), msgspec.structs.replace(MESSAGE, **wrong), 7, ApplicationState(), 11)
    (violation,) = violations
    assert (violation.guarantee, violation.position, violation.details) == (INTEGRITY, 7, {"time_ns": 11})


def test_broadcast_that_the_state_contains_is_not_applied_again() -> None:
    violations: list[Violation] = []
    checker = Integrity(violations.append)
    checker.on_message(ProcessId("c"), MESSAGE, 7, ApplicationState(b"", {"b.6"}), 11)
    assert violations == []
    checker.on_message(ProcessId("c"), MESSAGE, 7, ApplicationState(b"", {"b.7"}), 11)
    assert "applies b.7 a second time" in violations[0].summary
