"""Finds the runs at a path or URL, and checks their files, on Spark.

Spark lists and reads all files, so runs may be wherever its Hadoop can read: the driver's disk has no part in
it. All runs together are one table of messages, however many files it has. Each file is opened once here, for
the few values that are the same in all its rows, before anything is concluded from it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow
from pyarrow import compute
from pyarrow.parquet import read_metadata
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from priocast.core.errors import ForeignTrace, UnreadableTrace
from priocast.pipeline.spark_types import spark_schema, without_dictionaries
from priocast.trace.columns import TABLE_NAMES, table_schema
from priocast.trace.journal import SUFFIX
from priocast.trace.remote_directory import is_remote, local_path, without_secrets
from priocast.trace.run_directory import JOURNALS, MANIFEST, find_runs, not_a_run, parse_manifest
from priocast.trace.schema import SCHEMA_VERSION, GroupEventRow, Manifest, MessageRow, ServiceRow, TraceRow
from priocast.trace.stored_rows import unsaved_rows

_GLOB_CHARACTERS = re.compile(r"[\[\]{}*?\\]")
_SEGMENT = re.compile(r"(.+)-(\d+)\.parquet")
_NO_HOST = re.compile(r"^([^:/]+):///")
_SEGMENT_PREFIX = r"([^/]+)-\d+\.parquet$"
FILE = "_metadata.file_path"
_BYTES_PER_ROW = 13  # in the segments of the demo and of an hour of soak
_ROWS_ELSEWHERE = 100_000_000
OPTIONS = {
    "pathGlobFilter": "*.parquet",
    "parquet.page.verify-checksum.enabled": "true",  # else flipped bits read as other rows
}
"""How segments are read."""


class TableFiles(NamedTuple):
    """The rows of a table in the segments of all runs, and the segments as Spark names them."""

    rows: DataFrame
    files: tuple[str, ...]


class StoredJournal(NamedTuple):
    """The journal of a process that was killed, or still runs."""

    directory: str
    prefix: str
    name: str
    content: bytes


class RunFiles:
    """The files of the runs at a location; what is wrong with one is an error that names it.

    `manifests` are the runs by their directory, as Spark names it.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._shown = without_secrets(location)
        self._root, depth = as_pattern(location)
        self.manifests = find_manifests(spark, location)
        if not self.manifests:
            raise not_a_run(self._shown)
        is_run = any(_depth_of(directory) == depth for directory in self.manifests)
        self._below = self._root if is_run else f"{self._root}/*"
        self.tables = {kind: self._open(kind, name) for kind, name in TABLE_NAMES.items()}

    def count_rows(self) -> dict[str, int]:
        """How many rows of messages and services each run has; their files are checked."""
        tables = [self.tables[kind] for kind in (MessageRow, ServiceRow)]
        facts = [fact for table in tables if table.files for fact in _facts(table.rows)]
        self._check_segments(facts, [file for table in tables for file in table.files])
        found: dict[str, int] = defaultdict(int)
        for fact in facts:
            found[directory_of(fact["file"])] += fact["rows"]
        return found

    def has_services(self, directory: str) -> bool:
        """Whether a run has segments of the table `services`."""
        return any(directory_of(file) == directory for file in self.tables[ServiceRow].files)

    def read_group_events(self) -> dict[str, pyarrow.Table]:
        """The rows of the table `group_events`, by directory; their files are checked."""
        table = self.tables[GroupEventRow]
        rows = table.rows.withColumn("file", sf.col(FILE)).toArrow() if table.files else None
        by_file = {} if rows is None else _by_file(rows)
        self._check_segments([_fact(file, of_file) for file, of_file in by_file.items()], table.files)
        of_runs: dict[str, list[pyarrow.Table]] = defaultdict(list)
        for file, of_file in sorted(by_file.items()):
            of_runs[directory_of(file)].append(of_file)
        return {directory: pyarrow.concat_tables(of_run) for directory, of_run in of_runs.items()}

    def read_journals(self) -> dict[str, list[TraceRow]]:
        """The rows of journals that are in no segment, by directory; no segment may be missing otherwise."""
        journals = [
            StoredJournal(directory_of(file), file.rpartition("/")[2].removesuffix(SUFFIX), file, content)
            for file, content in read_whole(self._spark, f"{self._below}/{JOURNALS}/*{SUFFIX}")
        ]
        self._check_numbers({(journal.directory, journal.prefix) for journal in journals})
        saved = self._saved_steps({journal.prefix for journal in journals}) if journals else {}
        found: dict[str, list[TraceRow]] = defaultdict(list)
        for journal in sorted(journals):
            if journal.directory in self.manifests:
                found[journal.directory] += _unsaved(journal, saved)
        return found

    def _open(self, kind: type[TraceRow], name: str) -> TableFiles:
        schema = table_schema(kind)
        try:
            reader = self._spark.read.schema(spark_schema(schema)).options(**OPTIONS)
            rows = reader.parquet(f"{self._below}/{name}")
            _ = rows.schema
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                none = without_dictionaries(schema.empty_table())
                return TableFiles(self._spark.createDataFrame(none, spark_schema(schema)), ())
            raise
        return TableFiles(rows, tuple(sorted(map(as_named, rows.inputFiles()))))

    def _check_segments(self, facts: Iterable[Mapping[str, Any]], files: Iterable[str]) -> None:
        """Raise if a segment is empty, or any of its rows are not of this schema, or of another run."""
        known: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for fact in facts:
            known[fact["file"]].append(fact)
        for file in files:
            if file not in known:
                raise _without_rows(file)
            for fact in known[file]:
                check_segment(file, fact["run"], fact["schema_version"], self.manifests)

    def _check_numbers(self, journalled: Collection[tuple[str, str]]) -> None:
        """Raise if a process lacks a segment before its last one; a journal would have those rows."""
        numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
        for table in self.tables.values():
            for file in table.files:
                if match := _SEGMENT.fullmatch(file.rpartition("/")[2]):
                    numbers[directory_of(file), match[1]].add(int(match[2]))
        for (directory, prefix), found in sorted(numbers.items()):
            missing = sorted(set(range(max(found))) - found)
            if missing and (directory, prefix) not in journalled:
                raise UnreadableTrace(
                    f"{without_secrets(directory)} lacks a file: segment {prefix}-{missing[0]:06}, although "
                    f"there is a later one; copy the whole run"
                )

    def _saved_steps(self, prefixes: Collection[str]) -> dict[tuple[str, str, str], set[int]]:
        """The steps that segments have, by directory, process and table; only of these processes."""
        found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        prefix = sf.regexp_extract(FILE, _SEGMENT_PREFIX, 1)
        for kind, table in self.tables.items():
            if not table.files:
                continue
            rows = table.rows.select("step", prefix.alias("prefix"), sf.col(FILE).alias("file"))
            for file, of_file in _by_file(rows.where(sf.col("prefix").isin(*prefixes)).toArrow()).items():
                key = directory_of(file), of_file["prefix"][0].as_py(), TABLE_NAMES[kind]
                found[key].update(of_file["step"].to_pylist())
        return found


