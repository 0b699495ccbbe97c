"""Every checker catches its mutants: a good run's rows, with one thing changed, fed to fresh checkers."""

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.simulation.application import State
from priocast.simulation.checkers.checker import Violation
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.simulator import run_scenario
from priocast.simulation.workload import payload_of
from priocast.trace.schema import BROADCAST, DELIVERED, NO_POSITION, RECEIVED, SENT
from simulation.replay import findings
from simulation.rows import Row
from simulation.scenarios import HIGH, LOW, MILLISECOND, group

SEED = 5
WINDOW = 4
SCENARIO = group(
    (40, 40, 40),
    rate_per_second=400,
    consume_us=1_000,
    ordering=OrderingOptions(window=WINDOW),
    seed=SEED,
)
NO_WINDOW = OrderingOptions()
Mutate = Callable[[list[Row]], tuple[list[Row], int]]


@pytest.fixture(scope="module")
def good() -> list[Row]:
    run = run_scenario(SCENARIO)
    assert not run.violations and run.counters.occurred["overtaking"]
    return run.rows


def message_of(row: Row) -> dict[str, object]:
    return {"sender": row.sender, "level": row.level, "first": row.first, "count": row.count}


def swap(rows: list[Row], first: int, second: int) -> list[Row]:
    """Let two rows name each other's messages, each at its own time and position."""
    mutant = list(rows)
    mutant[first] = rows[first]._replace(**message_of(rows[second]))
    mutant[second] = rows[second]._replace(**message_of(rows[first]))
    return mutant


def deliveries(rows: list[Row], member: str) -> list[int]:
    return [index for index, row in enumerate(rows) if (row.event, row.member) == (DELIVERED, member)]


def streams_differ(rows: list[Row], first: int, second: int) -> bool:
    return (rows[first].sender, rows[first].level) != (rows[second].sender, rows[second].level)


def swapped(rows: list[Row]) -> tuple[list[Row], int]:
    """Member c delivers two neighbours, of different streams, the other way round."""
    of_c = deliveries(rows, "c")
    first, second = next(pair for pair in pairwise(of_c[20:]) if streams_differ(rows, *pair))
    return swap(rows, first, second), rows[first].position


def dropped(rows: list[Row]) -> tuple[list[Row], int]:
    """Member c never delivers one message in the middle."""
    index = deliveries(rows, "c")[30]
    after = next(
        row
        for row in rows[index + 1 :]
        if (row.event, row.member) == (DELIVERED, "c")
        and (row.sender, row.level) == (rows[index].sender, rows[index].level)
    )
    return rows[:index] + rows[index + 1 :], after.position


def dropped_last(rows: list[Row]) -> tuple[list[Row], int]:
    """Member c never delivers the last message."""
    index = deliveries(rows, "c")[-1]
    return rows[:index] + rows[index + 1 :], rows[index].position


def duplicated(rows: list[Row]) -> tuple[list[Row], int]:
    """Member b delivers a message twice."""
    index = deliveries(rows, "b")[10]
    return rows[: index + 1] + rows[index:], rows[index].position


def never_broadcast(rows: list[Row]) -> tuple[list[Row], int]:
    """Member b delivers a message that nobody broadcast."""
    index = deliveries(rows, "b")[10]
    return [*rows[:index], rows[index]._replace(first=10_000), *rows[index + 1 :]], rows[index].position


def not_addressed(rows: list[Row]) -> tuple[list[Row], int]:
    """Member b delivers a message that is for others."""
    index = deliveries(rows, "b")[10]
    return [*rows[:index], rows[index]._replace(to="a,c"), *rows[index + 1 :]], rows[index].position


def stepped_back(rows: list[Row]) -> tuple[list[Row], int]:
    """All members alike deliver two messages of one stream the wrong way round."""
    stream = [
        index for index in deliveries(rows, "b") if (rows[index].sender, rows[index].level) == ("b", LOW)
    ]
    broadcast_at = {
        row.first: row.time_ns
        for row in rows
        if row.event == BROADCAST and (row.sender, row.level) == ("b", LOW)
    }
    first, second = next(
        (rows[one].position, rows[other].position)
        for one, other in pairwise(stream)
        if broadcast_at[rows[other].first] + MILLISECOND < rows[one].time_ns
    )
    mutant = rows
    for member in SCENARIO.members:
        of_member = deliveries(rows, member)
        mutant = swap(mutant, of_member[first], of_member[second])
    return mutant, second


