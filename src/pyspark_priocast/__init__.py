"""Registers the format `priocast` with Spark: it looks for `DefaultSource` in `pyspark_<format>`."""

from priocast.streaming.data_source import PriocastDataSource as DefaultSource

__all__ = ["DefaultSource"]
