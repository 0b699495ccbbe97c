"""The Spark checks find exactly what the plain oracle finds, in many runs damaged at random, in one go."""

import os
import random

import pytest
from pyspark.sql import SparkSession

from pipeline.damages import OF_MESSAGES, OF_REORDERED, OF_VIEWS, damaged
from pipeline.oracle import expected_places, orders_differ
from pipeline.random_lives import random_life
from pipeline.reordered_runs import ORDERS, played
from pipeline.sample_runs import SampleRun, play
from pipeline.story import Place
from priocast.pipeline.checks.catalogue import CHECKS
from priocast.pipeline.evidence import gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.verdicts import Verdict, Violation, judge

pytestmark = pytest.mark.spark

SEED_FIRST = int(os.environ.get("PRIOCAST_SEED_FIRST", "0"))
STILL_SEEDS = range(SEED_FIRST, SEED_FIRST + 30)
LIVING_SEEDS = range(SEED_FIRST, SEED_FIRST + 90)
REORDERED_SEEDS = range(SEED_FIRST, SEED_FIRST + 20)
POLICIES = ("none", "ageing:5us", "ageing:50us", "flush:2ms")


def still(seed: int) -> SampleRun:
    """A run of one view, with damages."""
    dice = random.Random(seed)
    run = play(
        starvation=POLICIES[seed % len(POLICIES)],
        ticks=5,
        names=("a", "b", "c"),
        seed=seed,
        batch_max=dice.choice((1, 3)),
        order=dice.choice(("sequencer-ub", "sequencer-bb", "token-ring")),
        credit=dice.choice((2, 1_000_000)),
    )
    return damaged(run, dice, OF_MESSAGES, dice.randint(1, 3))


def living(seed: int) -> SampleRun:
    """A run of several views, mostly with damages."""
    dice = random.Random(seed)
    run = random_life(seed, batch_max=dice.choice((1, 3)))
    return damaged(run, dice, OF_VIEWS, dice.randint(0, 3))


def reordered(seed: int) -> SampleRun:
    """A run of one view in which queues are re-ordered, with damages."""
    dice = random.Random(seed)
    run = played(seed, order=ORDERS[seed % len(ORDERS)], batch_max=dice.choice((1, 3)), moves=60)
    return damaged(run, dice, OF_REORDERED, dice.randint(1, 3))


RUNS = {
    **{f"still-{seed}": still(seed) for seed in STILL_SEEDS},
    **{f"living-{seed}": living(seed) for seed in LIVING_SEEDS},
    **{f"reordered-{seed}": reordered(seed) for seed in REORDERED_SEEDS},
}
EXPECTED = {name: expected_places(run) for name, run in RUNS.items()}


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Verdict]]:
    directory = tmp_path_factory.mktemp("damaged")
    for name, run in RUNS.items():
        run.named(name).write_whole(directory)
    found: dict[str, list[Verdict]] = {name: [] for name in RUNS}
    with gather(spark, open_runs(directory)) as evidence:
        for verdict in judge(evidence, examples_max=10_000):
            found[verdict.run].append(verdict)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_finds_what_the_oracle_finds(verdicts: dict[str, list[Verdict]], name: str) -> None:
    expected = {of: sorted(places, key=repr) for of, places in EXPECTED[name].items()}
    found = {verdict.property: sorted(map(_place, verdict.examples), key=repr) for verdict in verdicts[name]}
    found["Priority"] = sorted(map(_without_culprit, found["Priority"]), key=repr)
    assert found == expected


def test_the_damages_break_every_property(verdicts: dict[str, list[Verdict]]) -> None:
    broken = {verdict.property for of_run in verdicts.values() for verdict in of_run if not verdict.holds}
    assert broken == {check.property for check in CHECKS}


def test_the_damages_wrong_messages_at_those_who_order_and_at_senders() -> None:
    """Of every class that is played, and of runs whose order was changed."""
    wronged_at = {
        (RUNS[name].manifest.order, "a#1" in place.members, "changes" in str(RUNS[name].rows))
        for name, expected in EXPECTED.items()
        for place in expected["Priority"]
        if len(place.members) == 1
    }
    classes = {order for order, _, _ in wronged_at}
    assert classes >= {"sequencer-ub", "sequencer-bb", "token-ring"}
    assert {at_first for _, at_first, _ in wronged_at} == {True, False}
    assert {changed for _, _, changed in wronged_at} == {True, False}


def test_total_order_implies_that_no_two_orders_differ(verdicts: dict[str, list[Verdict]]) -> None:
    holds = {
        verdict.run
        for of_run in verdicts.values()
        for verdict in of_run
        if verdict.property == "Total order" and verdict.holds
    }
    differ = {name for name, run in RUNS.items() if orders_differ(run)}
    assert holds
    assert differ
    assert not holds & differ


def _place(violation: Violation) -> Place:
    return Place(violation.view_name, violation.position, violation.messages, violation.members)


def _without_culprit(place: Place) -> Place:
    """Who was wronged; by which of several, the oracle leaves open."""
    return place if len(place.messages) == 1 else place._replace(position=None, messages=place.messages[:1])
