"""Every check holds for good runs and catches its mutants, at the right place: all in a few Spark jobs."""

import pytest
from pyspark.sql import SparkSession

from pipeline import living_runs, mutants_of_views
from pipeline.mutants import ANY_POLICY, Named, never_ordered, priority_inverted
from pipeline.sample_runs import SampleRun, play
from priocast.pipeline.checks.catalogue import CHECKS, Check
from priocast.pipeline.evidence import gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.verdicts import Verdict, judge

pytestmark = pytest.mark.spark

POLICIES = ("none", "ageing:50us", "flush:5ms")


def single(starvation: str = "none") -> SampleRun:
    return play(starvation=starvation, batch_max=1)


GOOD = {
    "plain": play(prioritised=False),
    "prioritised": play(),
    "ageing": play(starvation="ageing:50us"),
    "flush": play(starvation="flush:5ms"),
    "two-members": play(names=("a", "b"), ticks=8),
    **living_runs.GOOD,
}
MUTANTS = {
    **{mutate.__name__: mutate(single()) for mutate in ANY_POLICY},
    **{f"priority_inverted-{policy}": priority_inverted(single(policy)) for policy in POLICIES},
    "never_ordered": never_ordered(single()),
    **{mutate.__name__: mutate() for mutate in mutants_of_views.MUTANTS},
}


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Verdict]:
    """The verdicts on all good runs and all mutants, by run and property."""
    directory = tmp_path_factory.mktemp("runs")
    for name, run in GOOD.items():
        run.named(name).write_whole(directory)
    for name, mutant in MUTANTS.items():
        mutant.run.named(name.replace(":", "-")).write_whole(directory)
    with gather(spark, open_runs(directory)) as evidence:
        return {(verdict.run, verdict.property): verdict for verdict in judge(evidence, examples_max=50)}


@pytest.mark.parametrize("run", GOOD)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.property)
def test_good_run_holds(verdicts: dict[tuple[str, str], Verdict], run: str, check: Check) -> None:
    verdict = verdicts[run, check.property]
    assert verdict.examples == ()
    assert verdict.holds
    assert verdict.examined > 0 or not verdict.promised


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_at_its_place(verdicts: dict[tuple[str, str], Verdict], name: str) -> None:
    expected = MUTANTS[name].named
    verdict = verdicts[name.replace(":", "-"), expected.property]
    named = [
        Named(verdict.property, violation.position, violation.messages, violation.members)
        for violation in verdict.examples
    ]
    assert expected in named


# What a mutant breaks besides: one cause may break several promises, but not any other.
ALSO_BROKEN = {
    "position_left_out": {"FIFO among equals"},
    "delivery_repeated": {"Total order"},
    "fifo_stepped_back": {"Priority"},
    **{mutate.__name__: broken for mutate, broken in mutants_of_views.ALSO_BROKEN.items()},
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_breaks_nothing_else(verdicts: dict[tuple[str, str], Verdict], name: str) -> None:
    run = name.replace(":", "-")
    broken = {verdict.property for (of, _), verdict in verdicts.items() if of == run and not verdict.holds}
    assert broken == {MUTANTS[name].named.property} | ALSO_BROKEN.get(name, set())


def test_plain_run_promises_no_priorities(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run: verdicts[run, "Priority"].promised for run in GOOD}
    assert promised == {run: run != "plain" for run in GOOD}


def test_uniformity_is_promised_where_something_is_safe(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run for run in GOOD if verdicts[run, "Uniformity"].promised}
    assert promised == {"safe", "safe-at-times", "safe-and-divided"}
    assert all(verdicts[run, "Uniformity"].examined > 10 for run in promised)


def test_detail_says_who_delivered_what(verdicts: dict[tuple[str, str], Verdict]) -> None:
    verdict = verdicts["delivery_swapped_in_content", "Total order"]
    first = next(violation for violation in verdict.examples if len(violation.messages) == 2)
    one, other = first.messages
    said = first.detail
    assert verdict.violations == 4  # two places with two messages, two messages with two places
    assert sorted(said.split("; ")) in (
        [f"a#1, c#1, d#1 delivered {one}", f"b#1 delivered {other}"],
        [f"a#1, c#1, d#1 delivered {other}", f"b#1 delivered {one}"],
    )
