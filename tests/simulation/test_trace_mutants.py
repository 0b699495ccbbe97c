"""Every checker finds its mutants: the rows of a correct run with one thing changed, shown to new checkers.

`MUTANTS` is the table of all of them: the run, what is changed, which guarantee that breaks, and what the
violation says.
"""

from functools import cache
from typing import NamedTuple

import msgspec
import pytest

from priocast.core.guarantees import (
    AGREEMENT,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)
from priocast.core.protocol import OrderingOptions
from priocast.protocols import PROTOCOLS
from priocast.simulation.faults import Crash, FaultOptions
from priocast.simulation.scenario import Scenario
from priocast.simulation.simulator import SimulatedRun
from priocast.trace.schema import DELIVERED, VIEW
from simulation import damage
from simulation.damage import Damage, change, invert_queue, lose_last_of_crashed
from simulation.replay import violations_in
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, group, run_without_violation

WINDOW = 4
NO_WINDOW = OrderingOptions()
ORDERS = sorted(PROTOCOLS)


def crowded(order: str, ordering: OrderingOptions) -> Scenario:
    """A sender without credit keeps its messages in its own queue."""
    return group((60, 60, 60), rate_per_second=600, consume_us=1_000, order=order, ordering=ordering, seed=5)


def tight(order: str) -> Scenario:
    return crowded(order, OrderingOptions(window=WINDOW, submit_max=1))


def loose(order: str) -> Scenario:
    return crowded(order, OrderingOptions(window=WINDOW))


ONE_VIEW = group(
    (40, 40, 40), rate_per_second=400, consume_us=1_000, ordering=OrderingOptions(window=WINDOW), seed=5
)
THREE_VIEWS = group(
    (30, 30, 30),
    rate_per_second=60,
    faults=FaultOptions(
        crashes=(Crash(member="a", at_us=200_000, back_after_us=300_000),), healed_at_us=500_000
    ),
    load={"safe_percent": 50},
    seed=5,
)
PARTITIONABLE = msgspec.structs.replace(
    THREE_VIEWS, membership=msgspec.structs.replace(THREE_VIEWS.membership, policy="partitionable")
)


class Mutant(NamedTuple):
    """A damaged run. `also` are guarantees that the same damage breaks."""

    name: str
    scenario: Scenario
    damage: Damage
    guarantee: str
    says: str = ""
    also: tuple[str, ...] = ()


def of_views(name: str, damage: Damage, says: str, also: tuple[str, ...] = ()) -> Mutant:
    return Mutant(name, THREE_VIEWS, damage, VIEW_SYNCHRONY, says, also)


MUTANTS = [
    Mutant("neighbours swapped", ONE_VIEW, damage.swap_neighbours, TOTAL_ORDER, "delivered it at"),
    Mutant("message dropped", ONE_VIEW, damage.drop, FIFO_AMONG_EQUALS, "is next"),
    Mutant("last message dropped", ONE_VIEW, damage.drop_last, AGREEMENT, "c#1 did not deliver it"),
    Mutant(
        "message duplicated",
        ONE_VIEW,
        damage.duplicate,
        INTEGRITY,
        "a second time",
        (TOTAL_ORDER, FIFO_AMONG_EQUALS),
    ),
    Mutant("message invented", ONE_VIEW, damage.invent, INTEGRITY, "never broadcast", (FIFO_AMONG_EQUALS,)),
    Mutant("message for others", ONE_VIEW, damage.misdeliver, INTEGRITY, "not addressed to it"),
    Mutant("stream reversed", ONE_VIEW, damage.reverse_stream, FIFO_AMONG_EQUALS, "is next"),
    Mutant("queue inverted", ONE_VIEW, invert_queue("a"), PRIORITY, "a#1 orders"),
    *(
        Mutant(f"sender's queue inverted, {order}", tight(order), invert_queue("b"), PRIORITY, "b#1 sends")
        for order in ORDERS
    ),
    *(
        Mutant(
            f"sequencer's queue inverted, {order}", loose(order), invert_queue("a"), PRIORITY, "a#1 orders"
        )
        for order in ("sequencer-ub", "sequencer-bb", "moving-ub", "moving-bb")
    ),
    Mutant(
        "ordered without having it",
        tight("sequencer-bb"),
        damage.order_unreceived,
        PRIORITY,
        "which does not wait there",
    ),
    of_views("view without me", change(VIEW, "c", 2, members=("b#1",)), "is not a member"),
    of_views("view in another order", change(VIEW, "c", 2, members=("c#1", "b#1")), "view 2@b#1 of c#1,b#1"),
    of_views("view number falls", change(VIEW, "c", 2, view=1), "after 1"),
    of_views("other first position", change(VIEW, "c", 2, position=1), "from position 1 on"),
    of_views("other reason", change(VIEW, "c", 2, failed=("c",)), "(c failed)"),
    of_views(
        "two views of one number",
        change(VIEW, "c", 2, members=("c#1",), coordinator="c#1", orderer="c#1"),
        "there are two views 2",
    ),
    of_views("view skipped", change(VIEW, "c", 2, view=3), "skips from view 1 to 3"),
    of_views("no quorum", change(VIEW, "b", 2, failed=("a", "c")), "were no quorum"),
    of_views(
        "delivery in another view",
        change(DELIVERED, "c", 2, view=1, coordinator="a#1"),
        "delivers in view 1@a#1 while it is in 2@b#1",
    ),
    of_views(
        "delivery before the view",
        change(DELIVERED, "c", 2, position=0),
        "in a view that begins at",
        (TOTAL_ORDER,),
    ),
    of_views(
        "sender not in the view",
        damage.deliver_from_earlier_incarnation,
        "whose sender is not in the view",
        (INTEGRITY, FIFO_AMONG_EQUALS),
    ),
    Mutant(
        "last message of a view dropped",
        THREE_VIEWS,
        damage.drop_last_of_view,
        AGREEMENT,
        "c#1 did not deliver it",
    ),
    Mutant(
        "safe message lost in a crash",
        THREE_VIEWS,
        lose_last_of_crashed(safe=True),
        UNIFORMITY,
        "b#1, c#1 continued without it",
    ),
    Mutant(
        "message ordered in two views",
        PARTITIONABLE,
        damage.order_twice,
        TOTAL_ORDER,
        "delivered it at",
        (AGREEMENT, FIFO_AMONG_EQUALS, INTEGRITY, VIEW_SYNCHRONY),
    ),
]


