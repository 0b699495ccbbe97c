"""`priocast verify` prints a verdict for every guarantee and examples of each violation."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pipeline.mutants import POSITION, delivery_swapped_in_time
from pipeline.sample_runs import play
from priocast.cli import verify
from priocast.core.errors import UnreadableTrace

app = typer.Typer(rich_markup_mode="rich")
app.command(epilog=verify.EXAMPLES)(verify.verify)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "150", "NO_COLOR": "1"})


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_correct_run_is_summarised(tmp_path: Path) -> None:
    run = play(ticks=5)
    run.write(tmp_path)
    result = invoke(str(tmp_path))
    assert result.exit_code == 0
    assert f"All 6 promises hold ({len(run.rows):,} events of 1 run checked)" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_violation_is_printed_with_its_position(tmp_path: Path) -> None:
    mutant = delivery_swapped_in_time(play(batch_max=1))
    mutant.run.write(tmp_path)
    result = invoke(str(tmp_path), "--limit", "1")
    assert result.exit_code == 1
    assert "sample: Total order has 1 violation" in result.stdout
    assert f"view 1@a#1, position {POSITION}  {mutant.expected.messages[0]}" in result.stdout
    assert "b#1 delivered it after it had reached position" in result.stdout
    assert "1 of 6 promises are broken" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    delivery_swapped_in_time(play(batch_max=1)).run.write(tmp_path)
    result = invoke(str(tmp_path), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert document["holds"] is False
    (broken,) = [verdict for verdict in document["verdicts"] if not verdict["holds"]]
    assert (broken["guarantee"], broken["examples"][0]["position"]) == ("Total order", POSITION)


def test_invalid_input_is_a_priocast_error(tmp_path: Path) -> None:
    """`main` prints these as one line and exits with code 2."""
    result = invoke(str(tmp_path / "nowhere"))
    assert isinstance(result.exception, UnreadableTrace)


def test_help_has_examples_and_needs_no_spark() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "priocast verify runs/demo" in result.stdout
    assert "local[*]" in result.stdout
