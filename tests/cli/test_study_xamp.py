"""`priocast study xamp`, on real processes with a small workload."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from priocast.cli.study_xamp import measure_groups
from priocast.study.xamp import XampPlan
from support.command import command_error, priocast_here

pytestmark = pytest.mark.processes
SMALL = (
    "--members",
    "2",
    "--sizes",
    "64,1024",
    "--messages",
    "2",
    "--delta-ms",
    "1000",
    "--precision-ms",
    "500",
)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_xamp_study_gives_times_of_every_quality_and_figures(tmp_path: Path) -> None:
    result = priocast_here("study", "xamp", *SMALL, "--out", str(tmp_path), "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["broken"] == []
    measured = {(each["way"], each["size"]) for each in document["times"]}
    assert measured == {(way, size) for way in XampPlan(delta_ms=1000).ways(2) for size in (64, 1024)}
    assert all(each["incomplete"] == 0 < each["indication_ms"] for each in document["times"])
    assert {Path(path).name for path in document["figures"]} == {
        f"xamp-{name}.{kind}" for name in ("reliable", "atomic", "qualities") for kind in ("png", "svg")
    }
    assert (tmp_path / "xamp-atomic.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "report.html").is_file()


def test_a_study_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    plan = XampPlan(members=(2,), sizes=(64,), messages=1, delta_ms=1000, precision_ms=500)
    first, _ = measure_groups(plan, tmp_path, Console(quiet=True))
    before = sorted(tmp_path.rglob("*"))
    second, _ = measure_groups(plan, tmp_path, Console(quiet=True))
    assert second == first
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "traces" / "xamp-2").rename(tmp_path / "elsewhere")
    third, _ = measure_groups(plan, tmp_path, Console(quiet=True))
    assert third != first, "without its trace a group is measured again"


def test_invalid_numbers_are_rejected(tmp_path: Path) -> None:
    out = tmp_path / "out"
    message = command_error("study", "xamp", "--sizes", "64;128", "--out", str(out))
    assert "--sizes is '64;128': write numbers separated by commas" in message
    assert "name sizes from 2 to 256" in command_error("study", "xamp", "--members", "1", "--out", str(out))
    message = command_error("study", "xamp", "--quick", "--messages", "5", "--out", str(out))
    assert "--quick sets the groups, sizes and messages: omit --messages, or omit --quick" in message
    assert not out.exists()