def find_manifests(spark: SparkSession, location: str) -> dict[str, Manifest]:
    """The manifest at a path or URL, or those directly below it, by the directory as Spark names it."""
    root, depth = as_pattern(location)
    found = {
        directory_of(file, up=1): (file, content)
        for file, content in read_whole(spark, f"{root}/{{{MANIFEST},*/{MANIFEST}}}")
    }
    at_root = {directory: each for directory, each in found.items() if _depth_of(directory) == depth}
    return {
        directory: parse_manifest(without_secrets(file), content)
        for directory, (file, content) in sorted((at_root or found).items())
    }


def read_whole(spark: SparkSession, pattern: str) -> list[tuple[str, bytes]]:
    """The names and contents of small files."""
    try:
        files = spark.read.format("binaryFile").load(pattern)
        _ = files.schema  # a session of Spark Connect looks for the files only now
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
    rows = files.select(sf.col(FILE).alias("file"), "content").collect()
    return [(as_named(row["file"]), bytes(row["content"])) for row in rows]


def check_segment(
    file: str, run: str | None, schema_version: int | None, manifests: Mapping[str, Manifest]
) -> None:
    """Raise if rows of a segment are not of this schema, or not of the run that it is among the files of."""
    shown = without_secrets(file)
    if run is None or schema_version is None:
        table = file.rpartition("/")[0].rpartition("/")[2]
        raise ForeignTrace(f"{shown} does not have the columns of the table {table!r} of a Priocast trace")
    if schema_version != SCHEMA_VERSION:
        raise ForeignTrace(
            f"{shown} has trace schema version {schema_version}, and this release reads "
            f"version {SCHEMA_VERSION}: use the release that wrote it, or record the run again"
        )
    manifest = manifests.get(directory_of(file))
    if manifest is None:
        raise ForeignTrace(f"{shown} belongs to no run: there is no {MANIFEST} in its directory")
    if run != manifest.run:
        raise ForeignTrace(f"{shown} is of the run {run!r}, but is among the files of {manifest.run!r}")


