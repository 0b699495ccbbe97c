"""Run directories are read completely, or rejected with an error of one line."""

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipeline.group_model import GroupModel
from pipeline.sample_runs import SampleRun, play
from priocast.core.errors import ForeignTrace, InvalidInput, InvalidOption, PriocastError, UnreadableTrace
from priocast.core.identity import MessageId, ProcessId
from priocast.pipeline.run_files import OPTIONS
from priocast.pipeline.sources import message_id, messages, open_runs, read_batches
from priocast.pipeline.storage_errors import storage_errors
from support.journals import journal_of

pytestmark = pytest.mark.spark


def test_runs_below_a_directory_are_found_by_name(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("second", "first"):
        play(run=name, ticks=2).write(tmp_path)
    runs = open_runs(spark, tmp_path).runs
    assert [run.name for run in runs] == ["first", "second"]
    assert all(run.events == len(play(ticks=2).rows) for run in runs)


def test_every_row_is_read_with_its_run(spark: SparkSession, tmp_path: Path) -> None:
    """Spark must not take a path for a pattern, and must find a file whose name it escapes."""
    runs = {name: play(run=name, ticks=3, seed=seed) for seed, name in enumerate(["one", "two"])}
    for run in runs.values():
        run.write(tmp_path / "od d é+%20[x] {y}*")
    batches = read_batches(open_runs(spark, tmp_path / "od d é+%20[x] {y}*"))
    counts = {row["run"]: row["count"] for row in batches.groupBy("run").count().collect()}
    assert counts == {name: len(run.messages) for name, run in runs.items()}


@pytest.mark.parametrize("prioritised", [True, False])
def test_batches_are_exploded_into_messages(spark: SparkSession, tmp_path: Path, prioritised: bool) -> None:
    run = play(prioritised=prioritised, ticks=4)
    run.write(tmp_path)
    exploded = messages(read_batches(open_runs(spark, tmp_path))).withColumn("message", message_id())
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


@pytest.mark.parametrize(("delivery", "safe"), [("agreed", {True, False}), ("safe", {True})])
def test_all_messages_of_a_run_with_safe_delivery_are_safe(
    spark: SparkSession, tmp_path: Path, delivery: str, safe: set[bool]
) -> None:
    run = GroupModel(safe_share=0.5).work(3).done()
    SampleRun(msgspec.structs.replace(run.manifest, delivery=delivery), run.rows).write(tmp_path)
    batches = read_batches(open_runs(spark, tmp_path)).where("event = 'delivered'")
    assert {row["safe"] for row in batches.collect()} == safe


def test_messages_that_only_a_journal_has_are_read(spark: SparkSession, tmp_path: Path) -> None:
    run = play(ticks=3)
    directory = run.write(tmp_path)
    (directory / "messages" / "b-1-000001.parquet").unlink()
    journal_of(directory, [row for row in run.rows if row.member == "b"], "b-1")
    batches = read_batches(open_runs(spark, tmp_path))
    found = {(row["run"], row["process"], row["step"]) for row in batches.collect()}
    assert found == {(run.manifest.run, f"{row.member}#{row.incarnation}", row.step) for row in run.messages}


def test_a_flipped_bit_never_reads_as_other_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Checksums cover the pages; the headers between them either cannot be read then or do not matter.

    One copy of a segment for each flipped bit: of a damaged one, Spark leaves out the rest.
    """
    whole = _segment(tmp_path).read_bytes()
    places = range(4, len(whole), 41)
    (tmp_path / "copies").mkdir()
    for place in places:
        (tmp_path / "copies" / f"{place}.parquet").write_bytes(_flipped(whole, place))
    runs = open_runs(spark, tmp_path / "sample")
    rows = [tuple(row) for row in runs.messages.where("_metadata.file_name = 'a-1-000000.parquet'").collect()]
    reader = spark.read.schema(runs.messages.schema).options(**OPTIONS, ignoreCorruptFiles="true")
    copies = reader.parquet(str(tmp_path / "copies")).select("*", sf.col("_metadata.file_name"))
    found: dict[str, list[tuple[object, ...]]] = {}
    for *row, file in copies.collect():
        found.setdefault(file, []).append(tuple(row))
    assert all(of_copy == rows[: len(of_copy)] for of_copy in found.values())
    whole_ones = sum(len(of_copy) == len(rows) for of_copy in found.values())
    assert 0 < whole_ones < len(places) // 2


def test_a_flipped_bit_in_a_page_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    segment = _segment(tmp_path)
    segment.write_bytes(_flipped(segment.read_bytes(), _place_in_a_page(segment)))
    with (
        pytest.raises(UnreadableTrace, match=r"damaged file: Spark cannot read \S+/a-1-000000\.parquet"),
        storage_errors(str(tmp_path)),
    ):
        read_batches(open_runs(spark, tmp_path)).collect()


def _segment(directory: Path) -> Path:
    return play(ticks=2).write(directory) / "messages" / "a-1-000000.parquet"


def _flipped(whole: bytes, position: int) -> bytes:
    return whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]


def _place_in_a_page(segment: Path) -> int:
    """The last byte of a column: its data, not a header, in which a flipped bit may do no harm."""
    column = parquet.read_metadata(segment).row_group(0).column(1)
    start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    return int(start + column.total_compressed_size - 1)


def test_missing_manifest_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match="is not a run directory"):
        open_runs(spark, tmp_path)


def test_other_schema_version_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    path = play(ticks=2).write(tmp_path) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))
    with pytest.raises(ForeignTrace, match="schema version 99"):
        open_runs(spark, tmp_path)


def test_foreign_parquet_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    directory = play(ticks=2).write(tmp_path)
    parquet.write_table(pa.table({"x": [1, 2]}), directory / "messages" / "stray.parquet")
    with pytest.raises(ForeignTrace, match=r"stray\.parquet"):
        open_runs(spark, tmp_path)


def test_truncated_parquet_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    segment = next((play(ticks=2).write(tmp_path) / "messages").glob("*.parquet"))
    segment.write_bytes(segment.read_bytes()[:-10])
    with pytest.raises(UnreadableTrace, match="damaged"):
        open_runs(spark, tmp_path)


def test_run_without_rows_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    directory = play(ticks=2).write(tmp_path)
    for segment in directory.glob("*/*.parquet"):
        segment.unlink()
    with pytest.raises(UnreadableTrace, match="contains no rows"):
        open_runs(spark, tmp_path)


def test_unknown_starvation_policy_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    path = play(ticks=2).write(tmp_path) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "starvation": "perhaps"}))
    with pytest.raises(InvalidOption, match="perhaps"):
        open_runs(spark, tmp_path)


def test_two_runs_with_one_name_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    play(ticks=2).write(tmp_path)
    play(ticks=2).write(tmp_path).rename(tmp_path / "copy")
    play(ticks=2).write(tmp_path)
    with pytest.raises(InvalidInput, match="both named run 'sample'"):
        open_runs(spark, tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_path_that_is_no_directory_is_rejected(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PriocastError) as raised:
        open_runs(spark, tmp_path / name)
    assert "\n" not in str(raised.value)
