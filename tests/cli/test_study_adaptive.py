"""`priocast study adaptive`: the paper's load in the simulator, measured on Spark."""

import json
from pathlib import Path

import pytest

from support.command import priocast_here


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_all_ack_waits_for_slow_senders_and_the_adaptive_order_does_not(tmp_path: Path) -> None:
    short = ("--only", "simulator", "--constant", "--seconds", "4", "--slow-seconds", "1")
    result = priocast_here("study", "adaptive", *short, "--out", str(tmp_path), "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    runs = {row["run"]: row for row in document["runs"]}
    assert runs["sim-causal"]["of_causal"] == 1
    assert runs["sim-all-ack"]["of_causal"] > 100 > runs["sim-adaptive"]["of_causal"]
    assert runs["sim-adaptive"]["of_all_ack"] > 10
    assert set(document["weights"]) == {"sim-adaptive", "sim-equal-weights"}
    page = (tmp_path / "report.html").read_text()
    assert "Senders" in page and "change of the distribution" in page


def test_an_unknown_place_to_run_is_rejected(tmp_path: Path) -> None:
    result = priocast_here("study", "adaptive", "--only", "paper", "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert "'paper'" in result.stderr
    assert not (tmp_path / "out").exists()
