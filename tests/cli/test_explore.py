"""`priocast explore`, as a person uses it."""

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


def test_it_says_how_much_there_was_to_see() -> None:
    result = run("--order", "reorder", "--messages", "a:low b:high", "--view-ends", "--distributed")
    assert result.exit_code == 0
    for text in ("states", "transitions", "ends of the view", "holds", "distributed, view ends"):
        assert text in result.output
    assert "holds: reorder, 2 processes, a:low b:high, distributed, view ends" in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_a_violation_exits_with_1_and_tells_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LevelQueues, "_waits_for_lower", lambda *_: False)
    result = run("--order", "reorder", "--messages", "a:low b:high")
    assert result.exit_code == 1
    assert "1  a broadcasts low-1" in result.output
    assert "a -> b: data 0 (low-1)" in result.output
    assert "Priority accounting: " in result.output


def test_all_is_every_standard_scenario_of_the_order() -> None:
    result = run("--order", "sequencer-ub", "--all")
    assert result.exit_code == 0
    assert result.output.count("holds") == 3
    assert "in all: " in result.output


def test_options_that_do_not_fit_are_refused() -> None:
    assert isinstance(run("--order", "nonsense").exception, UnknownProtocol)
    assert isinstance(run("--messages", "nonsense").exception, InvalidOption)
    assert isinstance(run("--processes", "77").exception, InvalidOption)
    assert isinstance(run("--order", "token-ring", "--distributed").exception, InvalidOption)
    assert "or 2 processes" in str(run("--processes", "1").exception)


@pytest.mark.parametrize(
    "option", [("--view-ends",), ("--messages", "a:low"), ("--processes", "2"), ("--overtakes-max", "1")]
)
def test_all_goes_with_an_order_alone(option: tuple[str, ...]) -> None:
    refused = run("--all", "--order", "sequencer-ub", *option).exception
    assert isinstance(refused, InvalidOption)
    assert str(refused) == f"--all has scenarios of its own: leave {option[0]} out, or --all"


def test_help_has_examples() -> None:
    assert "priocast explore --order reorder --all" in run("--help").output
