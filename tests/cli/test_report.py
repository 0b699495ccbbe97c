"""`priocast report` writes an HTML page and prints its path."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pipeline.mutants import delivery_dropped
from pipeline.sample_runs import play
from priocast.cli import report
from priocast.core.errors import InvalidOption, UnreadableTrace

app = typer.Typer(rich_markup_mode="rich")
app.command(epilog=report.EXAMPLES)(report.report)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "150", "NO_COLOR": "1"})


@pytest.mark.spark
def test_page_is_written_and_its_path_is_printed(tmp_path: Path) -> None:
    play(ticks=5).write(tmp_path / "runs")
    out = tmp_path / "page.html"
    figures = tmp_path / "figures"
    result = invoke(str(tmp_path / "runs"), "--out", str(out), "--figures", str(figures))
    assert result.exit_code == 0
    assert "Report: " in result.stdout
    assert "All 6 promises were kept." in out.read_text()
    assert {path.name for path in figures.glob("*.png")} == {
        "delivery-times.png",
        "p99.png",
        "queue-depth.png",
        "throughput.png",
    }
    assert len(list(figures.glob("*.svg"))) == 4


@pytest.mark.spark
def test_violation_exits_with_1_and_the_page_is_written(tmp_path: Path) -> None:
    delivery_dropped(play(batch_max=1)).run.write(tmp_path / "runs")
    out = tmp_path / "page.html"
    result = invoke(str(tmp_path / "runs"), "--out", str(out))
    assert result.exit_code == 1
    assert "broken 1 times" in out.read_text()


def test_no_page_is_written_for_invalid_input(tmp_path: Path) -> None:
    result = invoke(str(tmp_path), "--out", str(tmp_path / "page.html"))
    assert isinstance(result.exception, UnreadableTrace)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_output_is_rejected_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option, path in (("--out", ""), ("--out", "file/page.html"), ("--figures", "file")):
        result = invoke("runs", option, str(tmp_path / path))
        assert isinstance(result.exception, InvalidOption)
        assert str(result.exception).startswith(f"{option}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_help_has_examples() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "priocast report runs/demo" in result.stdout
