"""The nearest less urgent message on each side of a message in an order, whatever the number of urgencies.

A running value for each urgency would be many columns. Urgencies are numbered, and a number has at most two
digits of four bits: the lower ones are those with the same digits before and a lower one here. So the last
message that is less urgent is the latest of a few running values for each digit.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.core.priority import HIGHEST

_DIGIT_BITS = 4
_DIGIT_MAX = 2**_DIGIT_BITS - 1


def with_nearest_lower(rows: DataFrame, key: Sequence[str], urgencies: Sequence[int]) -> DataFrame:
    """The rows with the positions `before` and `after` of the nearest with a lower `urgency`, if any.

    Each `key` has an order of its own, by `position`. All `urgencies` that occur must be given, in order.
    """
    numbers = [0] * (HIGHEST + 1)
    for number, urgency in enumerate(urgencies):
        numbers[urgency] = number
    numbered = rows.withColumn("number_of_urgency", sf.lit(numbers)[sf.col("urgency")])
    forwards = _with_last_lower(numbered, key, len(urgencies), sf.col("position"), "before")
    backwards = _with_last_lower(forwards, key, len(urgencies), -sf.col("position"), "after")
    return backwards.withColumn("after", -sf.col("after")).drop("number_of_urgency")


def _with_last_lower(
    rows: DataFrame, key: Sequence[str], urgencies: int, position: Column, name: str
) -> DataFrame:
    number = sf.col("number_of_urgency")
    found = rows.withColumns({"at": position, name: sf.lit(None).cast("long")})
    shift = 0
    while (urgencies - 1) >> shift:
        digits = {
            "digits_before": sf.shiftright(number, shift + _DIGIT_BITS),
            "digit": sf.shiftright(number, shift).bitwiseAND(_DIGIT_MAX),
        }
        earlier = (
            Window.partitionBy(*key, "digits_before")
            .orderBy("at")
            .rangeBetween(Window.unboundedPreceding, -1)
        )
        highest = min(_DIGIT_MAX, (urgencies - 1) >> shift)
        below = {
            digit: sf.max(sf.when(sf.col("digit") < digit, sf.col("at")))
            .over(earlier)
            .alias(f"below_{digit}")
            for digit in range(1, highest + 1)
        }
        own = [sf.when(sf.col("digit") == digit, sf.col(f"below_{digit}")) for digit in below]
        latest = sf.greatest(name, sf.coalesce(*own, sf.lit(None)))
        walked = found.withColumns(digits).select("*", *below.values())
        found = walked.withColumn(name, latest).select(*found.columns)
        shift += _DIGIT_BITS
    return found.drop("at")
