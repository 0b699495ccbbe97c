"""The pipeline in one call."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import model_runs
from pipeline.mutants import delivery_dropped
from pipeline.sample_runs import play
from priocast.core.errors import UnreadableTrace
from priocast.pipeline import study_runs, verify_runs
from priocast.pipeline.figures.figure_files import write_figures

pytestmark = pytest.mark.spark


def test_study_checks_measures_and_reports(spark: SparkSession, tmp_path: Path) -> None:
    play(run="plain", prioritised=False, ticks=10).write(tmp_path / "runs")
    play(run="strict", ticks=10).write(tmp_path / "runs")
    lines: list[str] = []
    result = study_runs(tmp_path / "runs", out_html=tmp_path / "report.html", progress=lines.append)
    assert result.broken == ()
    assert result.report == tmp_path / "report.html"
    assert "All 11 promises were kept." in result.report.read_text()
    assert {time.run for time in result.delivery_times} == {"plain", "strict"}
    assert [throughput.run for throughput in result.throughputs] == ["plain", "strict"]
    assert [depth.process for depth in result.queue_depths] == ["a#1", "a#1"]
    assert sum(of.overtaken for of in result.inversions if of.run == "strict") == 0
    assert [(view.run, view.view) for view in result.views] == [("plain", "1@a#1"), ("strict", "1@a#1")]
    assert lines[0] == "starting Spark"
    assert "checked Agreement" in lines


def test_study_of_a_group_that_changed(spark: SparkSession, tmp_path: Path) -> None:
    model_runs.returned().named("returned").write(tmp_path / "runs")
    model_runs.merged().named("merged").write(tmp_path / "runs")
    result = study_runs(tmp_path / "runs", out_html=tmp_path / "report.html")
    assert result.broken == ()
    page = (tmp_path / "report.html").read_text()
    assert "a lane for each process" in page
    assert "joined: d#2" in page
    names = {path.name for path in write_figures(result, tmp_path / "figures")}
    assert {"membership.svg", "membership.png"} <= names


def test_run_without_messages_breaks_no_promise(spark: SparkSession, tmp_path: Path) -> None:
    play(ticks=0).write(tmp_path / "runs")
    result = study_runs(tmp_path / "runs", out_html=tmp_path / "report.html")
    assert result.broken == ()
    assert {verdict.examined for verdict in result.verdicts if verdict.guarantee != "View synchrony"} == {0}
    assert result.delivery_times == ()
    assert result.inversions == ()


def test_broken_promise_is_in_the_result(spark: SparkSession, tmp_path: Path) -> None:
    delivery_dropped(play(batch_max=1)).run.write(tmp_path)
    verification = verify_runs(tmp_path, examples_max=1)
    assert [verdict.guarantee for verdict in verification.broken] == ["Agreement"]


def test_damage_that_only_spark_finds_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    """The footer is intact, the pages are not."""
    segment = next((play(ticks=5).write(tmp_path) / "messages").glob("*.parquet"))
    content = bytearray(segment.read_bytes())
    content[4:400] = bytes(396)
    segment.write_bytes(content)
    with pytest.raises(UnreadableTrace, match=str(tmp_path)) as raised:
        verify_runs(tmp_path)
    assert "\n" not in str(raised.value)
