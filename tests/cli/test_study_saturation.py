"""`priocast study saturation`, in the simulator and on real processes, with small workloads."""

import json
from pathlib import Path

import pytest

from support.command import command_error, priocast_here


@pytest.mark.processes
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_study_measures_all_cells_and_goes_on_where_it_was(tmp_path: Path) -> None:
    chosen = ("study", "saturation", "--order", "sequencer-ub", "--place", "lan", "--place", "processes")
    small = ("--members", "2", "--loads", "400,800", "--messages", "200", "--out", str(tmp_path), "--json")
    result = priocast_here(*chosen, *small)
    assert result.returncode == 0, result.stderr
    cells = json.loads(result.stdout)["cells"]
    assert [(cell["place"], cell["load"]) for cell in cells] == [
        ("lan", 400),
        ("lan", 800),
        ("processes", 400),
        ("processes", 800),
    ]
    assert all(0 < cell["p50_ms"] <= cell["p99_ms"] for cell in cells)
    assert all(cell["delivered_per_second"] > 0 for cell in cells)
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "tables.md").read_text(encoding="utf-8").count("| sequencer-ub |") == 4
    figures = [f"saturation-{place}-steady-2-64.svg" for place in ("lan", "processes")]
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == figures
    measured = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    again = priocast_here(*chosen, *small)
    assert json.loads(again.stdout)["cells"] == cells
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == measured


def test_invalid_choices_are_rejected_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, text in (
        (("--loads", "x"), "--loads is 'x'"),
        (("--place", "moon"), "choose among lan, wan, processes"),
        (("--order", "nonsense"), "'nonsense'"),
    ):
        assert text in command_error("study", "saturation", *arguments, "--out", str(out))
    assert not out.exists()
