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
    assert [cell["foreign_cores"] is None for cell in cells] == [True, True, False, False]
    measured = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    again = priocast_here(*chosen, *small)
    assert json.loads(again.stdout)["cells"] == cells
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == measured


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_commands_with_other_options_add_to_the_report(tmp_path: Path) -> None:
    chosen = ("study", "saturation", "--order", "deterministic-merge", "--loads", "400", "--messages", "100")
    assert priocast_here(*chosen, "--members", "2", "--out", str(tmp_path), "--json").returncode == 0
    second = priocast_here(*chosen, "--members", "4", "--out", str(tmp_path))
    assert second.returncode == 0, second.stderr
    assert "2 members" not in second.stdout, "the terminal shows what this command is about"
    assert "…" not in second.stdout and max(map(len, second.stdout.splitlines())) <= 80
    reported = priocast_here("study", "saturation", "--measured", "--out", str(tmp_path), "--json")
    assert [cell["members"] for cell in json.loads(reported.stdout)["cells"]] == [2, 4]
    assert "2 members" in (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "over-members" in "".join(path.name for path in tmp_path.glob("*.svg"))


def test_invalid_choices_are_rejected_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, text in (
        (("--loads", "x"), "--loads is 'x'"),
        (("--place", "moon"), "choose among lan, wan, processes"),
        (("--order", "nonsense"), "'nonsense'"),
        (("--campaign", "--loads", "1000"), "--campaign sets --loads"),
        (("--campaign", "--quick"), "choose one"),
        (("--campaign", "--place", "moon"), "choose among lan, wan, processes"),
        (
            ("--campaign", "--order", "time-parts/token-ring"),
            "no group with the order 'time-parts/token-ring'",
        ),
        (("--measured",), "no group has been measured"),
    ):
        assert text in command_error("study", "saturation", *arguments, "--out", str(out))
    assert not out.exists()
