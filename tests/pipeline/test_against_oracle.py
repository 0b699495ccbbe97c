"""The Spark checks find exactly what the plain oracle finds, in many runs damaged at random, in one go."""

import random
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from pipeline.oracle import Place, expected_places
from pipeline.sample_runs import SampleRun, play
from priocast.pipeline.evidence import gather
from priocast.pipeline.sources import open_runs
from priocast.pipeline.verdicts import Verdict, Violation, judge
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, Row

pytestmark = pytest.mark.spark

Change = Callable[[list[Row]], list[Row]]

SEEDS = range(60)
POLICIES = ("none", "ageing:5us", "ageing:50us", "flush:2ms")


def damaged(seed: int) -> SampleRun:
    dice = random.Random(seed)
    run = play(
        run=f"seed-{seed}",
        starvation=POLICIES[seed % len(POLICIES)],
        ticks=5,
        names=("a", "b", "c"),
        seed=seed,
        batch_max=dice.choice((1, 3)),
    )
    for _ in range(dice.randint(1, 3)):
        run = run.changed(dice.choice(DAMAGES)(dice))
    return run


def drop(dice: random.Random) -> Change:
    def change(rows: list[Row]) -> list[Row]:
        kinds = (BROADCAST, DELIVERED, DELIVERED, RECEIVED, SENT)
        kind = dice.choice(kinds)
        del rows[dice.choice([place for place, row in enumerate(rows) if row.event == kind])]
        return rows

    return change


def repeat(dice: random.Random) -> Change:
    def change(rows: list[Row]) -> list[Row]:
        row = dice.choice([row for row in rows if row.event == DELIVERED])
        rows.insert(dice.randrange(rows.index(row), len(rows)), row)
        return rows

    return change


def exchange(dice: random.Random) -> Change:
    """Two rows of one kind at one member change places in time."""

    def change(rows: list[Row]) -> list[Row]:
        kind = dice.choice((DELIVERED, SENT, RECEIVED))
        member = dice.choice("abc") if kind == DELIVERED else "a"
        places = [place for place, row in enumerate(rows) if row.event == kind and row.member == member]
        one, other = dice.sample(places, 2)
        rows[one], rows[other] = rows[other], rows[one]
        return rows

    return change


def shuffle_departures(dice: random.Random) -> Change:
    """The orderer lets messages out in any order at all, which also breaks the order within a level."""

    def change(rows: list[Row]) -> list[Row]:
        places = [place for place, row in enumerate(rows) if row.event == SENT and row.position >= 0]
        shuffled = [rows[place] for place in places]
        dice.shuffle(shuffled)
        for place, row in zip(places, shuffled, strict=True):
            rows[place] = row
        return rows

    return change


def misplace(dice: random.Random) -> Change:
    def change(rows: list[Row]) -> list[Row]:
        place = dice.choice([place for place, row in enumerate(rows) if row.event == DELIVERED])
        wrong = max(0, rows[place].position + dice.choice((-2, -1, 1, 2, 40)))
        rows[place] = rows[place]._replace(position=wrong)
        return rows

    return change


def lose(dice: random.Random) -> Change:
    """Nobody delivers the batches that a message is in."""

    def change(rows: list[Row]) -> list[Row]:
        lost = dice.choice([row for row in rows if row.event == DELIVERED])

        def holds_it(row: Row) -> bool:
            one_stream = (row.event, row.sender, row.level) == (DELIVERED, lost.sender, lost.level)
            return one_stream and row.first <= lost.first < row.first + row.count

        return [row for row in rows if not holds_it(row)]

    return change


DAMAGES = (drop, repeat, exchange, shuffle_departures, misplace, lose)
RUNS = {f"seed-{seed}": damaged(seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Verdict]]:
    directory = tmp_path_factory.mktemp("damaged")
    for run in RUNS.values():
        run.write(directory)
    found: dict[str, list[Verdict]] = {name: [] for name in RUNS}
    with gather(spark, open_runs(directory)) as evidence:
        for verdict in judge(evidence, examples_max=10_000):
            found[verdict.run].append(verdict)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_finds_what_the_oracle_finds(verdicts: dict[str, list[Verdict]], name: str) -> None:
    expected = {of: sorted(places, key=repr) for of, places in expected_places(RUNS[name]).items()}
    found = {verdict.property: sorted(map(_place, verdict.examples), key=repr) for verdict in verdicts[name]}
    found["Priority"] = sorted(map(_without_culprit, found["Priority"]), key=repr)
    assert found == expected


def test_the_damages_break_every_property(verdicts: dict[str, list[Verdict]]) -> None:
    broken = {verdict.property for of_run in verdicts.values() for verdict in of_run if not verdict.holds}
    assert len(broken) == 5


def _place(violation: Violation) -> Place:
    return Place(violation.position, violation.messages, violation.members)


def _without_culprit(place: Place) -> Place:
    """Who was wronged; by which of several, the oracle leaves open."""
    return place if len(place.messages) == 1 else Place(None, place.messages[:1], place.members)
