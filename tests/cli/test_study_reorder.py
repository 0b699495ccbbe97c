"""`priocast study reorder` and `priocast study preemption`, on real processes with small workloads."""

import json
from pathlib import Path

import pytest

from support.command import command_error, priocast, priocast_here

pytestmark = pytest.mark.processes
SMALL = ("--members", "3,2", "--rounds", "1", "--messages", "3", "--queued", "2")


def test_reorder_study_gives_rows_and_a_figure(tmp_path: Path) -> None:
    result = priocast("study", "reorder", *SMALL, "--out", str(tmp_path), "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["plan"]["members"], document["plan"]["payload_bytes"]) == ([2, 3], 1024)
    assert [(row["members"], row["way"]) for row in document["rows"]] == [
        (members, way)
        for members in (2, 3)
        for way in ("raw round trip", "agreement-skeen", "reorder", "reorder-distributed", "reorder-locks")
    ]
    assert all(row["round_trips"] > 0 for row in document["rows"])
    assert document["figures"] == [str(tmp_path / name) for name in ("placing.png", "placing.svg")]
    assert (tmp_path / "placing.png").read_bytes().startswith(b"\x89PNG")


def test_invalid_sizes_are_rejected(tmp_path: Path) -> None:
    out = tmp_path / "out"
    message = command_error("study", "reorder", "--members", "2;4", "--out", str(out))
    assert "write numbers separated by commas, such as 2,4,6" in message
    assert "name sizes from 2 to 256" in command_error(
        "study", "reorder", "--members", "1,2", "--out", str(out)
    )
    assert not out.exists()


def test_quick_sets_rounds_and_messages(tmp_path: Path) -> None:
    message = command_error("study", "reorder", "--quick", "--rounds", "5", "--out", str(tmp_path / "out"))
    assert "--quick sets the number of rounds and messages: omit --rounds, or omit --quick" in message


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_preemption_study_compares_reorder_window_and_plain(tmp_path: Path) -> None:
    small = ("--members", "2", "--commands", "60", "--handling-ms", "50")
    result = priocast_here("study", "preemption", *small, "--out", str(tmp_path), "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["broken"] == []
    runs = {run["name"]: run for run in document["runs"]}
    assert list(runs) == ["reorder", "sequencer-ub", "plain"]
    assert all(run["same_digest"] for run in runs.values())
    assert runs["reorder"]["overtaken"] > runs["plain"]["overtaken"]
    assert runs["reorder"]["avoidable"] < runs["plain"]["avoidable"]
    assert runs["sequencer-ub"]["avoidable"] < runs["plain"]["avoidable"]
    assert (tmp_path / "report.html").is_file()


def test_invalid_drill_is_rejected_before_anything_is_started(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "from 1 to 16" in command_error("study", "preemption", "--members", "0", "--out", str(out))
    message = command_error("study", "preemption", "--handling-ms", "nan", "--out", str(out))
    assert "handling_ms is nan: " in message
    assert not out.exists()


@pytest.mark.parametrize("command", ["reorder", "preemption", "classes"])
def test_unwritable_output_is_rejected_before_anything_is_measured(command: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert f"{file} is a file: choose" in command_error("study", command, "--out", str(file))
