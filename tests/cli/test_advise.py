"""`priocast advise`: a choice, its reasons, and the whole ranking; from numbers or from a recorded run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.simulation.scenario_generator import Choice, generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run


def advised(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["advise", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def refused(*arguments: str) -> str:
    with pytest.raises(PriocastError) as error:
        app(["advise", *arguments], standalone_mode=False)
    return str(error.value)


def test_a_choice_is_explained_and_compared() -> None:
    said = advised("--members", "8", "--rate", "2000", "--rtt-ms", "0.2")
    assert said.splitlines()[0] == "sequencer-ub"
    assert "in line with the cost paper" in said
    assert "out of the question:" in said
    document = json.loads(advised("--members", "8", "--rate", "2000", "--rtt-ms", "0.2", "--json"))
    assert document["choice"] == "sequencer-ub"
    assert document["situation"]["rate"] == 2000
    assert document["ranking"][0]["delivery_ms"] > 0
    assert document["measured"] is None


def test_what_is_asked_of_the_order_counts() -> None:
    for arguments, choice in (
        (("--causal",), "causal-history"),
        (("--rate", "100000", "--senders", "1", "--priorities", "none"), "token-ring"),
    ):
        assert json.loads(advised("--members", "8", *arguments, "--json"))["choice"] == choice


def test_a_recorded_run_is_measured(tmp_path: Path) -> None:
    write_run(run_scenario(generate_scenario(5, Choice(order="token-ring"))), tmp_path)
    said = " ".join(advised("--trace", str(tmp_path)).split())
    assert said.startswith("measured: 5 members, 4 of which broadcast 36 messages")
    assert "ordered by token-ring; mean delivery time" in said
    measured = json.loads(advised("--trace", str(tmp_path), "--json"))["measured"]
    assert (measured["order"], measured["messages"]) == ("token-ring", 36)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    assert "members is missing" in refused("--rate", "10")
    assert "members is 0" in refused("--members", "0")
    assert "priorities is 'few'" in refused("--members", "3", "--priorities", "few")
    assert "is not a run directory" in refused("--trace", str(tmp_path))
    write_run(run_scenario(generate_scenario(5)), tmp_path)
    assert "measured with --trace" in refused("--members", "3", "--trace", str(tmp_path))
