"""The checkers of views catch their mutants: a good run with a crash and a return, with one thing changed."""

from collections.abc import Callable

import msgspec
import pytest

from priocast.simulation.faults import Crash, FaultOptions
from priocast.simulation.simulator import run_scenario
from priocast.trace.schema import DELIVERED, VIEW
from simulation.replay import findings
from simulation.rows import Row
from simulation.scenarios import group

CRASHED = ("a#1",)
SCENARIO = group(
    (30, 30, 30),
    rate_per_second=60,
    faults=FaultOptions(
        crashes=(Crash(member="a", at_us=200_000, back_after_us=300_000),), healed_at_us=500_000
    ),
    load={"safe_percent": 50},
    seed=5,
)
PARTITIONABLE = msgspec.structs.replace(
    SCENARIO, membership=msgspec.structs.replace(SCENARIO.membership, policy="partitionable")
)


@pytest.fixture(scope="module")
def good() -> list[Row]:
    run = run_scenario(SCENARIO)
    assert not run.violations
    assert {row.members for row in run.group_events if row.event == VIEW} == {
        ("a#1", "b#1", "c#1"),
        ("b#1", "c#1"),
        ("b#1", "c#1", "a#2"),
    }
    last_of_a = [row for row in run.messages if is_delivery("a", 1)(row)][-1]
    assert last_of_a.sender != "a", "or nobody could send it again"
    return run.rows


def change(rows: list[Row], chosen: Callable[[Row], bool], **changes: object) -> list[Row]:
    """The rows, with the first that is chosen changed."""
    index = next(index for index, row in enumerate(rows) if chosen(row))
    return [*rows[:index], rows[index]._replace(**changes), *rows[index + 1 :]]


def is_view(member: str, number: int) -> Callable[[Row], bool]:
    return lambda row: (row.event, row.member, row.view) == (VIEW, member, number)


def is_delivery(member: str, number: int) -> Callable[[Row], bool]:
    return lambda row: (row.event, row.member, row.view) == (DELIVERED, member, number)


def test_good_run_has_no_violation(good: list[Row]) -> None:
    assert findings(SCENARIO, good, crashed=CRASHED) == []


@pytest.mark.parametrize(
    ("chosen", "changes", "says"),
    [
        (is_view("c", 2), {"members": ("b#1",)}, "is not a member"),
        (is_view("c", 2), {"members": ("c#1", "b#1")}, "is told of view 2@b#1 of c#1,b#1"),
        (is_view("c", 2), {"view": 1}, "after 1"),
        (is_view("c", 2), {"position": 1}, "from 1 on"),
        (is_view("c", 2), {"failed": ("c",)}, "(c failed)"),
        (
            is_view("c", 2),
            {"members": ("c#1",), "coordinator": "c#1", "orderer": "c#1"},
            "there are two views 2",
        ),
        (is_view("c", 2), {"view": 3}, "goes from view 1 to 3"),
        (is_view("b", 2), {"failed": ("a", "c")}, "that is no quorum"),
        (
            is_delivery("c", 2),
            {"view": 1, "coordinator": "a#1"},
            "delivers in view 1@a#1 while it is in 2@b#1",
        ),
        (is_delivery("c", 2), {"position": 0}, "in a view that begins at"),
    ],
)
def test_wrong_view_is_caught(
    good: list[Row], chosen: Callable[[Row], bool], changes: dict[str, object], says: str
) -> None:
    violations = findings(SCENARIO, change(good, chosen, **changes), crashed=CRASHED)
    found = [violation for violation in violations if violation.property == "View synchrony"]
    assert says in found[0].text


def test_sender_that_is_not_in_the_view_is_caught(good: list[Row]) -> None:
    """An earlier life of a member is another process."""
    index = next(
        index for index, row in enumerate(good) if row.event == DELIVERED and row.sender_incarnation == 2
    )
    mutant = [*good[:index], good[index]._replace(sender_incarnation=1), *good[index + 1 :]]
    violations = findings(SCENARIO, mutant, crashed=CRASHED)
    assert "whose sender is not in the view" in " ".join(violation.text for violation in violations)


def without(rows: list[Row], member: str, message: Row) -> list[Row]:
    """The rows, without this member's delivery of the message."""
    key = (message.sender, message.level, message.first)
    return [
        row
        for row in rows
        if (row.event, row.member) != (DELIVERED, member) or (row.sender, row.level, row.first) != key
    ]


def last_of_view(rows: list[Row], member: str, number: int, *, safe: bool) -> Row:
    return [row for row in rows if is_delivery(member, number)(row) and row.safe == safe][-1]


def test_those_who_go_on_together_must_agree_on_the_old_view(good: list[Row]) -> None:
    violations = findings(
        SCENARIO, without(good, "c", last_of_view(good, "c", 1, safe=False)), crashed=CRASHED
    )
    assert violations[-1].property in {"Agreement", "FIFO among equals"}
    assert "c#1" in violations[-1].members


def lost_by_survivors(rows: list[Row], *, safe: bool) -> list[Row]:
    """What the one that crashed delivered last, the others never do; and nobody orders anything else."""
    last = [row for row in rows if is_delivery("a", 1)(row)][-1]
    known = {row.position for row in rows if is_delivery("b", 1)(row)}
    alone = last._replace(position=max(known) + 1, first=last.first, safe=safe)
    kept = without(without(rows, "b", last), "c", last)
    first_view = [row for row in kept if row.view < 2 or row.event == VIEW]
    index = first_view.index(last)
    return [*first_view[:index], alone, *first_view[index + 1 :]]


def test_what_a_lost_life_delivered_binds_the_others_only_if_it_is_safe(good: list[Row]) -> None:
    assert findings(SCENARIO, lost_by_survivors(good, safe=False), crashed=CRASHED) == []
    violation, *_ = findings(SCENARIO, lost_by_survivors(good, safe=True), crashed=CRASHED)
    assert violation.property == "Uniformity" and violation.members == ("a#1", "b#1", "c#1")


def twice_placed(rows: list[Row]) -> list[Row]:
    """What only a delivered in view 1, b and c deliver as the first message of view 2."""
    last = [row for row in rows if is_delivery("a", 1)(row)][-1]
    mutant = lost_by_survivors(rows, safe=False)
    for member in ("b", "c"):
        told = next(index for index, row in enumerate(mutant) if is_view(member, 2)(row))
        again = last._replace(member=member, view=2, coordinator="b#1", position=mutant[told].position)
        mutant.insert(told + 1, again)
    return mutant


def test_place_that_did_not_survive_may_be_given_again_in_a_primary_group_only(good: list[Row]) -> None:
    mutant = twice_placed(good)
    assert "Total order" not in [found.property for found in findings(SCENARIO, mutant, crashed=CRASHED)]
    assert "Total order" in [found.property for found in findings(PARTITIONABLE, mutant, crashed=CRASHED)]
