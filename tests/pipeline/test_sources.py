"""Run directories are read completely, or rejected with an error of one line."""

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow import parquet
from pyspark.sql import SparkSession

from pipeline.group_model import GroupModel
from pipeline.sample_runs import SampleRun, play
from priocast.core.errors import ForeignTrace, InvalidInput, InvalidOption, PriocastError, UnreadableTrace
from priocast.core.identity import MessageId, ProcessId
from priocast.pipeline.sources import message_id, messages, open_runs, read_batches
from support.journals import journal_of


def test_runs_below_a_directory_are_found_by_name(tmp_path: Path) -> None:
    for name in ("second", "first"):
        play(run=name, ticks=2).write(tmp_path)
    runs = open_runs(tmp_path)
    assert [run.name for run in runs] == ["first", "second"]
    assert all(run.events == len(play(ticks=2).rows) for run in runs)


@pytest.mark.spark
def test_every_row_is_read_with_its_run(spark: SparkSession, tmp_path: Path) -> None:
    """Spark must not take a path for a pattern, and must find a file whose name it escapes."""
    runs = {name: play(run=name, ticks=3, seed=seed) for seed, name in enumerate(["one", "two"])}
    for run in runs.values():
        run.write(tmp_path / "od d é+%20[x] {y}*")
    batches = read_batches(spark, open_runs(tmp_path / "od d é+%20[x] {y}*"))
    counts = {row["run"]: row["count"] for row in batches.groupBy("run").count().collect()}
    assert counts == {name: len(run.messages) for name, run in runs.items()}


@pytest.mark.spark
@pytest.mark.parametrize("prioritised", [True, False])
def test_batches_are_exploded_into_messages(spark: SparkSession, tmp_path: Path, prioritised: bool) -> None:
    run = play(prioritised=prioritised, ticks=4)
    run.write(tmp_path)
    exploded = messages(read_batches(spark, open_runs(tmp_path))).withColumn("message", message_id())
    columns = ("process", "step", "event", "message", "priority", "position")
    found = sorted(tuple(row[column] for column in columns) for row in exploded.collect())
    assert found == sorted(
        (
            str(ProcessId(row.member, row.incarnation)),
            row.step,
            row.event,
            str(MessageId(ProcessId(row.sender, row.sender_incarnation), row.level, row.first + index)),
            row.priorities[index] if row.priorities else row.level,
            row.position if row.position < 0 else row.position + index,
        )
        for row in run.messages
        for index in range(row.count)
    )


@pytest.mark.spark
@pytest.mark.parametrize(("delivery", "safe"), [("agreed", {True, False}), ("safe", {True})])
def test_all_messages_of_a_run_with_safe_delivery_are_safe(
    spark: SparkSession, tmp_path: Path, delivery: str, safe: set[bool]
) -> None:
    run = GroupModel(safe_share=0.5).work(3).done()
    SampleRun(msgspec.structs.replace(run.manifest, delivery=delivery), run.rows).write(tmp_path)
    batches = read_batches(spark, open_runs(tmp_path)).where("event = 'delivered'")
    assert {row["safe"] for row in batches.collect()} == safe


@pytest.mark.spark
def test_messages_that_only_a_journal_has_are_read(spark: SparkSession, tmp_path: Path) -> None:
    run = play(ticks=3)
    directory = run.write(tmp_path)
    (directory / "messages" / "b-1-000001.parquet").unlink()
    journal_of(directory, [row for row in run.rows if row.member == "b"], "b-1")
    batches = read_batches(spark, open_runs(tmp_path))
    found = {(row["run"], row["process"], row["step"]) for row in batches.collect()}
    assert found == {(run.manifest.run, f"{row.member}#{row.incarnation}", row.step) for row in run.messages}


