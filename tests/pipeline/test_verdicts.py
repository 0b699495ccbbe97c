"""Every check holds for good runs and catches its mutants, at the right place: all in a few Spark jobs."""

import pytest
from pyspark.sql import SparkSession

from pipeline import living_runs, mutants_of_orders, mutants_of_views
from pipeline.mutants import (
    ANY_POLICY,
    Named,
    delivery_dropped,
    delivery_swapped_in_content,
    fifo_stepped_back,
    never_ordered,
    never_sent,
    ordered_out_of_nowhere,
    priority_inverted,
    sending_inverted,
)
from pipeline.sample_runs import SampleRun, play
from priocast.pipeline.checks.catalogue import CHECKS, Check
from priocast.pipeline.evidence import gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.verdicts import Verdict, judge
from priocast.trace.schema import BROADCAST, STOPPED

pytestmark = pytest.mark.spark

POLICIES = ("none", "ageing:50us", "flush:5ms")


def single(starvation: str = "none", order: str = "sequencer-ub", credit: int = 1_000_000) -> SampleRun:
    return play(starvation=starvation, batch_max=1, order=order, credit=credit, broadcasts=1 + (credit == 1))


def all_left(run: SampleRun) -> SampleRun:
    """The same run, at whose end all members leave."""
    last = {row.member: row for row in run.rows}
    leavings = [
        row._replace(event=STOPPED, packet="left", sender="", count=0, position=-1, bytes=0)
        for row in last.values()
    ]
    return run.changed(lambda rows: [*rows, *leavings])


GOOD = {
    "plain": play(prioritised=False),
    "prioritised-and-left": all_left(play()),
    "prioritised": play(),
    "ageing": play(starvation="ageing:50us"),
    "flush": play(starvation="flush:5ms"),
    "two-members": play(names=("a", "b"), ticks=8),
    "queues-at-senders": play(credit=3),
    "queues-at-ageing-senders": play(credit=3, starvation="ageing:50us"),
    "named": play(order="sequencer-bb", credit=3),
    "named-and-plain": play(order="sequencer-bb", prioritised=False),
    "ring": play(order="token-ring"),
    "flushing-ring": play(order="token-ring", starvation="flush:5ms"),
    "plain-ring": play(order="token-ring", prioritised=False),
    **living_runs.GOOD,
}
MUTANTS = {
    **{mutate.__name__: mutate(single()) for mutate in ANY_POLICY},
    **{f"priority_inverted-{policy}": priority_inverted(single(policy)) for policy in POLICIES},
    **{f"sending_inverted-{policy}": sending_inverted(single(policy, credit=1)) for policy in POLICIES},
    **{
        f"{mutate.__name__}-{order}": mutate(single(order=order, credit=1))
        for order in ("sequencer-bb", "token-ring")
        for mutate in (delivery_swapped_in_content, delivery_dropped, sending_inverted)
    },
    "priority_inverted-named": priority_inverted(single(order="sequencer-bb")),
    "ordered_out_of_nowhere-named": ordered_out_of_nowhere(single(order="sequencer-bb")),
    "fifo_stepped_back-before-all-left": fifo_stepped_back(all_left(single())),
    "never_ordered": never_ordered(single()),
    "never_sent": never_sent(single(credit=1)),
    **{mutate.__name__: mutate() for mutate in (*mutants_of_views.MUTANTS, *mutants_of_orders.MUTANTS)},
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
    "fifo_stepped_back-before-all-left": {"Priority"},
    **{mutate.__name__: broken for mutate, broken in mutants_of_views.ALSO_BROKEN.items()},
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_breaks_nothing_else(verdicts: dict[tuple[str, str], Verdict], name: str) -> None:
    run = name.replace(":", "-")
    broken = {verdict.property for (of, _), verdict in verdicts.items() if of == run and not verdict.holds}
    assert broken == {MUTANTS[name].named.property} | ALSO_BROKEN.get(name, set())


def test_plain_run_promises_no_priorities(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run: verdicts[run, "Priority"].promised for run in GOOD}
    assert promised == {run: "plain" not in run for run in GOOD}


def test_every_entry_into_a_queue_is_examined(verdicts: dict[tuple[str, str], Verdict]) -> None:
    """A sequencer's messages pass two queues, those of a ring one; in a plain group none is judged."""
    for run, queues in (("queues-at-senders", 2), ("named", 2), ("ring", 1), ("plain-ring", 0)):
        broadcasts = sum(row.count for row in GOOD[run].rows if row.event == BROADCAST)
        assert verdicts[run, "Priority"].examined == queues * broadcasts


def test_uniformity_is_promised_where_something_is_safe(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run for run in GOOD if verdicts[run, "Uniformity"].promised}
    assert promised == {name for name in GOOD if name.startswith(("safe", "all-safe"))}
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