def inverted(rows: list[Row]) -> tuple[list[Row], int]:
    """The orderer lets a low message out while a high one waits; both were there."""
    entered = {
        (row.sender, row.level, row.first): index
        for index, row in enumerate(rows)
        if (row.event, row.member, row.position) == (RECEIVED, "a", NO_POSITION)
    }
    left = [
        index
        for index, row in enumerate(rows)
        if (row.event, row.member, row.count) == (SENT, "a", 1) and row.position != NO_POSITION
    ]
    first, second = next(
        (high, low)
        for high in left
        for low in left
        if high < low
        and (rows[high].level, rows[low].level) == (HIGH, LOW)
        and entered[rows[low].sender, LOW, rows[low].first] < high
    )
    return swap(rows, first, second), rows[first].position


@pytest.mark.parametrize(
    ("mutate", "properties"),
    [
        (swapped, ["Total order"]),
        (dropped, ["FIFO among equals"]),
        (dropped_last, ["Agreement"]),
        (duplicated, ["Integrity", "Total order", "FIFO among equals"]),
        (never_broadcast, ["Integrity", "FIFO among equals"]),
        (not_addressed, ["Integrity"]),
        (stepped_back, ["FIFO among equals"]),
        (inverted, ["Priority"]),
    ],
)
def test_mutant_is_caught_and_placed(good: list[Row], mutate: Mutate, properties: list[str]) -> None:
    mutant, position = mutate(good)
    violations = findings(SCENARIO, mutant, NO_WINDOW)
    found = list(dict.fromkeys(violation.property for violation in violations))
    assert set(found) <= set(properties) and found[0] == properties[0]
    assert violations[0].seed == SEED and f"seed {SEED}: {properties[0]} violated" in str(violations[0])
    assert violations[0].position == position
    assert violations[0].messages and violations[0].members


def test_good_run_has_no_violation(good: list[Row]) -> None:
    assert findings(SCENARIO, good) == []


def test_smaller_window_than_the_run_had_is_violated(good: list[Row]) -> None:
    violation, *_ = findings(SCENARIO, good, OrderingOptions(window=WINDOW - 1))
    assert violation.property == "Bounded window" and violation.position >= 0


def test_window_reports_members_that_are_behind(good: list[Row]) -> None:
    violation, *_ = findings(SCENARIO, good, OrderingOptions(window=1))
    assert violation.members[0] == "a#1" and "not consumed by" in violation.text


@pytest.mark.parametrize("starvation", [Ageing(5 * MILLISECOND), PeriodicRelease(5 * MILLISECOND)])
def test_priority_is_exact_for_every_policy(good: list[Row], starvation: Starvation) -> None:
    """A run under another policy has no place in this one: the checker ranks by the very policy."""
    violation, *_ = findings(SCENARIO, good, OrderingOptions(starvation=starvation))
    assert violation.property == "Priority" and len(violation.messages) == 2
    assert SCENARIO.ordering.starvation == Strict()


def test_payload_of_another_message_is_caught() -> None:
    violations: list[Violation] = []
    checker = Integrity(violations.append)
    me, state = ProcessId("c"), State()
    message = Message(ProcessId("b"), HIGH, 3, HIGH, payload_of("b.7", HIGH, 20))
    checker.on_message(me, message, 7, state, 11)
    assert violations == []
    for wrong in (
        {"payload": payload_of("c.7", HIGH, 20)},
        {"payload": payload_of("b.8", HIGH, 20)},
        {"priority": LOW},
    ):
        checker.on_message(me, msgspec.structs.replace(message, **wrong), 7, state, 11)
    assert [(found.property, found.position, found.time_ns) for found in violations] == [
        ("Integrity", 7, 11)
    ] * 3


def test_wish_that_the_state_holds_is_not_fulfilled_again() -> None:
    violations: list[Violation] = []
    checker = Integrity(violations.append)
    message = Message(ProcessId("b", 2), HIGH, 0, HIGH, payload_of("b.7", HIGH, 20))
    checker.on_message(ProcessId("c"), message, 7, State(b"", {"b.6"}), 11)
    assert violations == []
    checker.on_message(ProcessId("c"), message, 7, State(b"", {"b.7"}), 11)
    assert "fulfils b.7 a second time" in violations[0].text