def test_a_flipped_bit_never_reads_as_other_rows(tmp_path: Path) -> None:
    """Checksums cover the pages; the headers between them either cannot be read then or do not matter."""
    segment = _segment(tmp_path)
    whole, rows = segment.read_bytes(), parquet.read_table(segment)
    rejected = 0
    for position in range(4, len(whole), 101):
        segment.write_bytes(_flipped(whole, position))
        try:
            open_runs(tmp_path)
            assert parquet.read_table(segment).equals(rows)
        except (PriocastError, pa.ArrowException, OSError):
            rejected += 1
    assert rejected > len(whole) // 101 // 2


def test_a_flipped_bit_in_a_page_is_rejected(tmp_path: Path) -> None:
    segment = _segment(tmp_path)
    segment.write_bytes(_flipped(segment.read_bytes(), _place_in_a_page(segment)))
    with pytest.raises(UnreadableTrace, match=r"parquet is damaged .*: .*checksum"):
        open_runs(tmp_path)


@pytest.mark.spark
def test_spark_verifies_the_checksums_of_pages(spark: SparkSession, tmp_path: Path) -> None:
    """A segment may be damaged after it was checked, or read from another disk by another machine."""
    segment = _segment(tmp_path)
    runs = open_runs(tmp_path)
    segment.write_bytes(_flipped(segment.read_bytes(), _place_in_a_page(segment)))
    with pytest.raises(Py4JJavaError, match="CRC"):
        read_batches(spark, runs).collect()


def _segment(directory: Path) -> Path:
    return next((play(ticks=2).write(directory) / "messages").glob("*.parquet"))


def _flipped(whole: bytes, position: int) -> bytes:
    return whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]


def _place_in_a_page(segment: Path) -> int:
    """The last byte of the first column: its data, not a header, in which a flipped bit may do no harm."""
    column = parquet.read_metadata(segment).row_group(0).column(0)
    start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    return int(start + column.total_compressed_size - 1)


def test_missing_manifest_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match="is not a run directory"):
        open_runs(tmp_path)


def test_other_schema_version_is_rejected(tmp_path: Path) -> None:
    path = play(ticks=2).write(tmp_path) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))
    with pytest.raises(ForeignTrace, match="schema version 99"):
        open_runs(tmp_path)


def test_foreign_parquet_is_rejected(tmp_path: Path) -> None:
    directory = play(ticks=2).write(tmp_path)
    parquet.write_table(pa.table({"x": [1, 2]}), directory / "messages" / "stray.parquet")
    with pytest.raises(ForeignTrace, match=r"stray\.parquet"):
        open_runs(tmp_path)


def test_truncated_parquet_is_rejected(tmp_path: Path) -> None:
    segment = next((play(ticks=2).write(tmp_path) / "messages").glob("*.parquet"))
    segment.write_bytes(segment.read_bytes()[:-10])
    with pytest.raises(UnreadableTrace, match="damaged"):
        open_runs(tmp_path)


def test_run_without_rows_is_rejected(tmp_path: Path) -> None:
    directory = play(ticks=2).write(tmp_path)
    for segment in directory.glob("*/*.parquet"):
        segment.unlink()
    with pytest.raises(UnreadableTrace, match="contains no rows"):
        open_runs(tmp_path)


def test_unknown_starvation_policy_is_rejected(tmp_path: Path) -> None:
    path = play(ticks=2).write(tmp_path) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "starvation": "perhaps"}))
    with pytest.raises(InvalidOption, match="perhaps"):
        open_runs(tmp_path)


def test_two_runs_with_one_name_are_rejected(tmp_path: Path) -> None:
    play(ticks=2).write(tmp_path)
    play(ticks=2).write(tmp_path).rename(tmp_path / "copy")
    play(ticks=2).write(tmp_path)
    with pytest.raises(InvalidInput, match="both named run 'sample'"):
        open_runs(tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_path_that_is_no_directory_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PriocastError) as raised:
        open_runs(tmp_path / name)
    assert "\n" not in str(raised.value)
