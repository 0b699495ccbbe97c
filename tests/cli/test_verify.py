"""`priocast verify` prints a verdict for every guarantee and examples of each violation."""

import json
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from pipeline.mutants import POSITION, delivery_swapped_in_time
from pipeline.sample_results import verdict
from pipeline.sample_runs import play, with_local_clocks
from pipeline.service_runs import as_run, calm
from priocast.cli import verify
from priocast.cli.main import app as command_line
from priocast.cli.verdict_output import print_verdicts
from priocast.core.errors import InvalidOption, UnreadableTrace
from priocast.core.guarantees import TIGHTNESS
from priocast.core.quality import delta
from priocast.pipeline.results import Verification

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
    assert f"All 7 promises hold ({len(run.rows):,} events of 1 run checked)" in result.stdout


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
    assert "1 of 7 promises are broken" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    delivery_swapped_in_time(play(batch_max=1)).run.write(tmp_path)
    result = invoke(str(tmp_path), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert document["holds"] is False
    (broken,) = [each for each in document["verdicts"] if not each["holds"]]
    assert (broken["guarantee"], broken["examples"][0]["position"]) == ("Total order", POSITION)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_promise_about_clocks_that_cannot_be_compared_is_not_decidable(tmp_path: Path) -> None:
    with_local_clocks(as_run(calm(delta(120)), "apart")).write(tmp_path)
    result = invoke(str(tmp_path), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["holds"]) == (2, False)
    undecided = [each for each in document["verdicts"] if not each["decidable"]]
    assert [each["guarantee"] for each in undecided] == [TIGHTNESS]
    assert not undecided[0]["holds"] and not undecided[0]["violations"]


def test_what_cannot_be_decided_is_not_said_to_hold() -> None:
    decided, undecided = verdict("one"), verdict("other", decidable=False)
    console = Console(file=StringIO(), width=150)
    print_verdicts(console, Verification((), (), (decided, undecided)))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "not decidable" in text and "promises hold" not in text
    assert "1 of 2 promises cannot be decided: the clocks of the members cannot be compared" in text


def test_invalid_input_is_a_priocast_error(tmp_path: Path) -> None:
    """`main` prints these as one line and exits with code 2."""
    result = invoke(str(tmp_path / "nowhere"))
    assert isinstance(result.exception, UnreadableTrace)


def test_spark_connect_is_rejected_with_what_to_do(tmp_path: Path) -> None:
    for option in (["--remote", "sc://127.0.0.1:1"], ["--remote=sc://127.0.0.1:1"]):
        result = CliRunner().invoke(command_line, ["verify", str(tmp_path), *option])
        assert isinstance(result.exception, InvalidOption)
        assert "give the URL of a master with --master" in str(result.exception)


def test_help_has_examples_and_needs_no_spark() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "priocast verify runs/demo" in result.stdout
    assert "local[*]" in result.stdout
