"""`priocast explore`, as a user runs it."""

import pytest
import typer
from typer.testing import CliRunner, Result

from priocast.cli.explore import EXAMPLES, explore
from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.protocols.reorder.level_queues import LevelQueues

app = typer.Typer()
app.command(epilog=EXAMPLES)(explore)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


def test_counts_are_printed_within_80_columns() -> None:
    result = run("--order", "reorder", "--messages", "a:low b:high", "--view-ends", "--distributed")
    assert result.exit_code == 0
    for text in ("states", "transitions", "view changes", "holds", "distributed, view ends"):
        assert text in result.output
    assert "holds: reorder, 2 processes, a:low b:high, distributed, view ends" in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_violation_exits_with_1_and_prints_a_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LevelQueues, "_waits_for_lower", lambda *_: False)
    result = run("--order", "reorder", "--messages", "a:low b:high")
    assert result.exit_code == 1
    assert "1  a broadcasts low-1" in result.output
    assert "a -> b: data 0 (low-1)" in result.output
    assert "Priority accounting: " in result.output


def test_all_explores_every_standard_scenario_of_the_order() -> None:
    result = run("--order", "sequencer-ub", "--all")
    assert result.exit_code == 0
    assert result.output.count("holds") == 3
    assert "total: " in result.output


def test_invalid_options_are_rejected() -> None:
    assert isinstance(run("--order", "nonsense").exception, UnknownProtocol)
    assert isinstance(run("--messages", "nonsense").exception, InvalidOption)
    assert isinstance(run("--processes", "77").exception, InvalidOption)
    assert isinstance(run("--order", "token-ring", "--distributed").exception, InvalidOption)
    assert "or 2 processes" in str(run("--processes", "1").exception)


@pytest.mark.parametrize(
    "option", [("--view-ends",), ("--messages", "a:low"), ("--processes", "2"), ("--overtakes-max", "1")]
)
def test_all_can_be_combined_with_an_order_only(option: tuple[str, ...]) -> None:
    error = run("--all", "--order", "sequencer-ub", *option).exception
    assert isinstance(error, InvalidOption)
    assert str(error) == f"--all explores fixed scenarios: omit {option[0]}, or omit --all"


def test_help_has_examples() -> None:
    assert "priocast explore --order reorder --all" in run("--help").output
