"""The pipeline in one call."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import model_runs
from pipeline.sample_runs import play
from priocast.core.errors import UnreadableTrace
from priocast.pipeline import study_runs, verify_runs
from priocast.pipeline.figures.figure_files import write_figures
from priocast.pipeline.results import StudyResult

#: One fixture makes the study: 94 and 361 s on two cores that are shared with thirty busy processes.
pytestmark = pytest.mark.spark


RUNS = {
    "plain": play(prioritised=False, ticks=10),
    "strict": play(ticks=10),
    "silent": play(ticks=0),
    "returned": model_runs.returned(),
    "merged": model_runs.merged(),
}


@pytest.fixture(scope="module")
def progress() -> list[str]:
    """What the study said while it worked."""
    return []


@pytest.fixture(scope="module")
def result(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, progress: list[str]) -> StudyResult:
    """One study of all runs: what it costs hardly depends on how many small runs there are."""
    directory = tmp_path_factory.mktemp("study")
    for name, run in RUNS.items():
        run.named(name).write(directory / "runs")
    return study_runs(
        directory / "runs",
        out_html=directory / "report.html",
        progress=lambda line, _=None: progress.append(line),
    )


def test_study_checks_measures_and_reports(result: StudyResult, progress: list[str]) -> None:
    assert result.broken == ()
    assert result.report is not None
    promised = sum(verdict.promised for verdict in result.verdicts)
    assert f"All {promised} promises were kept." in result.report.read_text()
    assert {time.run for time in result.delivery_times} == RUNS.keys() - {"silent"}
    assert {throughput.run for throughput in result.throughputs} == RUNS.keys()
    depths = {(depth.run, depth.process) for depth in result.queue_depths}
    assert depths > {("plain", "a#1"), ("strict", "a#1")}
    assert sum(of.overtaken for of in result.inversions if of.run == "strict") == 0
    first_views = {(view.run, view.view) for view in result.views}
    assert first_views > {("plain", "1@a#1"), ("strict", "1@a#1"), ("returned", "1@a#1")}
    assert progress[0] == "starting Spark"
    assert "checked Agreement" in progress


def test_study_of_groups_that_changed(result: StudyResult, tmp_path: Path) -> None:
    assert result.report is not None
    page = result.report.read_text()
    assert "a lane for each process" in page
    assert "joined: d#2" in page
    names = {path.name for path in write_figures(result, tmp_path / "figures")}
    assert {"membership.svg", "membership.png"} <= names


def test_run_without_messages_breaks_no_promise(result: StudyResult) -> None:
    of_silent = [verdict for verdict in result.verdicts if verdict.run == "silent"]
    examined = {verdict.examined for verdict in of_silent if verdict.guarantee != "View synchrony"}
    assert examined == {0}
    assert "silent" not in {time.run for time in result.delivery_times}
    assert "silent" not in {of.run for of in result.inversions}


def test_damage_that_only_spark_finds_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    """The footer is intact, the pages are not."""
    segment = next((play(ticks=5).write(tmp_path) / "messages").glob("*.parquet"))
    content = bytearray(segment.read_bytes())
    content[4:400] = bytes(396)
    segment.write_bytes(content)
    with pytest.raises(UnreadableTrace, match=str(tmp_path)) as raised:
        verify_runs(tmp_path)
    assert "\n" not in str(raised.value)
