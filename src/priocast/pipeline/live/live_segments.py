"""The segments of runs that are still being written: a stream of their rows, and their checks."""

import pyarrow
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from priocast.core.errors import InvalidInput
from priocast.pipeline.live.live_rows import COLUMNS, EVENTS
from priocast.pipeline.run_files import (
    FILE,
    OPTIONS,
    as_named,
    as_pattern,
    check_not_empty,
    check_segment,
    directory_of,
    find_manifests,
)
from priocast.pipeline.spark_types import spark_schema
from priocast.pipeline.storage_errors import storage_errors
from priocast.trace.columns import GROUP_EVENTS, MESSAGES, table_schema
from priocast.trace.remote_directory import is_remote, local_path, without_secrets
from priocast.trace.schema import SCHEMA_VERSION, GroupEventRow, MessageRow

_TABLES = (MESSAGES, GROUP_EVENTS)
_VERSION = "schema_version"
_RECORDED_RUN = "recorded_run"
_SEGMENT = ("file", _RECORDED_RUN, _VERSION)


class LiveSegments:
    """The segments at a path or URL, at which there need not be any yet.

    Raises if a run there is not of this schema.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._location = location
        with storage_errors(location):
            self._manifests = find_manifests(spark, location)

    def rows(self) -> DataFrame:
        """The rows of all segments as they are written: a streaming DataFrame with a column `run`."""
        fields = {field.name: field for field in (*table_schema(GroupEventRow), *table_schema(MessageRow))}
        columns = spark_schema(pyarrow.schema([fields[name] for name in (*COLUMNS, "run", _VERSION)]))
        parts = sf.split(FILE, "/")
        table, run = sf.element_at(parts, -2), sf.element_at(parts, -3)
        is_foreign = sf.coalesce(sf.col(_VERSION) != SCHEMA_VERSION, sf.lit(True))
        return (
            self._open(columns)
            .where(table.isin(*_TABLES) & (sf.col("event").isin(*EVENTS) | is_foreign))
            .select(
                *COLUMNS,
                run.alias("run"),
                sf.col(FILE).alias("file"),
                sf.col("run").alias(_RECORDED_RUN),
                _VERSION,
            )
        )

    def take(self, batch: DataFrame) -> list[dict[str, object]]:
        """The rows of a step, without what is the same in all rows of a segment, which is checked."""
        with storage_errors(self._location):
            rows = batch.toArrow()
            for fact in rows.group_by(list(_SEGMENT)).aggregate([]).to_pylist():
                self._check(as_named(fact["file"]), fact[_RECORDED_RUN], fact[_VERSION])
        taken: list[dict[str, object]] = rows.drop_columns(list(_SEGMENT)).to_pylist()
        return taken

    def check_all(self) -> None:
        """Raise if a segment is empty."""
        with storage_errors(self._location):
            check_not_empty(self._spark, self._location)

    def _check(self, file: str, run: str | None, schema_version: int | None) -> None:
        if directory_of(file) not in self._manifests:
            self._manifests = find_manifests(self._spark, self._location)
        check_segment(file, run, schema_version, self._manifests)

    def _open(self, columns: StructType) -> DataFrame:
        reader = self._spark.readStream.schema(columns).options(**OPTIONS)
        try:
            with storage_errors(self._location):
                return reader.option("recursiveFileLookup", "true").parquet(as_pattern(self._location)[0])
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                raise _not_a_directory(self._location) from error
            raise


def check_directory(location: str) -> None:
    """Raise if a location on this machine is not a directory: starting Spark takes seconds."""
    if not is_remote(location) and not local_path(location).is_dir():
        raise _not_a_directory(location)


def _not_a_directory(location: str) -> InvalidInput:
    return InvalidInput(
        f"{without_secrets(location)} is not a directory: give the one that members write their traces to"
    )
