"""The nearest less urgent message on each side of a message in an order."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.window import WindowSpec

from priocast.core.priority import HIGHEST
from priocast.pipeline.running_digits import with_last_above


def with_nearest_lower(rows: DataFrame, key: Sequence[str], urgencies: Sequence[int]) -> DataFrame:
    """The rows with the positions `before` and `after` of the nearest with a lower `urgency`, if any.

    Each `key` has an order of its own, by `position`. All `urgencies` that occur must be given, in order.
    """
    numbers = [0] * (HIGHEST + 1)
    for number, urgency in enumerate(reversed(urgencies)):
        numbers[urgency] = number  # a higher one is less urgent
    number_of = sf.lit(numbers)[sf.col("urgency")]

    def with_last(found: DataFrame, position: Column, name: str) -> DataFrame:
        def before(spec: WindowSpec) -> WindowSpec:
            return spec.orderBy(position).rangeBetween(Window.unboundedPreceding, -1)

        return with_last_above(found, key, before, number_of, len(urgencies) - 1, position, name)

    forwards = with_last(rows, sf.col("position"), "before")
    return with_last(forwards, -sf.col("position"), "after").withColumn("after", -sf.col("after"))