def as_pattern(location: str, glob: bool = True) -> tuple[str, int]:
    """A location as Spark takes it, as a pattern or as it is, and how many directories deep it is."""
    if is_remote(location):
        root, depth = location.rstrip("/"), _depth(urlsplit(location).path)
    else:
        path = local_path(location).resolve()
        root, depth = f"file:{path}", _depth(str(path))
    return _GLOB_CHARACTERS.sub(r"\\\g<0>", root) if glob else root, depth


def find_files(spark: SparkSession, location: str) -> list[str]:
    """All files below a location, as Spark names them; none if there is no such location."""
    pattern, _ = as_pattern(location)
    try:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(pattern)
        _ = files.schema
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
    return [row["file"] for row in files.select(sf.col(FILE).alias("file")).collect()]


def check_not_empty(spark: SparkSession, location: str) -> None:
    """Raise if a segment below a location is empty: a stream reads nothing from it, and says nothing."""
    pattern, _ = as_pattern(location)
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.option("pathGlobFilter", OPTIONS["pathGlobFilter"]).load(pattern)
    read = {as_named(row["file"]) for row in files.select(sf.col(FILE).alias("file")).collect()}
    if empty := sorted(set(map(as_named, files.inputFiles())) - read):
        raise _without_rows(empty[0])


def expected_rows(location: str) -> int:
    """About how many rows there are, by the size of the segments; of what is elsewhere, many.

    Raises at once if a directory on this machine has no runs: starting Spark takes seconds.
    """
    if is_remote(location):
        return _ROWS_ELSEWHERE
    runs = find_runs(local_path(location))
    sizes = {path: path.stat().st_size for run in runs for path in run.glob("*/*.parquet")}
    if not sizes:
        return 0
    return int(sum(sizes.values()) / _bytes_per_row(max(sizes, key=sizes.__getitem__)))


def _bytes_per_row(segment: Path) -> float:
    """How well the rows of a segment are compressed: synthetic ones take half as much as real ones."""
    try:
        rows = read_metadata(segment).num_rows
    except (OSError, pyarrow.ArrowInvalid):  # the verification will say what is wrong with it
        rows = 0
    return segment.stat().st_size / rows if rows else _BYTES_PER_ROW


def directory_of(file: str, up: int = 2) -> str:
    """The directory of the run that a file belongs to."""
    return file.rsplit("/", up)[0]


def _facts(rows: DataFrame) -> list[dict[str, Any]]:
    """What should be the same in all rows of a segment, and how many rows have it."""
    columns = (sf.col(FILE).alias("file"), "run", "schema_version")
    of_file = rows.groupBy(*columns).agg(sf.count(sf.lit(1)).alias("rows"))
    return [row | {"file": as_named(row["file"])} for row in of_file.toArrow().to_pylist()]


def _fact(file: str, rows: pyarrow.Table) -> dict[str, Any]:
    return {"file": file} | {name: rows[name][0].as_py() for name in ("run", "schema_version")}


def _without_rows(file: str) -> UnreadableTrace:
    return UnreadableTrace(f"{without_secrets(file)} is damaged: it has no rows")


def _by_file(rows: pyarrow.Table) -> dict[str, pyarrow.Table]:
    """Rows by the file that they are in."""
    files = rows["file"].unique().to_pylist()
    return {as_named(file): rows.filter(compute.equal(rows["file"], file)) for file in files}


def as_named(file: str) -> str:
    """A file as we name it: Spark writes an empty host in two ways."""
    return _NO_HOST.sub(r"\1:/", file)


def _unsaved(journal: StoredJournal, saved: Mapping[tuple[str, str, str], set[int]]) -> list[TraceRow]:
    """The rows of a journal that are in no segment."""
    steps: dict[type[TraceRow], set[int]] = {
        kind: saved.get((journal.directory, journal.prefix, name), set())
        for kind, name in TABLE_NAMES.items()
    }
    return unsaved_rows(BytesIO(journal.content), without_secrets(journal.name), journal.prefix, steps)


def _depth(path: str) -> int:
    return len([part for part in Path(path).parts if part != "/"])


def _depth_of(directory: str) -> int:
    return _depth(urlsplit(directory).path)
