"""Whether values increase with their indexes, found in one pass, is what sorting finds."""

import random
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from priocast.pipeline.increasing import not_increasing

pytestmark = pytest.mark.spark

Row = tuple[int, int, int]
ROWS = 200


def rows_of(key: int) -> list[Row]:
    """The rows of a key: an index mostly has a higher value than the one before, and some are missing."""
    rng = random.Random(key)
    indexes = [index for index in range(-3, ROWS) if rng.random() < 0.8]
    values = sorted(rng.sample(range(10 * ROWS), len(indexes)))
    place = rng.randrange(len(indexes) - 1)
    match key % 4:
        case 1:
            values[place], values[place + 1] = values[place + 1], values[place]
        case 2:
            values[place + 1] = values[place]
        case 3:
            indexes.append(indexes[place])
            values.append(values[place])
    rows = [(key, index, value) for index, value in zip(indexes, values, strict=True)]
    rng.shuffle(rows)
    return rows


def is_increasing(rows: list[Row]) -> bool:
    """The same by sorting."""
    ordered = sorted((index, value) for _, index, value in rows)
    return all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(ordered))


def test_the_keys_that_do_not_increase_are_found(spark: SparkSession) -> None:
    by_key = {key: rows_of(key) for key in range(80)}
    rows = spark.createDataFrame(
        [row for of_key in by_key.values() for row in of_key], "key long, place long, value long"
    )
    found = not_increasing(rows, ["key"], sf.col("place"), sf.col("value")).collect()
    expected = {key for key, of_key in by_key.items() if not is_increasing(of_key)}
    assert {row["key"] for row in found} == expected
    assert len(found) == len(expected) == 60


def test_the_keys_that_lack_an_index_are_found(spark: SparkSession) -> None:
    complete = [(1, index, 2 * index) for index in range(ROWS)]
    without = {2: 0, 3: 1, 4: 16, 5: ROWS // 2}
    rows = complete + [
        (key, index, value) for key, gap in without.items() for _, index, value in complete if index != gap
    ]
    table = spark.createDataFrame(rows, "key long, place long, value long")
    found = not_increasing(table, ["key"], sf.col("place"), sf.col("value"), gapless=True).collect()
    assert {row["key"] for row in found} == set(without)
    assert not not_increasing(table, ["key"], sf.col("place"), sf.col("value")).collect()
