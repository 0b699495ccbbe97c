"""Priority accounting: which position a message has among less urgent ones.

The rows of a correct run, with two messages exchanged, are shown to new checkers. That a mutant of the
protocol is caught in generated runs is in `test_protocol_mutants.py`.
"""

from itertools import pairwise
from typing import Any

import pytest

from pipeline.damages import exchange_positions
from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.protocols import PROTOCOLS
from priocast.protocols.reorder.reordering import ReorderingProtocol
from priocast.simulation.faults import Crash, FaultOptions, PlannedOrderChange
from priocast.simulation.scenario import NetworkOptions, Scenario
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.recorded_run import process_of
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, STATE
from simulation.protocol_mutants import OneLevel, OneLevelWithLocks
from simulation.replay import violations_in
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, delivered_by, group, run_without_violation, view_rows

ORDERS = ["reorder", "reorder-locks"]


MUTANTS = [OneLevel, OneLevelWithLocks]


def crowded(order: str, **options: Any) -> Scenario:
    """Members that consume more slowly than messages arrive, one of them much more slowly."""
    return group(
        (60, 60, 60),
        rate_per_second=600,
        order=order,
        load={"consume_us": (1_000, 1_000, 5_000)},
        seed=5,
        **options,
    )


def alone(run: SimulatedRun, view: int = 1) -> list[tuple[Row, Row]]:
    """Consecutive deliveries of member a in a view, where both messages have a row of their own."""
    here = [row for row in run.messages if (row.event, row.member, row.view) == (DELIVERED, "a", view)]
    return [(one, other) for one, other in pairwise(here) if one.count == other.count == 1]


def overtaking(run: SimulatedRun, view: int = 1) -> tuple[Row, Row]:
    """A message, and the less urgent one that it overtook last."""
    return next(
        (one, other)
        for one, other in alone(run, view)
        if (one.level, other.level) == (HIGH, LOW)
        and any(when(run, RECEIVED, name, other) < when(run, RECEIVED, name, one) for name in "abc")
    )


def let_pass(run: SimulatedRun) -> tuple[Row, Row]:
    """A message, and the less urgent one before it, which somebody consumed while it was in flight."""
    return next(
        (other, one)
        for one, other in alone(run)
        if (one.level, other.level) == (LOW, HIGH)
        and when(run, BROADCAST, other.sender, other) < when(run, DELIVERED, "a", one)
    )


def when(run: SimulatedRun, event: str, member: str, message: Row) -> int:
    """When something happened to a message at a member, as an index of the rows."""
    return next(
        index
        for index, row in enumerate(run.messages)
        if (row.event, row.member, row.sender, row.level) == (event, member, message.sender, message.level)
        and row.first <= message.first < row.first + row.count
    )


def id_of(row: Row) -> str:
    return f"{row.sender}#{row.sender_incarnation}/{row.level}/{row.first}"


@pytest.mark.parametrize("order", ORDERS)
def test_message_behind_one_that_nobody_had_consumed_is_reported(order: str) -> None:
    scenario = crowded(order)
    run = run_without_violation(scenario)
    assert violations_in(scenario, run.rows) == []
    urgent, other = overtaking(run)
    violation, *_ = violations_in(scenario, exchange_positions(run.rows, urgent, other))
    assert violation.guarantee == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent), id_of(other))
    assert violation.members == ("a#1", "b#1", "c#1")
    assert f"behind {id_of(other)} (urgency {LOW}) at {urgent.position}" in violation.summary


@pytest.mark.parametrize("order", ORDERS)
def test_message_before_one_that_somebody_had_consumed_is_reported(order: str) -> None:
    scenario = group(
        (60, 60, 60),
        rate_per_second=200,
        consume_us=1_000,
        order=order,
        network=NetworkOptions(latency_us=3_000),
    )
    run = run_without_violation(scenario)
    urgent, other = let_pass(run)
    violation, *_ = violations_in(scenario, exchange_positions(run.rows, other, urgent))
    assert violation.guarantee == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent),) and len(violation.members) == 1
    assert f"arrived at {violation.members[0]} that had reached {other.position}" in violation.summary


@pytest.mark.parametrize("order", ORDERS)
def test_view_after_a_failure_is_judged_by_its_own_members(order: str) -> None:
    faults = FaultOptions(crashes=(Crash(member="c", at_us=120_000),), healed_at_us=300_000)
    scenario = group((80, 80, 80), rate_per_second=250, consume_us=3_000, order=order, faults=faults)
    run = run_without_violation(scenario)
    urgent, other = overtaking(run, view=2)
    mutant = exchange_positions(run.rows, urgent, other)
    violation, *_ = violations_in(scenario, mutant, crashed=("c#1",))
    assert violation.guarantee == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent), id_of(other)) and violation.members == ("a#1", "b#1")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_view_after_an_order_change_is_judged_by_its_protocol(
    mutant: type[ReorderingProtocol[Any, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first view does not re-order, the second one is plain, the third one gives the guarantee."""
    changes = (
        PlannedOrderChange(member="a", at_us=80_000, prioritised=False, starvation="none", order=mutant.NAME),
        PlannedOrderChange(member="b", at_us=90_000, prioritised=True, starvation="none", order=mutant.NAME),
    )
    faults = FaultOptions(order_changes=changes, healed_at_us=100_000)
    scenario = group((80, 80, 80), rate_per_second=250, consume_us=3_000, faults=faults)
    views = view_rows(run_without_violation(scenario), "a#1")
    monkeypatch.setitem(PROTOCOLS, mutant.NAME, mutant)
    violation, *_ = run_scenario(scenario).violations
    assert violation.guarantee == PRIORITY_ACCOUNTING
    assert len(views) == 3 and (violation.position or 0) >= views[2].position


def test_joiner_that_crashes_before_it_has_the_state_may_have_consumed_anything() -> None:
    """It kept what was ordered as if it had consumed it, and no row says so."""
    crashes = (
        Crash(member="c", at_us=200_000, back_after_us=100_000),
        Crash(member="c", at_us=420_000, back_after_us=100_000),
    )
    run = run_without_violation(
        group(
            (60, 60, 60, 60),
            rate_per_second=120,
            consume_us=3_000,
            order="reorder",
            network=NetworkOptions(latency_us=200, bandwidth_bytes_per_second=2_000_000),
            faults=FaultOptions(crashes=crashes, healed_at_us=800_000),
            membership={"state": True},
            load={"state_bytes": 1_000_000},
        )
    )
    assert [process_of(row) for row in run.rows if row.event == STATE] == ["c#3"]
    assert view_rows(run, "c#2") and not delivered_by(run, "c#2")
