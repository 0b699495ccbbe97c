"""Where there are many priorities, the walk by digits finds the messages that were overtaken wrongly."""

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from pyspark.sql import SparkSession

from priocast.pipeline.checks import priority

pytestmark = pytest.mark.spark

NEVER = 2**63 - 1
SCHEMA = """run string, queue_hash long, view_hash long, is_sent boolean, message string, priority int,
    sort_key long, enter_step long, leave_step long, leave_index long"""
LEVELS = tuple(range(0, 256, 5))
#: Queue by queue: whether sort keys are those of priorities alone, and how often departures are disturbed.
QUEUES = [(constant, disturbed) for constant in (True, False) for disturbed in (0.0, 0.1, 0.5)]
Entry = tuple[Any, ...]


def entries_of(queue: int, constant: bool, disturbed: float) -> Iterator[Entry]:
    """A queue that mostly works by priority: two messages in three steps enter, one leaves."""
    rng = random.Random(queue)
    waiting: list[tuple[int, int, str, int]] = []
    for step in range(120):
        if step % 3:
            level = rng.choice(LEVELS)
            key = -level if constant else step * 10_000_000_000 - level * 3_000_000_000
            waiting.append((key, step, f"{queue}/{step}", level))
        elif waiting:
            count = min(len(waiting), rng.randint(1, 2))
            wrong = rng.random() < disturbed
            gone = rng.sample(waiting, count) if wrong else sorted(waiting)[:count]
            for index, entry in enumerate(gone):
                waiting.remove(entry)
                yield _row(queue, entry, step, index)
    for entry in waiting:
        yield _row(queue, entry, NEVER, None)


def _row(queue: int, entry: tuple[int, int, str, int], leave: int, index: int | None) -> Entry:
    key, step, message, level = entry
    return ("run", queue, queue, False, message, level, key, step, leave, index)


def overtaken_wrongly(entries: list[Entry]) -> set[str]:
    """Pair by pair: l left while h waited, before h, with a higher sort key."""
    found = set()
    for _, of_queue in groupby(entries, key=lambda entry: entry[1]):
        rows = list(of_queue)
        for message, _, key, enter, leave, index in (row[4:] for row in rows):
            for other_key, _, other_leave, other_index in (row[6:] for row in rows):
                first = (other_leave, other_index or 0) < (leave, index or 0)
                if other_key > key and enter < other_leave < NEVER and first:
                    found.add(message)
    return found


def test_the_walk_by_digits_finds_what_pairs_find(spark: SparkSession) -> None:
    rows = [
        entry
        for queue, (constant, wrong) in enumerate(QUEUES)
        for entry in entries_of(queue, constant, wrong)
    ]
    entries = spark.createDataFrame(rows, SCHEMA)
    named = priority.name_overtaker(priority.find_overtaken(entries, LEVELS), entries).collect()
    expected = overtaken_wrongly(rows)
    assert {row["message"] for row in named} == expected
    assert len(named) == len(expected) > 10
    key_of = {row[4]: row[6] for row in rows}
    assert all(key_of[row["by"]["message"]] > key_of[row["message"]] for row in named)
