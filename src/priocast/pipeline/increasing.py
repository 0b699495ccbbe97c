"""Whether values increase with their indexes, found without sorting.

The steps of a process increase with the positions at which it delivers, the positions of a stream with the
numbers of its messages. A window over all of them would sort them all. Here a few neighbouring indexes are
one group of an aggregate, which has a column for the value of each: an aggregate is one pass, and neighbours
are mostly in one file. Only the first and the last value of each group are then sorted.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

_INDEX_BITS = 4
_NEIGHBOURS = 2**_INDEX_BITS


def not_increasing(
    rows: DataFrame, key: Sequence[str], index: Column, value: Column, gapless: bool = False
) -> DataFrame:
    """The keys of which some index has two rows, or a value that is not above that of the index before.

    Indexes may be missing, unless they must be `gapless` from 0 on: then these keys are found, too. Values
    must not be null.
    """
    names = [f"value_{number}" for number in range(_NEIGHBOURS)]
    own = index.bitwiseAND(_NEIGHBOURS - 1)
    groups = rows.groupBy(*key, sf.shiftright(index, _INDEX_BITS).alias("group")).agg(
        sf.count(sf.lit(1)).alias("rows"),
        sf.max(index).alias("index_last"),
        *(sf.max(sf.when(own == number, value)).alias(name) for number, name in enumerate(names)),
    )
    present = reduce(add, (sf.col(name).isNotNull().cast("long") for name in names))
    steps = [
        sf.col(name) > sf.coalesce(*reversed(names[:number])) for number, name in enumerate(names) if number
    ]
    ascending = sf.coalesce(sf.least(*steps), sf.lit(True)) & (sf.col("rows") == present)
    in_order = Window.partitionBy(*key).orderBy("group")
    return (
        groups.select(
            *key,
            "group",
            "rows",
            "index_last",
            ascending.alias("ascending"),
            sf.coalesce(*names).alias("lowest"),
            sf.coalesce(*reversed(names)).alias("highest"),
        )
        .withColumn("before", sf.lag("highest").over(in_order))
        .groupBy(*key)
        .agg(
            sf.bool_and(sf.expr("ascending and coalesce(lowest > before, true)")).alias("ascending"),
            (sf.sum("rows") != sf.max("index_last") + 1).alias("has_gap"),
        )
        .where("not ascending or has_gap" if gapless else "not ascending")
        .select(*key)
    )
