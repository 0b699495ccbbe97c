"""The checkers of re-ordered queues: where messages go among less urgent ones, and how many may overtake.

A good run's rows, with two messages exchanged, are fed to fresh checkers; and mutants of the protocols run.
"""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

import priocast.protocols.reorder.base
from pipeline.damages import exchange_positions
from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.protocol import OrderingOptions
from priocast.protocols import PROTOCOLS
from priocast.protocols.reorder.base import Data, Reordering
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.overtaking import Overtaking
from priocast.simulation.draw import Choice
from priocast.simulation.faults import Crash, FaultOptions, OrderChange
from priocast.simulation.scenario import NetworkOptions, Scenario
from priocast.simulation.simulator import Run, run_scenario
from priocast.simulation.swarm import run_seed
from priocast.trace.recorded_run import process_of
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, STATE
from simulation.replay import findings
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, delivered_by, group, run_without_violation, told

ORDERS = ["reorder", "reorder-locks"]
FEW_SEEDS = range(5)
BOUND = 3


def of_one_level(data: Data) -> Data:
    return msgspec.structs.replace(data, batches=tuple(batch.in_line() for batch in data.batches))


class OneLevel(Reorder):
    """All messages are in one queue, so nothing is ever re-ordered."""

    def _join(self, rank: int, data: Data) -> None:
        super()._join(rank, of_one_level(data))


class OneLevelWithLocks(ReorderLocks):
    """The same, in the other form."""

    def _join(self, rank: int, data: Data) -> None:
        super()._join(rank, of_one_level(data))


class NoBound(Overtaking):
    """Lets everything out."""

    def room(self, level: int) -> int:
        return 1 << 16


MUTANTS = [OneLevel, OneLevelWithLocks]


def crowded(order: str, **options: Any) -> Scenario:
    """Members that are slower than what they are sent, one of them much slower."""
    return group(
        (60, 60, 60),
        rate_per_second=600,
        order=order,
        load={"consume_us": (1_000, 1_000, 5_000)},
        seed=5,
        **options,
    )


def alone(run: Run, view: int = 1) -> list[tuple[Row, Row]]:
    """What member a delivered one after the other in a view, if both messages have a row of their own."""
    here = [row for row in run.messages if (row.event, row.member, row.view) == (DELIVERED, "a", view)]
    return [(one, other) for one, other in pairwise(here) if one.count == other.count == 1]


def overtaking(run: Run, view: int = 1) -> tuple[Row, Row]:
    """A message, and the less urgent one that it overtook last."""
    return next(
        (one, other)
        for one, other in alone(run, view)
        if (one.level, other.level) == (HIGH, LOW)
        and any(when(run, RECEIVED, name, other) < when(run, RECEIVED, name, one) for name in "abc")
    )


def let_pass(run: Run) -> tuple[Row, Row]:
    """A message, and the less urgent one before it, which somebody consumed when it was under way."""
    return next(
        (other, one)
        for one, other in alone(run)
        if (one.level, other.level) == (LOW, HIGH)
        and when(run, BROADCAST, other.sender, other) < when(run, DELIVERED, "a", one)
    )


def when(run: Run, event: str, member: str, message: Row) -> int:
    """When something happened to a message at a member, as a place among all rows."""
    return next(
        index
        for index, row in enumerate(run.messages)
        if (row.event, row.member, row.sender, row.level) == (event, member, message.sender, message.level)
        and row.first <= message.first < row.first + row.count
    )


def id_of(row: Row) -> str:
    return f"{row.sender}#{row.sender_incarnation}/{row.level}/{row.first}"


@pytest.mark.parametrize("order", ORDERS)
def test_a_message_behind_one_that_nobody_had_consumed_is_named(order: str) -> None:
    scenario = crowded(order)
    run = run_without_violation(scenario)
    assert findings(scenario, run.rows) == []
    urgent, other = overtaking(run)
    violation, *_ = findings(scenario, exchange_positions(run.rows, urgent, other))
    assert violation.property == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent), id_of(other))
    assert violation.members == ("a#1", "b#1", "c#1")
    assert f"behind {id_of(other)} (urgency {LOW}) at {urgent.position}" in violation.text


