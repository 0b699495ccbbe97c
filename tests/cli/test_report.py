"""`priocast report` writes an HTML page and prints its path."""

import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pipeline.mutants import delivery_dropped
from pipeline.sample_runs import play
from priocast.cli import report
from priocast.cli.option_checks import check_figures, check_replaceable
from priocast.core.errors import InvalidOption, UnreadableTrace
from priocast.operations.output_paths import REPORT

app = typer.Typer(rich_markup_mode="rich")
app.command(epilog=report.EXAMPLES)(report.report)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "150", "NO_COLOR": "1"})


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_page_is_written_and_its_path_is_printed(tmp_path: Path) -> None:
    play(ticks=5).write(tmp_path / "runs")
    out = tmp_path / "page.html"
    figures = tmp_path / "figures"
    result = invoke(str(tmp_path / "runs"), "--out", str(out), "--figures", str(figures))
    assert result.exit_code == 0
    assert "Report: " in result.stdout
    assert "All 7 promises were kept." in out.read_text()
    assert {path.name for path in figures.glob("*.png")} == {
        "delivery-times.png",
        "p99.png",
        "queue-depth.png",
        "throughput.png",
    }
    assert len(list(figures.glob("*.svg"))) == 4
    assert {path.stem for path in figures.iterdir()} <= set(report.FIGURES)
    check_replaceable("--out", out, REPORT)
    check_figures("--figures", figures, report.FIGURES)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
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


@pytest.mark.parametrize("option", ["--out", "--figures"])
def test_what_others_wrote_is_left_alone_and_nothing_is_read(option: str, tmp_path: Path) -> None:
    figure = tmp_path / "throughput.png"
    figure.write_bytes(b"a photograph")
    result = invoke("runs", option, str(tmp_path if option == "--figures" else figure))
    assert isinstance(result.exception, InvalidOption)
    assert "it is left alone" in str(result.exception)
    assert figure.read_bytes() == b"a photograph"


def test_a_device_is_left_alone() -> None:
    result = invoke("runs", "--out", os.devnull)
    assert isinstance(result.exception, InvalidOption)
    assert "is not a regular file" in str(result.exception)
    assert Path(os.devnull).is_char_device()


def test_help_has_examples() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "priocast report runs/demo" in result.stdout
