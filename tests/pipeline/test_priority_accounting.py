"""Priority accounting on runs whose queues are reordered: correct ones hold, and every change is found."""

import os
import random
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

import pytest

from pipeline.damages import OF_REORDERED, OF_VIEWS, damaged, exchange_positions, shuffle_departures
from pipeline.oracle import expected_places
from pipeline.reordered_runs import ORDERS, played, simulated, with_a_joiner_that_never_had_the_state
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import Place, id_of, process_of
from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.pipeline.verdicts import Verdict
from priocast.trace.schema import DELIVERED, RECEIVED, MessageRow

#: One fixture checks all runs: 371 s on two cores that are shared with fifteen busy processes.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]

SEED_FIRST = int(os.environ.get("PRIOCAST_SEED_FIRST", "200"))
SEEDS = range(SEED_FIRST, SEED_FIRST + 12)
DELIVERIES_MIN = 10
OF_ALL = tuple(damage for damage in OF_VIEWS if damage is not shuffle_departures)


@dataclass(frozen=True)
class Moved:
    """A run in which one message was moved by one position, and who had passed that position."""

    run: SampleRun
    message: str
    other: str
    position: int
    had_passed: tuple[str, ...]


def moved_back(run: SampleRun) -> Moved:
    """A message is moved behind a less urgent one that it had overtaken."""
    urgent, other = next(
        (one, two)
        for one, two in pairwise(_order(run))
        if one.level > two.level and _was_waiting(run, one, two)
    )
    return Moved(
        run.changed(lambda rows: exchange_positions(rows, urgent, other)),
        id_of(urgent),
        id_of(other),
        other.position,
        (),
    )


def moved_forward(run: SampleRun) -> Moved:
    """A message is moved before a less urgent one that a member had consumed."""
    other, urgent = next((one, two) for one, two in pairwise(_order(run)) if one.level < two.level)
    had = tuple(
        process
        for process in sorted({process_of(row) for row in run.rows})
        if _step(run, DELIVERED, process, other) < _step(run, RECEIVED, process, urgent)
    )
    assert had, "otherwise it would have been overtaken"
    return Moved(
        run.changed(lambda rows: exchange_positions(rows, other, urgent)),
        id_of(urgent),
        id_of(other),
        other.position,
        had,
    )


def _order(run: SampleRun) -> list[MessageRow]:
    return [row for row in run.messages if (row.event, row.member) == (DELIVERED, "a")]


def _step(run: SampleRun, event: str, process: str, of: MessageRow) -> int:
    return next(
        row.step
        for row in run.messages
        if (row.event, process_of(row), id_of(row)) == (event, process, id_of(of)) and row.bytes
    )


def _was_waiting(run: SampleRun, urgent: MessageRow, other: MessageRow) -> bool:
    """Whether the less urgent one was at a member when the other one arrived there."""
    return any(
        _step(run, RECEIVED, process, other) < _step(run, RECEIVED, process, urgent)
        for process in {process_of(row) for row in run.rows}
    )


GOOD = {
    **{
        f"played-{order}-{seed}": partial(played, seed, order, 1 + seed % 3)
        for order in ORDERS
        for seed in SEEDS
    },
    **{f"simulated-{order}-{seed}": partial(simulated, seed, order) for order in ORDERS for seed in SEEDS},
    **{f"joiner-{order}": partial(with_a_joiner_that_never_had_the_state, order) for order in ORDERS},
}
MOVED_SEEDS = [f"{order}-{seed}" for order in ORDERS for seed in range(3)]


@cache
def good_runs() -> dict[str, SampleRun]:
    """Correct runs; not when the module is imported, because every worker imports it and one needs them."""
    return {name: make() for name, make in GOOD.items()}


@cache
def moved_runs() -> dict[str, Moved]:
    """Runs in which one message was moved by one position."""
    return {
        f"{move.__name__}-{order}-{seed}": move(played(seed, order))
        for move in (moved_back, moved_forward)
        for order in ORDERS
        for seed in range(3)
    }


