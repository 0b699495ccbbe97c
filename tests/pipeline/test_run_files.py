"""Runs on a storage in the network, and files that are missing, damaged or not of the run."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from benchmarks.pipeline_traces import TraceShape, write_run
from pyarrow import parquet
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from pipeline.sample_runs import SampleRun, play
from priocast.cli.main import app
from priocast.core.errors import ForeignTrace, InvalidInput, PriocastError, UnreadableTrace
from priocast.core.identity import ProcessId
from priocast.pipeline import verify_runs
from priocast.pipeline.run_files import expected_rows
from priocast.pipeline.sources import StoredRuns, open_runs, read_batches
from priocast.pipeline.storage_errors import explain_error, storage_errors
from priocast.trace.recorded_run import open_run
from priocast.trace.remote_directory import parse_location
from priocast.trace.run_directory import JOURNALS, write_manifest
from priocast.trace.schema import SCHEMA_VERSION
from priocast.trace.writer import TraceWriter
from support.journals import journal_of
from support.network_storage import NetworkStorage, network_storage

pytestmark = pytest.mark.spark


@pytest.fixture
def storage() -> Iterator[NetworkStorage]:
    with network_storage() as serving:
        yield serving


def record(run: SampleRun, storage: NetworkStorage) -> None:
    """Record a run as members do, at a URL."""
    directory = parse_location(storage.url_to_write(f"runs/{run.manifest.run}"))
    write_manifest(directory, run.manifest)
    for process in sorted({(row.member, row.incarnation) for row in run.rows}):
        writer = TraceWriter(directory, run.manifest.run, ProcessId(*process))
        for row in run.rows:
            if (row.member, row.incarnation) == process:
                writer.emit(row)
        writer.close()


def steps(runs: StoredRuns) -> set[tuple[str, str, int]]:
    return {(row["run"], row["process"], row["step"]) for row in read_batches(runs).collect()}


def test_runs_in_the_network_are_verified_by_executors_without_python(
    spark: SparkSession, storage: NetworkStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [play(run=name, ticks=3) for name in ("one", "two")]
    for run in runs:
        record(run, storage)
    assert not Path("/runs").exists(), "the driver has no such directory"
    found = open_runs(spark, storage.url_to_read("runs"))
    assert [run.location.rpartition("/")[2] for run in found.runs] == ["one", "two"]
    assert steps(found) == {
        (run.manifest.run, f"{row.member}#{row.incarnation}", row.step)
        for run in runs
        for row in run.messages
    }
    assert found.messages.where("clock_offset_ns is null").count() == 0
    explained = CliRunner().invoke(app, ["explain", storage.url_to_read("runs/one"), "--worst"])
    assert explained.exit_code == 0 and "overtook" in explained.stdout
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nonexistent/python")
    with pytest.raises(Exception, match="nonexistent"):
        spark.createDataFrame([(1,)], "number long").collect()
    assert not verify_runs(storage.url_to_read("runs/one")).broken


def test_journals_are_read_from_a_storage_in_the_network(
    spark: SparkSession, storage: NetworkStorage, tmp_path: Path
) -> None:
    run = play(ticks=3)
    directory = run.write(tmp_path)
    (directory / "messages" / "b-1-000000.parquet").unlink()
    journal_of(directory, [row for row in run.rows if row.member == "b"], "b-1")
    for path in directory.rglob("*.*"):
        storage.files[f"runs/{path.relative_to(tmp_path)}"] = path.read_bytes()
    found = open_runs(spark, storage.url_to_read("runs"))
    assert steps(found) == {("sample", f"{row.member}#1", row.step) for row in run.messages}
    assert found.runs[0].events == len(run.rows)


@pytest.mark.parametrize("denied", ["runs", "runs/sample", "runs/sample/messages"])
def test_a_storage_that_denies_is_named(spark: SparkSession, storage: NetworkStorage, denied: str) -> None:
    record(play(ticks=2), storage)
    storage.denied.add(denied)
    with pytest.raises(UnreadableTrace, match=rf"the storage denies access: Permission denied: /{denied}"):
        open_runs(spark, storage.url_to_read("runs"))


def test_a_file_that_is_denied_later_is_named(spark: SparkSession, storage: NetworkStorage) -> None:
    record(play(ticks=2), storage)
    found, url = open_runs(spark, storage.url_to_read("runs")), storage.url_to_read("runs")
    storage.denied.add("runs/sample/messages/a-1-000000.parquet")
    with pytest.raises(UnreadableTrace, match="the storage denies access"), storage_errors(url):
        steps(found)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("webhdfs://127.0.0.1:1/runs", "cannot be reached: .*Connection refused"),
        ("nowhere://host/runs", "no file system for the scheme 'nowhere'"),
        ("s3a://user:secret@bucket/runs", "no file system for .*S3AFileSystem; .*hadoop-aws"),
    ],
)
def test_a_storage_that_cannot_be_read_is_named(spark: SparkSession, url: str, problem: str) -> None:
    with pytest.raises(PriocastError, match=problem) as raised:
        open_runs(spark, url)
    assert "\n" not in str(raised.value) and "secret" not in str(raised.value)


def test_a_location_without_runs_is_named(spark: SparkSession, storage: NetworkStorage) -> None:
    with pytest.raises(UnreadableTrace, match=r"webhdfs://\S+/runs is not a run directory"):
        open_runs(spark, storage.url_to_read("runs"))


def test_a_directory_of_a_table_is_listed_once(spark: SparkSession, storage: NetworkStorage) -> None:
    """Once for each table: however many segments there are, no segment is looked for by itself."""
    for name in ("one", "two", "three"):
        record(play(run=name, ticks=2), storage)
    storage.listed.clear()
    open_runs(spark, storage.url_to_read("runs"))
    tables = [path for path in storage.listed if path.endswith(("messages", "group_events"))]
    assert sorted(tables) == sorted(set(tables))
    assert not [path for path in storage.listed if path.endswith(".parquet")]


class TestMissingAndForeignFiles:
    def test_a_segment_in_the_middle(self, spark: SparkSession, tmp_path: Path) -> None:
        directory = play(ticks=3).write(tmp_path)
        for table in ("messages", "group_events"):
            (directory / table / "b-1-000000.parquet").unlink(missing_ok=True)
        with pytest.raises(UnreadableTrace, match="sample lacks a file: segment b-1-000000, although"):
            open_runs(spark, tmp_path)

    def test_a_segment_without_a_byte(self, spark: SparkSession, tmp_path: Path) -> None:
        segment = play(ticks=3).write(tmp_path) / "messages" / "b-1-000000.parquet"
        segment.write_bytes(b"")
        with pytest.raises(UnreadableTrace, match=r"b-1-000000\.parquet"):
            open_runs(spark, tmp_path)

    def test_a_segment_of_another_version(self, spark: SparkSession, tmp_path: Path) -> None:
        segment = play(ticks=3).write(tmp_path) / "messages" / "b-1-000000.parquet"
        table = parquet.read_table(segment)
        versions = pa.array([SCHEMA_VERSION + 1] * len(table), pa.int32())
        other = table.set_column(table.column_names.index("schema_version"), "schema_version", versions)
        parquet.write_table(other, segment)
        with pytest.raises(ForeignTrace, match=rf"parquet has trace schema version {SCHEMA_VERSION + 1}"):
            open_runs(spark, tmp_path)

    def test_a_segment_of_another_run(self, spark: SparkSession, tmp_path: Path) -> None:
        one, two = (play(run=name, ticks=3).write(tmp_path) for name in ("one", "two"))
        (one / "messages" / "b-1-000000.parquet").replace(two / "messages" / "b-1-000000.parquet")
        with pytest.raises(ForeignTrace, match="is of the run 'one', but is among the files of 'two'"):
            open_runs(spark, tmp_path)

    @pytest.mark.parametrize("clock", ["shared", "virtual"])
    def test_all_files_of_a_member(self, spark: SparkSession, tmp_path: Path, clock: str) -> None:
        run = play(ticks=3)
        run = SampleRun(msgspec.structs.replace(run.manifest, clock=clock), run.rows)
        for path in run.write(tmp_path).rglob("b-1-*.parquet"):
            path.unlink()
        for read in (lambda: open_runs(spark, tmp_path), lambda: open_run(tmp_path)):
            with pytest.raises(
                UnreadableTrace, match="sample lacks the record of b#1, which was in view 1@a#1"
            ):
                read()

    def test_a_member_that_still_writes_only_to_its_journal_is_not_missing(self, tmp_path: Path) -> None:
        directory = play(ticks=3).write(tmp_path)
        for path in directory.rglob("b-1-*.parquet"):
            path.unlink()
        (directory / JOURNALS).mkdir(exist_ok=True)
        with (directory / JOURNALS / "b-1.journal").open("wb") as journal:
            fcntl.flock(journal, fcntl.LOCK_EX)
            assert list(open_run(directory).messages())

    def test_segments_without_a_manifest(self, spark: SparkSession, tmp_path: Path) -> None:
        one, _ = (play(run=name, ticks=3).write(tmp_path) for name in ("one", "two"))
        (one / "manifest.json").unlink()
        with pytest.raises(ForeignTrace, match="belongs to no run"):
            open_runs(spark, tmp_path)


def test_another_error_is_not_one_of_the_storage() -> None:
    assert explain_error("runs", "java.lang.ArithmeticException: / by zero") is None
    assert isinstance(explain_error("runs", 'No FileSystem for scheme "x"'), InvalidInput)


def test_the_size_of_a_trace_is_known_before_spark_starts(tmp_path: Path) -> None:
    """It decides which of Java's compilers is used; the verification reports damaged files, not this."""
    shape = TraceShape(100_000)
    write_run(tmp_path / "large", shape, seed=1)
    segments = list(tmp_path.rglob("*.parquet"))
    rows = sum(parquet.read_metadata(segment).num_rows for segment in segments)
    assert expected_rows(str(tmp_path)) == pytest.approx(rows, rel=0.1)
    largest = max(segments, key=lambda segment: segment.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    assert 0.1 * rows < expected_rows(str(tmp_path)) < rows
