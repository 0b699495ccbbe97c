"""Px4 to Px7: what is delivered was sent, to whom, whether what is sent is delivered, and when."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from priocast.pipeline.checks.service_violations import of_deliveries, of_messages
from priocast.pipeline.service_tables import ServiceTables, name_of


def non_triviality(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px4: deliveries of what was not sent like this, and of units that are not the next."""
    of_message = Window.partitionBy("run", "process", "message").orderBy("step")
    expected = sf.row_number().over(of_message) - 1
    changed = (sf.col("delivered_quality") != sf.col("quality")) | (
        sf.col("delivered_priority") != sf.col("priority")
    )
    reason = (
        sf.when(sf.col("sender").isNull(), "which was not sent")
        .when(changed, "with another quality or priority")
        .when(
            (sf.col("unit") != expected) | (sf.col("unit") >= sf.col("units")), "with a unit that is not next"
        )
    )
    is_meant = is_judged | sf.col("sender").isNull()
    return of_deliveries(tables.deliveries.withColumn("reason", reason).where(is_meant))


def accessibility(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px5: deliveries by others than recipients, of what was rejected, and repeated ones."""
    of_unit = Window.partitionBy("run", "process", "message", "unit").orderBy("step")
    reason = (
        sf.when(sf.row_number().over(of_unit) > 1, "again")
        .when(~sf.array_contains("recipients", sf.col("process")), "which is for others")
        .when(sf.array_contains("rejected", name_of(sf.col("process"))), "which it rejected")
    )
    return of_deliveries(tables.deliveries.where(is_judged).withColumn("reason", reason))


def delivery(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px6: messages of correct senders without a receipt, or that were answered and not delivered."""
    answered = sf.filter("due", lambda process: sf.array_contains("answered", name_of(process)))
    lacking = sf.array_sort(sf.array_except(answered, "holders"))
    found = tables.messages.where(is_judged & sf.array_contains("correct", sf.col("sender"))).withColumn(
        "members", sf.when(~sf.col("finished"), sf.array("sender")).when(sf.col("accepted"), lacking)
    )
    text = sf.when(~sf.col("finished"), "the sender gets no receipt").otherwise("answered and not delivered")
    return of_messages(found, text)


def tightness(tables: ServiceTables, is_judged: Column) -> DataFrame:
    """Px7: messages that were not delivered at the same time everywhere, or too late."""
    spread = sf.col("last_ns") - sf.col("first_ns")
    bound = (sf.col("within_ms") * 1_000_000).cast("long") + 2 * sf.col("precision_ns")
    is_late = sf.coalesce(sf.col("last_ns") - sf.col("time_ns") > bound, sf.lit(False))
    found = tables.messages.where(
        is_judged & sf.col("one_clock") & ((spread > sf.col("precision_ns")) | is_late)
    ).withColumn("members", sf.array_sort("holders"))
    return of_messages(found, sf.format_string("delivered within %d ns of each other", spread))