@cache
def damaged_runs() -> dict[str, SampleRun]:
    """Correct runs that were damaged at random."""
    of_simulated = {
        f"damaged-{name}": damaged(run, random.Random(name), OF_ALL, 1 + len(name) % 3)
        for name, run in good_runs().items()
        if name.startswith("simulated")
        and len(run.manifest.members) > 1
        and len(_order(run)) > DELIVERIES_MIN
    }
    of_played = {
        f"damaged-{name}": damaged(run, random.Random(name), OF_REORDERED, 2)
        for name, run in good_runs().items()
        if name.startswith("played")
    }
    return of_simulated | of_played


def runs_to_check() -> dict[str, SampleRun]:
    """All runs."""
    moved = {name: moved.run for name, moved in moved_runs().items()}
    return good_runs() | damaged_runs() | moved | {"plain": played(3, prioritised=False)}


@pytest.fixture(scope="module")
def verdicts(verdicts_by_module: dict[str, list[Verdict]]) -> dict[str, Verdict]:
    accounting = [each for each in verdicts_by_module[__name__] if each.guarantee == PRIORITY_ACCOUNTING]
    return {verdict.run: verdict for verdict in accounting}


def _places(verdict: Verdict) -> list[Place]:
    return [Place(found.view, found.position, found.messages, found.members) for found in verdict.examples]


@pytest.mark.parametrize("name", GOOD)
def test_correct_runs_hold(verdicts: dict[str, Verdict], name: str) -> None:
    assert verdicts[name].examples == ()
    assert expected_places(good_runs()[name])[PRIORITY_ACCOUNTING] == []


def test_the_correct_runs_have_less_urgent_messages_on_both_sides() -> None:
    """Runs without overtaking would prove nothing."""
    pairs = [
        (one.level > two.level, one.level < two.level)
        for run in good_runs().values()
        for one, two in pairwise(_order(run))
    ]
    assert sum(overtakes for overtakes, _ in pairs) > 100
    assert sum(goes_first for _, goes_first in pairs) > 100


def test_finds_what_the_oracle_finds(verdicts: dict[str, Verdict]) -> None:
    assert len(damaged_runs()) > len(ORDERS) * len(SEEDS)
    for name, run in damaged_runs().items():
        expected = expected_places(run)[PRIORITY_ACCOUNTING]
        assert sorted(_places(verdicts[name]), key=repr) == sorted(expected, key=repr), name


def test_the_damages_break_it(verdicts: dict[str, Verdict]) -> None:
    found = [place for name in damaged_runs() for place in _places(verdicts[name])]
    assert {len(place.messages) for place in found} == {1, 2}
    assert {len(place.members) > 1 for place in found} == {True, False}


@pytest.mark.parametrize("name", [f"moved_back-{seed}" for seed in MOVED_SEEDS])
def test_an_insertion_one_position_too_late_is_reported(verdicts: dict[str, Verdict], name: str) -> None:
    moved = moved_runs()[name]
    place = Place("1@a#1", moved.position, (moved.message, moved.other), ("a#1", "b#1", "c#1"))
    assert place in _places(verdicts[name])
    summary = next(found.summary for found in verdicts[name].examples if moved.message in found.messages)
    assert f"behind {moved.other}" in summary
    assert f"at {moved.position}" in summary


@pytest.mark.parametrize("name", [f"moved_forward-{seed}" for seed in MOVED_SEEDS])
def test_an_insertion_one_position_too_early_is_reported(verdicts: dict[str, Verdict], name: str) -> None:
    moved = moved_runs()[name]
    place = Place("1@a#1", moved.position, (moved.message,), moved.had_passed[-1:])
    assert place in _places(verdicts[name])


def test_a_plain_run_does_not_promise_it(verdicts: dict[str, Verdict]) -> None:
    assert not verdicts["plain"].promised
    assert verdicts["plain"].holds
    assert verdicts[f"played-reorder-{SEED_FIRST}"].promised
