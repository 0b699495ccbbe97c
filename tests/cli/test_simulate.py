"""`priocast simulate`, as a user runs it."""

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from priocast.cli.simulate import EXAMPLES, parse_seeds, simulate
from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.core.identity import ProcessId
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.packets import Ordered
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.simulation.playground.link import parse_link
from priocast.simulation.playground.playground import play
from priocast.trace.run_directory import find_segments, read_manifest

app = typer.Typer()
app.command(epilog=EXAMPLES)(simulate)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


def test_summary_of_the_seeds() -> None:
    result = run("--seeds", "0:4", "--jobs", "1")
    assert result.exit_code == 0
    for text in ("4 seeds", "seeds/s", "retransmission", "founding", "slowest seeds", "share of the seeds"):
        assert text in result.output


def test_json_is_one_object() -> None:
    result = run("--seeds", "0:3", "--jobs", "1", "--json")
    summary = json.loads(result.stdout)
    assert summary["seeds"] == 3 and summary["violations"] == []
    assert set(summary["fault_percent"]) >= {"loss", "cut: halves", "pause"}
    assert summary["transition_percent"]["founding"] == 100


def test_options_of_one_seed_are_printed_and_its_run_is_written(tmp_path: Path) -> None:
    result = run("--seeds", "17", "--show", "--out", str(tmp_path / "run"))
    assert result.exit_code == 0
    for option in ("faults.loss_percent", "ordering.window", "membership.policy", "workload.messages"):
        assert option in result.output
    assert read_manifest(tmp_path / "run").seed == 17


def test_hashes_are_one_line_per_seed(tmp_path: Path) -> None:
    run("--seeds", "3:6", "--jobs", "1", "--hashes", str(tmp_path / "hashes"))
    lines = [line.split() for line in (tmp_path / "hashes").read_text().splitlines()]
    assert [seed for seed, _ in lines] == ["3", "4", "5"]
    assert all(len(digest) == 64 for _, digest in lines)


LINK = "seed=7&load=100&do=150:send:a:224;200:kill:b"


def test_a_link_of_the_playground_is_run_and_its_run_can_be_written(tmp_path: Path) -> None:
    result = run("--link", LINK, "--show", "--out", str(tmp_path / "run"))
    assert result.exit_code == 0
    assert f"digest: {play(parse_link(LINK)).digest}" in result.output
    assert "workload.consume_us" in result.output
    assert read_manifest(tmp_path / "run").seed == 7


def test_a_link_that_is_wrong_or_has_other_options_beside_it_is_rejected() -> None:
    assert "'x' is not part of a link" in str(run("--link", "x=1").exception)
    assert "give only --link" in str(run("--link", LINK, "--order", "token-ring").exception)


def test_violation_exits_with_1_and_prints_how_to_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(SequencerUb):
        def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: tuple[int, int]) -> None:
            super()._on_ordered(sender, Ordered(ordered.position, ordered.batches[::-1]), packet_id)

    monkeypatch.setitem(PROTOCOLS, "sequencer-ub", Broken)
    result = run("--seeds", "0:8", "--jobs", "1", "--order", "sequencer-ub", "--policy", "primary")
    assert result.exit_code == 1
    assert "FIFO among equals violated" in result.output
    assert "replay: priocast simulate --seeds" in result.output
    assert "--order sequencer-ub --policy primary" in result.output


@pytest.mark.parametrize("text", ["", "x", "5:5", "9:3", "1:2:3", "-4", "1,2"])
def test_invalid_seeds_are_rejected(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not a seed or a range of seeds"):
        parse_seeds(text)


def test_invalid_options_are_rejected() -> None:
    assert isinstance(run("--seeds", "0:5", "--show").exception, InvalidOption)
    assert isinstance(run("--seeds", "0:5", "--out", "somewhere").exception, InvalidOption)
    assert isinstance(run("--seeds", "1", "--order", "nonsense").exception, UnknownProtocol)
    assert isinstance(run("--seeds", "1", "--policy", "nonsense").exception, InvalidOption)
    assert isinstance(run("--seeds", "1", "--delivery", "nonsense").exception, InvalidOption)


def test_unwritable_output_is_rejected_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option, path in (("--out", "file"), ("--out", "file/run"), ("--hashes", ""), ("--hashes", "file/x")):
        result = run("--seeds", "1", option, str(tmp_path / path))
        assert isinstance(result.exception, InvalidOption)
        assert str(result.exception).startswith(f"{option}: ")
        assert result.output == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_policy_and_delivery_can_be_chosen() -> None:
    result = run("--seeds", "17", "--policy", "partitionable", "--delivery", "safe", "--show")
    assert result.exit_code == 0
    shown = dict(
        line.split(maxsplit=1) for line in result.output.splitlines() if line.startswith("membership.")
    )
    assert (shown["membership.policy"], shown["membership.delivery"]) == ("partitionable", "safe")


def test_groups_can_send_with_qualities_of_service(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run(
        "--seeds", "5", "--quality", "atomic", "--quality", "at-least:b,c", "--show", "--out", str(out)
    )
    assert result.exit_code == 0
    assert "atomic at-least:b,c" in result.output and "faults.omission_percent" in result.output
    assert re.search(r"inaccessibility +│ +\d+\.\d %", result.output) and "cut: halves" not in result.output
    assert find_segments(out).services
    assert isinstance(run("--seeds", "5", "--quality", "certain").exception, InvalidOption)


def test_help_has_examples() -> None:
    assert "priocast simulate --seeds 17 --show" in run("--help").output
