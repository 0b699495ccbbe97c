"""The checkers of queues judge every class: at members that give out places, and at senders.

A good run's rows, with one thing changed, are fed to fresh checkers.
"""

from collections.abc import Callable

import msgspec
import pytest

from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.paced import PacedProtocol
from priocast.simulation.faults import FaultOptions, OrderChange
from priocast.simulation.scenario import Scenario
from priocast.simulation.simulator import run_scenario
from priocast.trace.schema import BROADCAST, NO_POSITION, RECEIVED, SENT, VIEW, GroupEventRow
from simulation.replay import findings
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, MILLISECOND, group, run_without_violation

WINDOW = 4
STEP = 5 * MILLISECOND
#: Who has no credit lets its messages wait in its own queue.
TIGHT = OrderingOptions(window=WINDOW, submit_max=1)
NO_WINDOW = OrderingOptions()
ORDERS = sorted(PROTOCOLS)
SEQUENCING = [order for order in ORDERS if PROTOCOLS[order].PRIORITIES_ACT == "sequencing"]


def crowded(order: str, ordering: OrderingOptions = TIGHT) -> Scenario:
    scenario = group((60, 60, 60), rate_per_second=600, consume_us=1_000, ordering=ordering, seed=5)
    return msgspec.structs.replace(scenario, order=order)


def enters(member: str) -> Callable[[Row], bool]:
    """What member b has broadcast, or what the orderer has received."""
    if member == "b":
        return lambda row: (row.event, row.member) == (BROADCAST, "b")
    return lambda row: (row.event, row.member, row.position) == (RECEIVED, member, NO_POSITION)


def leaves(member: str) -> Callable[[Row], bool]:
    if member == "b":
        return lambda row: (row.event, row.member, row.sender) == (SENT, "b", "b") and row.bytes > 0
    return lambda row: (row.event, row.member) == (SENT, member) and row.position != NO_POSITION


def inverted(rows: list[Row], member: str) -> tuple[list[Row], Row]:
    """Let a low message leave first, and a high one that was there in its place; return that row, too."""
    entered: dict[tuple[str, int, int], int] = {}
    left: dict[tuple[str, int, int], int] = {}
    for index, row in enumerate(rows):
        if isinstance(row, GroupEventRow):
            continue
        for number in range(row.first, row.first + row.count):
            if enters(member)(row):
                entered[row.sender, row.level, number] = index
            elif leaves(member)(row) and row.count == 1 and (row.sender, row.level, number) in entered:
                left.setdefault((row.sender, row.level, number), index)
    first, second = next(
        (left[high], left[low])
        for high in left
        for low in left
        if (high[1], low[1]) == (HIGH, LOW) and entered[low] < left[high] < left[low]
    )
    mutant = list(rows)
    mutant[first], mutant[second] = _renamed(rows[first], rows[second]), _renamed(rows[second], rows[first])
    return mutant, mutant[first]


def _renamed(row: Row, of: Row) -> Row:
    return row._replace(sender=of.sender, level=of.level, first=of.first, count=of.count)


@pytest.mark.parametrize("order", ORDERS)
def test_a_sender_that_lets_the_less_urgent_out_is_caught(order: str) -> None:
    rows = run_without_violation(crowded(order)).rows
    mutant, wrong = inverted(rows, "b")
    violation, *_ = findings(crowded(order), mutant, NO_WINDOW)
    assert violation.property == "Priority" and violation.members == ("b#1",)
    assert f"b#1 sends b#1/{LOW}/{wrong.first} while b#1/{HIGH}/" in violation.text


@pytest.mark.parametrize("order", ["sequencer-ub", "sequencer-bb", "moving-ub", "moving-bb"])
def test_a_sequencer_that_orders_the_less_urgent_is_caught(order: str) -> None:
    """Also if it only names what it orders, and if it is not the only one to do so."""
    loose = OrderingOptions(window=WINDOW)
    rows = run_without_violation(crowded(order, loose)).rows
    mutant, wrong = inverted(rows, "a")
    violation, *_ = findings(crowded(order), mutant, NO_WINDOW)
    assert violation.property == "Priority" and violation.members == ("a#1",)
    assert violation.position == wrong.position and violation.text.startswith("a#1 orders")


