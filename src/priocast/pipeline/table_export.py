"""Writes the tables of recorded runs as Parquet or CSV, to a directory or a URL.

Each table is a directory of files. `contents` lists them. What is there already is replaced only if all of it
is an earlier export.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pyspark.sql import SparkSession

from priocast.core.errors import InvalidOption
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.run_files import as_pattern, expected_rows, find_files
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.storage_errors import copy_errors, storage_errors
from priocast.pipeline.trace_frames import FRAMES, TraceFrames, as_text, open_tables
from priocast.trace.remote_directory import without_secrets

TableFormat = Literal["parquet", "csv"]
CONTENTS = "contents"
_CONTENTS_SCHEMA = "table string, format string, rows long, meaning string"
_OURS = ("part-", "_SUCCESS")


class ExportedTable(NamedTuple):
    """A table that was written."""

    name: str
    rows: int


def export_tables(
    location: str | Path,
    out: str | Path,
    table_format: TableFormat = "parquet",
    master: str = LOCAL,
    progress: Progress = ignore_progress,
) -> list[ExportedTable]:
    """Write every table of the runs at a path or URL to another one."""
    rows = expected_rows(str(location))
    progress("starting Spark", len(FRAMES) + 2)
    with spark_session(master, rows) as spark:
        with storage_errors(str(out)):
            replaces = _check_target(spark, str(out))
        progress("finding the runs")
        with storage_errors(str(location)):
            tables = open_tables(location, spark)
        with copy_errors(str(location), str(out)):
            return list(_write(spark, tables, str(out), table_format, replaces, progress))


def _write(
    spark: SparkSession,
    tables: TraceFrames,
    out: str,
    table_format: TableFormat,
    replaces: bool,
    progress: Progress,
) -> Iterator[ExportedTable]:
    """Write the tables, the small ones first, and then the list of them."""
    target, pattern = as_pattern(out, glob=False)[0], as_pattern(out)[0]
    mode = "overwrite" if replaces else "errorifexists"
    written = []
    for name, frame in tables.items():
        progress(f"writing {name}")
        shown = as_text(frame) if table_format == "csv" else frame
        shown.write.mode(mode).options(header="true").format(table_format).save(f"{target}/{name}")
        reader = spark.read.schema(shown.schema).options(header="true").format(table_format)
        with storage_errors(out):
            written.append(ExportedTable(name, reader.load(f"{pattern}/{name}").count()))
        yield written[-1]
    progress("writing the list of tables")
    contents = [(each.name, table_format, each.rows, FRAMES[each.name]) for each in written]
    listed = small_table(spark, contents, _CONTENTS_SCHEMA).coalesce(1)
    listed.write.mode(mode).json(f"{target}/{CONTENTS}")


def _check_target(spark: SparkSession, out: str) -> bool:
    """Whether an earlier export is there; raises if anything else is."""
    found = find_files(spark, out)
    tables = {file.rsplit("/", 2)[1] for file in found}
    for file in found:
        _, table, name = file.rsplit("/", 2)
        if table not in (*FRAMES, CONTENTS) or not name.startswith(_OURS) or CONTENTS not in tables:
            raise InvalidOption(
                f"{without_secrets(file)} is not a table that Priocast wrote: it is left alone; choose "
                "another --out"
            )
    return bool(found)
