"""What `priocast watch` finds in rows as they come: every planted violation, and nothing else."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import mutants
from pipeline.live_slices import reordering, slices_of
from pipeline.sample_runs import SampleRun, play
from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, TOTAL_ORDER
from priocast.core.violation import Violation
from priocast.pipeline.live.agreed_positions import AgreedPositions, Span, StreamName
from priocast.pipeline.live.watching import LiveTraces
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.trace.schema import DELIVERED

SLICES = 7

PlantedIn = Callable[[SampleRun], mutants.Mutant]


def found_in(run: SampleRun, slices: int = SLICES) -> list[Violation]:
    traces = LiveTraces()
    found = [
        violation
        for new in slices_of(run.rows, run.manifest.run, slices)
        for violation in traces.take(new).violations
    ]
    if traces.has_ended:
        assert traces.end() is None
    return found


@pytest.mark.parametrize("slices", [1, SLICES])
@pytest.mark.parametrize("order", ["sequencer-ub", "sequencer-bb", "token-ring"])
def test_a_correct_run_is_not_accused(order: str, slices: int) -> None:
    assert found_in(play(order=order), slices) == []


@pytest.mark.parametrize("seed", range(12))
def test_groups_with_faults_are_not_accused(seed: int) -> None:
    """Crashes, partitions and members that drop out, in all protocols."""
    traces = LiveTraces()
    run = run_scenario(generate_scenario(seed))
    assert [traces.take(new).violations for new in slices_of(run.rows, "r", SLICES)] == [()] * SLICES


@pytest.mark.parametrize("slices", [1, SLICES])
@pytest.mark.parametrize(
    "mutant",
    [mutants.delivery_swapped_in_time, mutants.delivery_swapped_in_content, mutants.position_wrong],
)
def test_another_order_at_one_member_is_found(mutant: PlantedIn, slices: int) -> None:
    planted = mutant(play(batch_max=1))
    found = found_in(planted.run, slices)
    assert any(
        (each.guarantee, each.position) == (TOTAL_ORDER, planted.expected.position)
        and set(each.messages) <= set(planted.expected.messages)
        for each in found
    )


def test_a_message_delivered_twice_is_found() -> None:
    planted = mutants.delivery_repeated(play(batch_max=1))
    assert {each.guarantee for each in found_in(planted.run)} == {TOTAL_ORDER, FIFO_AMONG_EQUALS}


@pytest.mark.parametrize("mutant", [mutants.never_broadcast, mutants.broadcast_recorded_twice])
def test_a_message_that_was_not_broadcast_once_is_found(mutant: PlantedIn) -> None:
    found = [each for each in found_in(mutant(play(batch_max=1)).run) if each.guarantee == INTEGRITY]
    assert found


def test_where_queues_are_reordered_a_conflict_counts_once_nobody_can_have_dropped_out() -> None:
    planted = mutants.delivery_swapped_in_content(play(batch_max=1)).run
    stopped = [row for row in planted.group_events if row.event == "stopped"]
    going_on = planted.changed(lambda rows: reordering([row for row in rows if row not in stopped]))
    traces = LiveTraces()
    for new in slices_of(going_on.rows, "sample", SLICES):
        assert traces.take(new).violations == ()
    last = traces.end()
    assert last is not None and {each.guarantee for each in last.undecided} == {TOTAL_ORDER}
    assert mutants.POSITION in {each.position for each in last.undecided}
    ends = [
        row._replace(event="stopped", members=(), order="")
        for row in planted.group_events
        if row.event == "view"
    ]
    ended = planted.changed(lambda rows: reordering([row for row in rows if row not in stopped]) + ends)
    assert {each.guarantee for each in found_in(ended)} == {TOTAL_ORDER}


@given(st.integers(0, 2**32))
def test_spans_conflict_exactly_where_their_messages_differ(seed: int) -> None:
    """Against a dictionary of single positions; processes deliver in parts of any size."""
    rng = random.Random(seed)
    streams = [StreamName("a#1", 0), StreamName("b#1", 0)]
    positions, single = AgreedPositions(), dict[int, str]()
    for process in ("p", "q", "r"):
        position = 0
        while position < 40:
            count = rng.randrange(1, 9)
            stream = streams[position // 20 if rng.random() < 0.9 else rng.randrange(2)]
            span = Span(position, count, stream, position % 20, process)
            expected = [
                at
                for at in range(position, span.end)
                if single.get(at, span.message_at(at)) != span.message_at(at)
            ]
            conflicts = positions.add(span)
            assert [at for _, at in conflicts] == [
                at for at in expected if at == position or at - 1 not in expected or at in _starts(conflicts)
            ]
            assert all(earlier.message_at(at) == single[at] for earlier, at in conflicts)
            for at in range(position, span.end):
                single.setdefault(at, span.message_at(at))
            position = span.end


def _starts(conflicts: list[tuple[Span, int]]) -> set[int]:
    return {at for _, at in conflicts}


def test_what_all_have_passed_is_forgotten() -> None:
    """However long a group runs, what is kept is what some member has not delivered."""
    run = play(batch_max=1)
    traces = LiveTraces()
    for new in slices_of(run.rows, "sample", 50):
        traces.take(new)
    assert len([row for row in run.messages if row.event == DELIVERED]) > 100
    assert traces.spans_kept < 60
