"""`priocast advise`: a recommendation with reasons and a ranking, from numbers or from a recorded run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.simulation.choice import Choice
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run


def advised(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["advise", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def rejection(*arguments: str) -> str:
    with pytest.raises(PriocastError) as error:
        app(["advise", *arguments], standalone_mode=False)
    return str(error.value)


def test_recommendation_has_reasons_and_a_ranking() -> None:
    output = advised("--members", "8", "--rate", "2000", "--rtt-ms", "0.2")
    assert output.splitlines()[0] == "sequencer-ub"
    assert "in line with the cost paper" in output
    assert "excluded:" in output
    document = json.loads(advised("--members", "8", "--rate", "2000", "--rtt-ms", "0.2", "--json"))
    assert document["choice"] == "sequencer-ub"
    assert document["situation"]["rate"] == 2000
    assert document["ranking"][0]["delivery_ms"] > 0
    assert document["measured"] is None


def test_required_properties_change_the_recommendation() -> None:
    for arguments, choice in (
        (("--causal",), "causal-history"),
        (("--rate", "100000", "--senders", "1", "--priorities", "none"), "token-ring"),
    ):
        assert json.loads(advised("--members", "8", *arguments, "--json"))["choice"] == choice


def test_load_is_measured_from_a_recorded_run(tmp_path: Path) -> None:
    write_run(run_scenario(generate_scenario(5, Choice(order="token-ring"))), tmp_path)
    output = " ".join(advised("--trace", str(tmp_path)).split())
    assert output.startswith("measured: 5 members, 4 of which broadcast 36 messages")
    assert "ordered by token-ring; mean delivery time" in output
    measured = json.loads(advised("--trace", str(tmp_path), "--json"))["measured"]
    assert (measured["order"], measured["messages"]) == ("token-ring", 36)


def test_invalid_options_are_rejected(tmp_path: Path) -> None:
    assert "members is missing" in rejection("--rate", "10")
    assert "members is 0" in rejection("--members", "0")
    assert "priorities is 'few'" in rejection("--members", "3", "--priorities", "few")
    assert "is not a run directory" in rejection("--trace", str(tmp_path))
    write_run(run_scenario(generate_scenario(5)), tmp_path)
    for option in (("--members", "3"), ("--safe",), ("--priorities", "none"), ("--payload-bytes", "9")):
        message = rejection(*option, "--trace", str(tmp_path))
        assert message.startswith(f"{option[0]} cannot be combined with --trace")
    advised("--trace", str(tmp_path), "--causal", "--processors", "2", "--rtt-ms", "3")