@pytest.mark.parametrize("order", ORDERS)
def test_a_message_before_one_that_somebody_had_consumed_is_named(order: str) -> None:
    scenario = group(
        (60, 60, 60),
        rate_per_second=200,
        consume_us=1_000,
        order=order,
        network=NetworkOptions(latency_us=3_000),
    )
    run = run_without_violation(scenario)
    urgent, other = let_pass(run)
    violation, *_ = findings(scenario, exchange_positions(run.rows, other, urgent))
    assert violation.property == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent),) and len(violation.members) == 1
    assert f"came to {violation.members[0]} that had reached {other.position}" in violation.text


@pytest.mark.parametrize("order", ORDERS)
def test_the_view_after_a_failure_is_judged_by_its_members(order: str) -> None:
    faults = FaultOptions(crashes=(Crash(member="c", at_us=120_000),), healed_at_us=300_000)
    scenario = group((80, 80, 80), rate_per_second=250, consume_us=3_000, order=order, faults=faults)
    run = run_without_violation(scenario)
    urgent, other = overtaking(run, view=2)
    mutant = exchange_positions(run.rows, urgent, other)
    violation, *_ = findings(scenario, mutant, crashed=("c#1",))
    assert violation.property == PRIORITY_ACCOUNTING and violation.position == other.position
    assert violation.messages == (id_of(urgent), id_of(other)) and violation.members == ("a#1", "b#1")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_after_a_change_of_the_order_its_new_class_counts(
    mutant: type[Reordering[Any, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first view promises nothing of the kind, the second one is plain, the third one does."""
    changes = (
        OrderChange(member="a", at_us=80_000, prioritised=False, starvation="none", order=mutant.NAME),
        OrderChange(member="b", at_us=90_000, prioritised=True, starvation="none", order=mutant.NAME),
    )
    faults = FaultOptions(order_changes=changes, healed_at_us=100_000)
    scenario = group((80, 80, 80), rate_per_second=250, consume_us=3_000, faults=faults)
    views = told(run_without_violation(scenario), "a#1")
    monkeypatch.setitem(PROTOCOLS, mutant.NAME, mutant)
    violation, *_ = run_scenario(scenario).violations
    assert violation.property == PRIORITY_ACCOUNTING
    assert len(views) == 3 and violation.position >= views[2].position


def test_a_joiner_that_crashes_before_it_has_the_state_may_have_consumed_anything() -> None:
    """It kept what was ordered, as if it had consumed that, and nothing on record says so."""
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
            life={"state": True},
            load={"state_bytes": 1_000_000},
        )
    )
    assert [process_of(row) for row in run.rows if row.event == STATE] == ["c#3"]
    assert told(run, "c#2") and not delivered_by(run, "c#2")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_few_seeds_find_queues_that_are_not_re_ordered(
    mutant: type[Reordering[Any, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = Choice(mutant.NAME)
    assert [violation for seed in FEW_SEEDS for violation in run_seed(seed, choice).violations] == []
    monkeypatch.setitem(PROTOCOLS, mutant.NAME, mutant)
    found = [violation for seed in FEW_SEEDS for violation in run_seed(seed, choice).violations]
    assert {violation.property for violation in found} == {PRIORITY_ACCOUNTING}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("delivery", ["agreed", "safe"])
def test_a_member_that_lets_everything_overtake_is_caught(
    order: str, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordering = OrderingOptions(overtakes_max=BOUND, distributed=delivery == "safe")
    scenario = crowded(order, ordering=ordering, life={"delivery": delivery})
    run_without_violation(scenario)
    monkeypatch.setattr(priocast.protocols.reorder.base, "Overtaking", NoBound)
    violation, *_ = run_scenario(scenario).violations
    assert violation.property == "Bounded overtaking" and len(violation.messages) == 2
    assert f"has sent {BOUND + 1} more urgent ones" in violation.text
