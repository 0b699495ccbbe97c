"""Tables by name, and their export: what is written is what was recorded, and nothing else is replaced."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from pipeline.sample_runs import play
from priocast import pipeline
from priocast.cli.main import app
from priocast.core.errors import InvalidOption, PriocastError
from priocast.pipeline.storage_errors import copy_errors
from priocast.pipeline.table_export import export_tables
from priocast.pipeline.trace_frames import FRAMES
from support.network_storage import network_storage

pytestmark = pytest.mark.spark


def test_tables_are_dataframes_by_name(spark: SparkSession, tmp_path: Path) -> None:
    run = play(run="one", ticks=3)
    run.write(tmp_path)
    tables = pipeline.open(tmp_path, spark)
    assert tuple(tables) == tuple(FRAMES)
    assert tables["messages"].count() == len(run.messages)
    assert tables["group_events"].count() == len(run.group_events)
    [row] = tables["runs"].collect()
    assert (row["run"], row["order"], row["members"]) == ("one", run.manifest.order, run.manifest.members)
    delivered = [row for row in run.messages if row.event == "delivered"]
    found = tables["deliveries"].select("process", "position", "message", "time").collect()
    assert {(row["process"], row["position"]) for row in found} == {
        (f"{row.member}#1", row.position + index) for row in delivered for index in range(row.count)
    }
    assert {row["time"] for row in found} == {None}, "a virtual clock has no time of day"
    with pytest.raises(KeyError, match="choose among runs, views, group_events"):
        tables["others"]


def test_an_export_can_be_read_by_other_tools(spark: SparkSession, tmp_path: Path) -> None:
    run = play(run="one", ticks=3)
    run.write(tmp_path / "runs")
    for table_format in ("parquet", "csv"):
        written = export_tables(tmp_path / "runs", tmp_path / "out", table_format)
        assert {each.name: each.rows for each in written}["messages"] == len(run.messages)
    [listed] = (tmp_path / "out" / "contents").glob("part-*")
    rows = [json.loads(line) for line in listed.read_text().splitlines()]
    assert [(row["table"], row["format"]) for row in rows] == [(name, "csv") for name in FRAMES]
    texts = [path.read_text() for path in (tmp_path / "out" / "views").glob("*.csv")]
    assert "a#1,b#1" in "".join(texts) and texts[0].startswith("run,process,view,")


def test_what_is_not_an_export_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    play(ticks=2).write(tmp_path / "runs")
    out = tmp_path / "out"
    for place in (out / "notes.txt", out / "messages" / "part-0.parquet", out / "mine" / "part-0"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("somebody's")
        with pytest.raises(
            InvalidOption, match=f"{place.name} is not a table that Priocast wrote: it is left"
        ):
            export_tables(tmp_path / "runs", out)
        assert [path.read_text() for path in out.rglob("*") if path.is_file()] == ["somebody's"]
        place.unlink()


def test_tables_go_to_a_storage_in_the_network_or_it_says_why_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    play(ticks=2).write(tmp_path / "runs")
    with network_storage() as storage:
        storage.refuses_writes = True
        with pytest.raises(PriocastError, match="/tables: the storage denies access: Permission denied"):
            export_tables(tmp_path / "runs", storage.url_to_read("tables"))
        assert storage.files == {}
        storage.refuses_writes = False
        export_tables(tmp_path / "runs", storage.url_to_read("tables"))
        assert {path.split("/")[1] for path in storage.files} == {*FRAMES, "contents"}


def test_out_is_a_path_and_not_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    for run, ticks, out in (("one", 3, "t1"), ("two", 5, "t[1]")):
        played = play(run=run, ticks=ticks)
        played.write(tmp_path / run)
        written = export_tables(tmp_path / run, tmp_path / out, "csv")
        assert {each.name: each.rows for each in written}["messages"] == len(played.messages)


def test_the_side_that_failed_is_named() -> None:
    denied = "AccessControlException: Permission denied"
    for text, side in ((denied, "target"), (f"[FAILED_READ_FILE.NO_HINT] {denied}", "source")):
        with pytest.raises(PriocastError, match=f"^{side}: the storage"), copy_errors("source", "target"):
            raise PySparkException(text)


@pytest.mark.usefixtures("spark")
def test_the_command_names_what_it_wrote(tmp_path: Path) -> None:
    play(ticks=2).write(tmp_path / "runs")
    arguments = ["tables", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments, env={"NO_COLOR": "1"})
    assert result.exit_code == 0 and "deliveries" in result.stdout
    for wrong in (["--format", "xml"], ["--out", str(tmp_path / "runs" / "sample" / "manifest.json")]):
        assert isinstance(CliRunner().invoke(app, [*arguments, *wrong]).exception, InvalidOption)