def test_a_sequencer_that_orders_what_it_never_had_is_caught() -> None:
    rows = run_without_violation(crowded("sequencer-bb")).rows
    index = next(
        index for index, row in enumerate(rows) if enters("a")(row) and getattr(row, "sender", "") == "b"
    )
    violation, *_ = findings(crowded("sequencer-bb"), rows[:index] + rows[index + 1 :], NO_WINDOW)
    assert violation.property == "Priority" and "which does not wait there" in violation.text


def test_these_classes_give_out_places_by_priority() -> None:
    assert SEQUENCING == [
        "moving-bb",
        "moving-ub",
        "moving-uub",
        "sequencer-bb",
        "sequencer-ub",
        "sequencer-uub",
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("starvation", [Ageing(STEP), PeriodicRelease(STEP)])
def test_senders_are_judged_by_the_very_policy(order: str, starvation: Starvation) -> None:
    """A run under another policy has no place in this one."""
    rows = run_without_violation(crowded(order)).rows
    violation, *_ = findings(crowded(order), rows, OrderingOptions(starvation=starvation))
    assert violation.property == "Priority" and len(violation.messages) == 2


def test_a_layer_sends_first_in_first_out() -> None:
    """The same rows are right for a layer and wrong for the class that it is laid over."""
    rows = run_without_violation(crowded("time-parts/sequencer-ub")).rows
    assert findings(crowded("time-parts/sequencer-ub"), rows) == []
    unlayered = [
        row._replace(order="sequencer-ub") if isinstance(row, GroupEventRow) else row for row in rows
    ]
    violation, *_ = findings(crowded("sequencer-ub"), unlayered, NO_WINDOW)
    assert violation.property == "Priority"


def test_after_a_change_of_the_order_its_new_class_and_policy_count() -> None:
    """What waited in line is sent again first, and what comes later goes by priority, as each view says."""
    changes = (
        OrderChange(member="a", at_us=120_000, prioritised=False, starvation="none", order="token-ring"),
        OrderChange(
            member="b", at_us=180_000, prioritised=True, starvation="ageing:1ms", order="sequencer-bb"
        ),
    )
    scenario = msgspec.structs.replace(
        crowded("sequencer-ub"), faults=FaultOptions(order_changes=changes, healed_at_us=200_000)
    )
    run = run_without_violation(scenario)
    orders = [
        (row.order, row.starvation) for row in run.group_events if row.event == VIEW and row.member == "c"
    ]
    assert orders == [("sequencer-ub", "none"), ("token-ring", "fifo"), ("sequencer-bb", "ageing:1ms")]
    assert run.counters.occurred["order changed"] and run.counters.occurred["overtaking"]


@pytest.mark.parametrize("order", [each for each in ORDERS if not each.startswith("reorder")])
def test_a_smaller_window_than_the_run_had_is_violated(order: str) -> None:
    window = 12 if issubclass(PROTOCOLS[order], PacedProtocol) else WINDOW
    ordering = OrderingOptions(window=window)
    rows = run_scenario(crowded(order, ordering)).rows
    assert findings(crowded(order), rows, ordering) == []
    violation, *_ = findings(crowded(order), rows, OrderingOptions(window=window // 2))
    assert violation.property == "Bounded window" and "not consumed by" in violation.text


def test_every_sender_of_a_paced_class_has_its_share() -> None:
    rows = run_scenario(crowded("causal-history", OrderingOptions(window=12))).rows
    violation, *_ = findings(crowded("causal-history"), rows, OrderingOptions(window=11))
    assert "4 messages are ordered" in violation.text and violation.text.endswith("3 may be")
