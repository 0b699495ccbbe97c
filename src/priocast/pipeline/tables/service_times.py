"""Execution times of the qualities of service, as the xAMp paper defines them.

The *indication* of a message is its delivery at the last recipient, the *confirmation* the end of its
transmission at the sender. Both are measured from the sending, which compares the clocks of members: only
runs whose members share a clock are measured. *Tightness* is the time between first and last delivery.
"""

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from priocast.core.message_times import MessageTimes
from priocast.pipeline.sources import read_services
from priocast.pipeline.trace_tables import TraceTables
from priocast.trace.schema import DELIVERED, FINISHED, LATE, SENT

_MESSAGE = ("run", "sender", "sender_incarnation", "stream", "number")


class ServiceTime(MessageTimes, frozen=True, kw_only=True):
    """The times of the messages of one quality and size in one run."""

    run: str
    quality: str
    bytes: int


def service_times(trace: TraceTables) -> list[ServiceTime]:
    """The times of each run, quality and size."""
    runs = [run for run in trace.runs if run.has_services and run.has_one_clock]
    if not runs:
        return []
    rows = summarise(measured_messages(read_services(trace.stored, runs)))
    return [_from_row(row) for row in rows.orderBy("run", "quality", "bytes").collect()]


def measured_messages(rows: DataFrame) -> DataFrame:
    """One row for each message: when it was sent, first and last delivered, and finished."""

    def at(event: str) -> Column:
        return sf.when(sf.col("event") == event, sf.col("time_ns"))

    sent = sf.col("event") == SENT
    return rows.groupBy(*_MESSAGE).agg(
        sf.max(at(SENT)).alias("sent_ns"),
        sf.min(at(DELIVERED)).alias("first_ns"),
        sf.max(at(DELIVERED)).alias("last_ns"),
        sf.max(at(FINISHED)).alias("finished_ns"),
        sf.count(at(DELIVERED)).alias("deliveries"),
        sf.max((sf.col("event") == DELIVERED) & sf.array_contains("reasons", LATE)).alias("is_late"),
        sf.max(sf.when(sent, sf.col("quality"))).alias("quality"),
        sf.max(sf.when(sent, sf.col("bytes"))).alias("bytes"),
        sf.max(sf.when(sent, sf.size("recipients") * sf.col("units"))).alias("expected"),
    )


def summarise(messages: DataFrame) -> DataFrame:
    """Medians and extremes of each run, quality and size."""
    timely = ~sf.col("is_late")
    complete = timely & (sf.col("deliveries") == sf.col("expected"))

    def of_complete(end: str, start: str = "sent_ns") -> Column:
        return sf.when(complete, sf.col(end) - sf.col(start))

    spread = of_complete("last_ns", "first_ns")
    return messages.groupBy("run", "quality", "bytes").agg(
        sf.count(sf.when(complete, 1)).alias("count"),
        sf.count(sf.when(timely & ~complete, 1)).alias("incomplete"),
        sf.count(sf.when(~timely, 1)).alias("late"),
        sf.median(of_complete("last_ns")).alias("indication_ns"),
        sf.median(of_complete("finished_ns")).alias("confirmation_ns"),
        sf.median(spread).alias("spread_ns"),
        sf.max(spread).alias("spread_max_ns"),
        sf.min(sf.when(timely, sf.col("first_ns") - sf.col("sent_ns"))).alias("shortest_ns"),
        sf.max(sf.when(timely, sf.col("last_ns") - sf.col("sent_ns"))).alias("longest_ns"),
    )


def _from_row(row: Row) -> ServiceTime:
    def ms(column: str) -> float:
        return float(row[column] or 0) / 1e6

    return ServiceTime(
        run=row["run"],
        quality=row["quality"],
        bytes=row["bytes"],
        count=row["count"],
        incomplete=row["incomplete"],
        indication_ms=ms("indication_ns"),
        confirmation_ms=ms("confirmation_ns"),
        spread_ms=ms("spread_ns"),
        spread_max_ms=ms("spread_max_ns"),
        shortest_ms=ms("shortest_ns"),
        longest_ms=ms("longest_ns"),
        late=row["late"],
    )
