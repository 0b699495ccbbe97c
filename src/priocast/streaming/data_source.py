"""The format `priocast` of Spark: `spark.readStream.format("priocast")`, `df.writeStream.format("priocast")`.

Spark finds it by its name (package `pyspark_priocast`), on the driver and on executors.
"""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from priocast.core.errors import InvalidOption
from priocast.streaming.options import sink_options, source_options
from priocast.streaming.sink import OrderedStreamWriter, OrderedWriter, check_columns
from priocast.streaming.source import SCHEMA, OrderedReader, OrderedStreamReader


class PriocastDataSource(DataSource):
    """Reads the ordered messages of a group from its feeds, and broadcasts rows to it."""

    @classmethod
    def name(cls) -> str:
        return "priocast"

    def schema(self) -> str:
        source_options(self.options)
        return SCHEMA

    def reader(self, schema: StructType) -> OrderedReader:
        return OrderedReader(source_options(self.options))

    def streamReader(self, schema: StructType) -> OrderedStreamReader:  # noqa: N802 (Spark's name)
        return OrderedStreamReader(source_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> OrderedWriter:
        if overwrite:
            raise InvalidOption("what is ordered cannot be replaced: use the mode append")
        sink = sink_options(self.options)
        check_columns(sink, schema)
        return OrderedWriter(sink)

    def streamWriter(self, schema: StructType, overwrite: bool) -> OrderedStreamWriter:  # noqa: N802
        sink = sink_options(self.options)
        check_columns(sink, schema)
        return OrderedStreamWriter(sink)
