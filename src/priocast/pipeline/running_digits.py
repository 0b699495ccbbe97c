"""The last row before each row that has a higher number, in one pass whatever the number of numbers.

A running value for each number would be many columns. The numbers that are higher than a given one are, for
each of its digits, those with the same digits before it and a higher one there. So the last row that has a
higher number is the last of a few running values for each digit.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.window import WindowSpec

_DIGIT_BITS = 4
_DIGIT_MAX = 2**_DIGIT_BITS - 1


def with_last_above(
    rows: DataFrame,
    key: Sequence[str],
    before: Callable[[WindowSpec], WindowSpec],
    number: Column,
    number_max: int,
    value: Column,
    name: str,
) -> DataFrame:
    """The rows with a column of this `name`: the greatest value of those before that have a higher number.

    Each `key` has an order of its own, in which `before` gives the frame of what comes earlier. Values
    increase in that order; null: a row does not count. Numbers are from 0 to `number_max`.
    """
    found = rows.withColumn(name, sf.lit(None).cast("long"))
    for shift in range(0, number_max.bit_length(), _DIGIT_BITS):
        digits = {
            "digits_before": sf.shiftright(number, shift + _DIGIT_BITS),
            "digit": sf.shiftright(number, shift).bitwiseAND(_DIGIT_MAX),
        }
        highest = min(_DIGIT_MAX, number_max >> shift)
        earlier = before(Window.partitionBy(*key, "digits_before"))
        running = [
            sf.max(sf.when(sf.col("digit") > digit, value)).over(earlier).alias(f"above_{digit}")
            for digit in range(highest)
        ]
        own = [sf.when(sf.col("digit") == digit, sf.col(f"above_{digit}")) for digit in range(highest)]
        latest = sf.greatest(name, sf.coalesce(*own))
        walked = found.withColumns(digits).select("*", *running)
        found = walked.withColumn(name, latest).select(*found.columns)
    return found
