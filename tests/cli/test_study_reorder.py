"""`priocast study reorder` and `priocast study preemption`, small, and with everything real."""

import json
from pathlib import Path

import pytest

from support.command import priocast, refusal

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("real groups")]
SMALL = ("--members", "3,2", "--rounds", "1", "--messages", "3", "--queued", "2")


def test_the_study_of_placing_ends_in_rows_and_a_figure(tmp_path: Path) -> None:
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


def test_sizes_that_cannot_be_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = refusal("study", "reorder", "--members", "2;4", "--out", str(out))
    assert "write sizes with commas, such as 2,4,6" in said
    assert "name sizes from 2 to 64" in refusal("study", "reorder", "--members", "1,2", "--out", str(out))
    assert not out.exists()


@pytest.mark.spark
def test_preemption_is_shown_against_a_window_and_a_plain_group(tmp_path: Path) -> None:
    small = ("--members", "2", "--commands", "60", "--handling-ms", "50", "--master", "local[1]")
    result = priocast("study", "preemption", *small, "--out", str(tmp_path), "--json")
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


def test_a_drill_that_cannot_be_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "from 1 to 16" in refusal("study", "preemption", "--members", "0", "--out", str(out))
    said = refusal("study", "preemption", "--handling-ms", "nan", "--out", str(out))
    assert "handling_ms is nan: it must be above 0" in said
    assert not out.exists()


@pytest.mark.parametrize("command", ["reorder", "preemption", "classes"])
def test_output_that_cannot_be_written_is_refused_before_anything_is_measured(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert f"{file} is a file: choose" in refusal("study", command, "--out", str(file))