def crashed_in(scenario: Scenario) -> tuple[str, ...]:
    return tuple(f"{crash.member}#1" for crash in scenario.faults.crashes)


@cache
def correct_run(description: str) -> SimulatedRun:
    """A run without a violation, by the description of its scenario: scenarios cannot be hashed."""
    scenario = next(mutant.scenario for mutant in MUTANTS if mutant.scenario.describe() == description)
    run = run_without_violation(scenario)
    assert violations_in(scenario, run.rows, crashed=crashed_in(scenario)) == []
    return run


def rows_of(scenario: Scenario) -> list[Row]:
    """The rows of the correct run; a partitionable group has those of the primary one, which are correct."""
    primary = THREE_VIEWS if scenario is PARTITIONABLE else scenario
    return correct_run(primary.describe()).rows


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(mutant: Mutant) -> None:
    scenario = mutant.scenario
    rows, position = mutant.damage(rows_of(scenario))
    violations = violations_in(scenario, rows, NO_WINDOW, crashed_in(scenario))
    assert {violation.guarantee for violation in violations} <= {mutant.guarantee, *mutant.also}
    violation = next(violation for violation in violations if violation.guarantee == mutant.guarantee)
    assert mutant.says in violation.summary and violation.members
    assert str(violation).startswith(f"seed {scenario.seed}: {mutant.guarantee} violated")
    if position is not None:
        assert violation.position == position and violation.messages


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_runs_contain_what_the_mutants_change() -> None:
    one_view, three_views = rows_of(ONE_VIEW), rows_of(THREE_VIEWS)
    assert correct_run(ONE_VIEW.describe()).counters.occurred["overtaking"]
    assert {row.level for _, row in damage.about_messages(one_view)} == {HIGH, LOW}
    assert {",".join(row.members) for row in three_views if row.event == VIEW} == {
        "a#1,b#1,c#1",
        "b#1,c#1",
        "b#1,c#1,a#2",
    }
    last_of_a = [row for row in three_views if damage.is_event(DELIVERED, "a", 1)(row)][-1]
    assert last_of_a.sender != "a", "a member that crashes does not submit its messages again"


def test_agreed_message_that_only_a_crashed_member_delivered_binds_nobody() -> None:
    rows, _ = lose_last_of_crashed(safe=False)(rows_of(THREE_VIEWS))
    assert violations_in(THREE_VIEWS, rows, crashed=("a#1",)) == []


def test_agreed_message_that_only_a_crashed_member_delivered_may_get_another_position() -> None:
    """In a primary group only: see the mutant of the partitionable one."""
    rows, _ = damage.order_twice(rows_of(THREE_VIEWS))
    found = violations_in(THREE_VIEWS, rows, crashed=("a#1",))
    assert TOTAL_ORDER not in [violation.guarantee for violation in found]
