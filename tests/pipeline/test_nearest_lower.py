"""The nearest less urgent messages are those that a look at all messages finds."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from priocast.pipeline.nearest_lower import with_nearest_lower

pytestmark = pytest.mark.spark

VIEWS, MESSAGES = ("one", "two"), 150
ALL = [0, *range(3, 256, 3)]


@pytest.mark.parametrize("urgencies", [[255], [0, 224], ALL[:16], ALL[:17], ALL])
def test_nearest_on_both_sides(spark: SparkSession, urgencies: list[int]) -> None:
    random = Random(len(urgencies))
    # Several messages may have one position, and positions may be missing.
    rows = {
        (view, random.randrange(MESSAGES), random.choice(urgencies))
        for view in VIEWS
        for _ in range(MESSAGES)
    }
    table = spark.createDataFrame(sorted(rows), "view string, position long, urgency int")
    found = {tuple(row) for row in with_nearest_lower(table, ["view"], urgencies).collect()}
    assert found == {(*row, *nearest(row, rows)) for row in rows}


def nearest(row: tuple[str, int, int], rows: set[tuple[str, int, int]]) -> tuple[int | None, int | None]:
    view, position, urgency = row
    lower = [each[1] for each in rows if each[0] == view and each[2] < urgency]
    before = max((each for each in lower if each < position), default=None)
    return before, min((each for each in lower if each > position), default=None)
