"""The format `priocast` of Spark: positions are offsets, rows are messages, each once and in order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from priocast.core.errors import InvalidInput, InvalidOption, PriocastError
from priocast.core.identity import ProcessId
from priocast.feed.feed_log import FeedLog
from priocast.log.disk_directory import DiskDirectory
from priocast.log.entries import MessageEntry
from priocast.streaming.options import sink_options, source_options
from priocast.streaming.sink import check_columns, client_of
from streaming.feeding_group import GROUP, FeedingGroup

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FeedingGroup]:
    with FeedingGroup(tmp_path_factory.mktemp("feeds")) as group:
        group.broadcast(0, 100)
        yield group


def append_once(directory: Path) -> object:
    """A sink that writes each batch to a file of its own: to write it again changes nothing."""

    def write(batch: DataFrame, number: int) -> None:
        rows = batch.select("position", "payload").collect()
        lines = "".join(f"{row['position']} {bytes(row['payload']).decode()}\n" for row in rows)
        (directory / f"{number:06}").write_text(lines)

    return write


def written(directory: Path) -> list[tuple[int, int]]:
    lines = [line.split() for path in sorted(directory.iterdir()) for line in path.read_text().splitlines()]
    return [(int(position), int(number)) for position, number in lines]


def test_a_batch_query_reads_what_there_is(spark: SparkSession, group: FeedingGroup) -> None:
    found = spark.read.format("priocast").options(**group.source, start="10", end="90").load()
    rows = found.collect()
    assert [row["position"] for row in rows] == list(range(10, 90))
    assert [bytes(row["payload"]) for row in rows] == group.payloads()[10:90]
    assert {(row["sender"], row["priority"]) for row in rows} == {("a", 96)}


def test_the_directory_of_a_feed_is_read_without_the_feed(spark: SparkSession, group: FeedingGroup) -> None:
    directory = group.directory / "b"
    found = spark.read.format("priocast").options(group=GROUP, directory=str(directory)).load()
    assert found.where("position < 100").count() == 100


def test_a_query_goes_on_where_it_stopped(spark: SparkSession, group: FeedingGroup, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for first in (100, 150):
        stream = spark.readStream.format("priocast").options(**group.source, max_messages_per_batch="40")
        query = (
            stream.load()
            .writeStream.foreachBatch(append_once(out))  # type: ignore[arg-type]
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        end = group.feeds[0].range[1]
        assert [position for position, _ in written(out)] == list(range(end))
        group.broadcast(first, first + 50)
    sizes = [len(path.read_text().splitlines()) for path in sorted(out.iterdir())]
    assert max(sizes) == 40
    assert [number for _, number in written(out)] == [
        int(payload) for payload in group.payloads()[: len(written(out))]
    ]


def test_a_batch_that_is_repeated_is_broadcast_once(
    spark: SparkSession, group: FeedingGroup, tmp_path: Path
) -> None:
    """The commit of a batch is taken back, as if the driver had been killed just before it."""
    rows = tmp_path / "rows"
    spark.range(40).selectExpr(
        "concat('row ', id) payload", "cast(id % 4 * 50 as int) priority"
    ).write.parquet(str(rows))

    def run_query() -> None:
        stream = spark.readStream.schema("payload string, priority int").parquet(str(rows))
        query = (
            stream.writeStream.format("priocast")
            .options(**group.sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run_query()
    (commit,) = [path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name == "0"]
    commit.unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink()
    run_query()
    assert commit.exists()
    found = [payload.decode() for payload in group.payloads() if payload.startswith(b"row ")]
    assert sorted(found) == sorted(f"row {number}" for number in range(40))


def test_rows_of_a_batch_job_are_broadcast(spark: SparkSession, group: FeedingGroup) -> None:
    before = len(group.payloads())
    rows = spark.createDataFrame([("urgent", 255), ("late", 0)], "payload string, priority int")
    rows.coalesce(1).write.format("priocast").options(**group.sink).mode("append").save()
    assert sorted(group.payloads()[before:]) == [b"late", b"urgent"]


def test_an_offset_that_there_never_was_is_named(
    spark: SparkSession, group: FeedingGroup, tmp_path: Path
) -> None:
    stream = spark.readStream.format("priocast").options(**group.source, start="1000000").load()
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException, match="the feeds of group 'tickets' end at"):
        query.awaitTermination()


def feed_of(directory: Path, count: int) -> dict[str, str]:
    """The options of a source that reads the directory of a feed with some messages."""
    kept = FeedLog(DiskDirectory(directory), (GROUP, "a"), b"salt", keep_bytes=1 << 20)
    entries = [MessageEntry(each, 1, ProcessId("a"), 96, each, 96, b"") for each in range(count)]
    kept.append(entries, count)
    kept.close()
    return {"group": GROUP, "directory": str(directory)}


def test_a_range_without_positions_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    some, none = feed_of(tmp_path / "some", 50), feed_of(tmp_path / "none", 0)
    for options in (
        some | {"start": "latest"},
        some | {"start": "50"},
        some | {"start": "30", "end": "30"},
        none,
    ):
        assert spark.read.format("priocast").options(**options).load().collect() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"start": "1000"}, "the option start is 1,000, and the feeds of group 'tickets' end at 50"),
        ({"start": "30", "end": "10"}, "the option end is 10, and the range starts after it, at position 30"),
        ({"start": "latest", "end": "10"}, "starts after it, at position 50"),
    ],
)
def test_a_range_outside_of_the_feed_is_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], reason: str
) -> None:
    source = spark.read.format("priocast").options(**feed_of(tmp_path, 50), **options)
    with pytest.raises(PySparkException, match=reason):
        source.load().collect()


def test_an_offset_that_was_trimmed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    kept = FeedLog(DiskDirectory(tmp_path), (GROUP, "a"), b"salt", keep_bytes=1000, segment_bytes=500)
    for position in range(50):
        kept.append([MessageEntry(position, 1, ProcessId("a"), 96, position, 96, bytes(100))], position + 1)
    source = spark.read.format("priocast").options(group=GROUP, directory=str(tmp_path))
    assert source.load().count() == 50 - kept.begin
    with pytest.raises(PySparkException, match=f"the feed begins at {kept.begin}"):
        source.option("start", "0").load().collect()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "give one of the options feeds"),
        ({"feeds": "127.0.0.1:1", "directory": "x", "group": GROUP}, "give one of the options feeds"),
        ({"feeds": "127.0.0.1:1"}, "the option group is missing"),
        ({"feeds": "nowhere", "group": GROUP}, "is not an address"),
        ({"feeds": "127.0.0.1:1", "group": GROUP, "strat": "1"}, "unknown option 'strat'"),
        ({"feeds": "127.0.0.1:1", "group": GROUP, "start": "first"}, "must be a whole number"),
        ({"feeds": "127.0.0.1:1", "group": GROUP, "tls.key": "k"}, "TLS needs all of"),
        ({"feeds": "127.0.0.1:1", "group": GROUP, "tls.revoked": "r"}, "TLS needs all of"),
    ],
)
def test_a_bad_option_of_a_source_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(PriocastError, match=reason):
        source_options(options)


def test_a_feed_that_does_not_answer_is_named(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="no feed of group 'tickets' answers"):
        spark.read.format("priocast").options(group=GROUP, feeds="127.0.0.1:1").load().collect()


def test_rows_without_a_payload_are_rejected_before_anything_is_sent() -> None:
    sink = sink_options({"group": GROUP, "peers": "127.0.0.1:1", "name": "spark"})
    with pytest.raises(InvalidInput, match="need a column 'payload'"):
        check_columns(sink, StructType([StructField("text", StringType())]))
    with pytest.raises(InvalidInput, match="'priority' must hold whole numbers"):
        check_columns(
            sink, StructType([StructField("payload", StringType()), StructField("priority", StringType())])
        )
    check_columns(
        sink, StructType([StructField("payload", StringType()), StructField("priority", IntegerType())])
    )
    with pytest.raises(InvalidOption, match="the option name is missing"):
        sink_options({"group": GROUP, "peers": "127.0.0.1:1"})


def test_a_task_is_the_same_client_whenever_it_is_tried_and_another_one_otherwise() -> None:
    options = {"group": GROUP, "peers": "127.0.0.1:1", "name": "spark"}
    tls = {"tls.certificate": "c", "tls.key": "k", "tls.authority": "a"}
    for sink, partitions in ((sink_options(options), 3), (sink_options(options | tls), 1)):
        tasks = [(q, p, b) for q in ("query", "other") for p in range(partitions) for b in range(3)]
        assert len({client_of(sink, *task) for task in tasks}) == len(tasks)
        assert client_of(sink, "query", 0, 2) == client_of(sink, "query", 0, 2)
    assert client_of(sink, "query", 0, 5).name == "spark"
    with pytest.raises(InvalidInput, match="coalesce"):
        client_of(sink, "query", 1, 0)
