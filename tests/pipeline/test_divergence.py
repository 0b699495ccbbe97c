"""Members that dropped out of a re-ordered view: what counts after what they first delivered alone.

In all of these runs b dropped out of the first view, and had delivered a message there that was for b alone.
"""

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.mutants import replacing, without
from pipeline.oracle import expected_places
from pipeline.reordered_runs import ORDERS, with_messages_for_some
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import Place, TraceFacts, id_of
from pipeline.view_mutants import deliveries
from priocast.core.guarantees import AGREEMENT, FIFO_AMONG_EQUALS, TOTAL_ORDER, UNIFORMITY
from priocast.pipeline.checks.catalogue import CHECKS
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import TraceTables, load_trace
from priocast.pipeline.verdicts import judge
from priocast.trace.schema import MessageRow

pytestmark = pytest.mark.spark

_ORDER = ORDERS[0]
_JUDGED = (TOTAL_ORDER, AGREEMENT, UNIFORMITY, FIFO_AMONG_EQUALS)

Found = dict[tuple[str, str], set[Place]]


def for_b_alone(run: SampleRun, safe: bool) -> list[MessageRow]:
    """What b delivered in the first view, and nobody else had to."""
    return [row for row in deliveries(run, "b", 1) if row.to == "b" and row.safe == safe]


def two_at_one_position(run: SampleRun, safe: bool) -> SampleRun:
    """Member b delivers a message for itself at the position of the one before, after it diverged."""
    first, second = list(pairwise(for_b_alone(run, safe)))[-1]
    assert first.position > for_b_alone(run, safe=False)[0].position
    return run.changed(replacing(second, second._replace(position=first.position)))


def safe_message_missing(run: SampleRun) -> SampleRun:
    """Member a continued without the last safe message that b delivered."""
    of_b = [id_of(row) for row in deliveries(run, "b", 1) if row.safe and row.to != "b"]
    lost = next(row for row in deliveries(run, "a", 1) if id_of(row) == of_b[-1])
    return run.changed(without(lost))


def regular_runs() -> dict[str, SampleRun]:
    """Runs in which every message was delivered by everybody who must, at one position."""
    good = with_messages_for_some(_ORDER)
    return {
        "good": good,
        "unsafe": two_at_one_position(good, safe=False),
        "safe": two_at_one_position(good, safe=True),
    }


def places(trace: TraceTables) -> Found:
    """Where violations of the order and of agreement are, by run and guarantee."""
    checks = [check for check in CHECKS if check.guarantee in _JUDGED]
    return {
        (verdict.run, verdict.guarantee): {
            Place(found.view, found.position, found.messages, found.members) for found in verdict.examples
        }
        for verdict in judge(trace, checks=checks)
    }


def expected(runs: dict[str, SampleRun]) -> Found:
    return {
        (name, guarantee): set(found)
        for name, run in runs.items()
        for guarantee, found in expected_places(run).items()
        if guarantee in _JUDGED
    }


@pytest.mark.parametrize("order", ORDERS)
def test_a_correct_run_in_which_safe_messages_follow_the_divergence_is_one(order: str) -> None:
    facts = TraceFacts(run := with_messages_for_some(order))
    alone, safe = for_b_alone(run, safe=False)[0], for_b_alone(run, safe=True)[-1]
    assert alone.position < safe.position
    assert [facts.binds(id_of(row), (1, "a#1")) for row in (alone, safe)] == [False, True]
    assert not any(expected_places(run).values())


def test_a_run_without_irregular_messages_is_judged_as_among_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = regular_runs()
    for name, run in runs.items():
        run.named(name).write_whole(tmp_path)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        assert trace.irregular is None
        assert places(trace) == expected(runs)
    missing = safe_message_missing(runs["good"])
    missing.named("missing").write_whole(tmp_path)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        assert trace.irregular is not None
        found = places(trace)
    assert found == expected({**runs, "missing": missing})
    assert {name: len(found[name, TOTAL_ORDER]) for name in runs} == {"good": 0, "unsafe": 1, "safe": 2}
    assert [place.members for place in found["missing", UNIFORMITY]] == [("a#1",)]
