"""`priocast study cost`, on real processes with a small workload."""

import json
from pathlib import Path

import pytest

from support.command import command_error, priocast_here

SMALL = ("--members", "2", "--rates", "200", "--deliveries", "40", "--dropped", "10")


@pytest.mark.processes
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_cost_study_measures_both_variants_and_goes_on_where_it_was(tmp_path: Path) -> None:
    chosen = ("study", "cost", "--order", "token-ring", *SMALL, "--out", str(tmp_path), "--json")
    assert "no group of this plan" in command_error(*chosen, "--measured")
    result = priocast_here(*chosen, "--at-once", "2")
    assert result.returncode == 0, result.stderr
    cells = json.loads(result.stdout)["cells"]
    assert [(cell["order"], cell["variant"]) for cell in cells] == [
        ("token-ring", "plain"),
        ("token-ring", "prioritised"),
    ]
    assert all(0 < cell["first_ms"] <= cell["median_ms"] <= cell["third_ms"] for cell in cells)
    assert all(cell["messages"] == 30 and cell["prioritisation_us"] > 0 for cell in cells)
    assert (tmp_path / "report.html").is_file()
    (tmp_path / "token-ring-prioritised-2-200_40_10_64_1.json").unlink()
    result = priocast_here(*chosen, "--measured")
    assert json.loads(result.stdout)["cells"] == cells[:1], "the other one is no longer finished"
    result = priocast_here(*chosen)
    assert "Already measured: 1 of 2 groups" in result.stderr
    assert json.loads(result.stdout)["cells"][0] == cells[0]


def test_invalid_numbers_are_rejected(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert "omit --rates" in command_error("study", "cost", "--quick", "--rates", "10", "--out", out)
    assert "--rates is 'x'" in command_error("study", "cost", "--rates", "x", "--out", out)
    assert "--at-once is 0" in command_error("study", "cost", "--at-once", "0", "--out", out)
    assert "'nonsense'" in command_error("study", "cost", "--order", "nonsense", "--out", out)
    assert not (tmp_path / "out").exists()
