"""`priocast study classes`: real groups with several protocols, and one table to compare them."""

import json
from pathlib import Path

import pytest

from support.command import priocast_here

pytestmark = [pytest.mark.processes, pytest.mark.spark]
SMALL = ("--members", "2", "--seconds", "0.3", "--handling-us", "2000", "--load", "3")


@pytest.mark.usefixtures("spark")
def test_each_protocol_is_plain_and_prioritised_under_overload_and_prioritised_at_half_load(
    tmp_path: Path,
) -> None:
    orders = ("sequencer-bb", "count-parts/token-ring")
    chosen = [word for order in orders for word in ("--order", order)]
    result = priocast_here("study", "classes", *chosen, *SMALL, "--out", str(tmp_path), "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["order"] for row in rows] == list(orders)
    for row in rows:
        for variant in (row["half_load"], row["plain"], row["prioritised"]):
            median_ms, p99_ms, max_ms = variant["urgent"]
            assert 0 < median_ms <= p99_ms <= max_ms <= variant["longest_ms"]
        assert row["half_load"]["longest_ms"] < row["prioritised"]["longest_ms"]
    assert rows[0]["prioritised"]["inversions"] < rows[0]["plain"]["inversions"]
    assert (tmp_path / "report.html").is_file()


def test_unknown_protocol_is_rejected_before_anything_runs(tmp_path: Path) -> None:
    result = priocast_here("study", "classes", "--order", "nonsense", "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert "'nonsense'" in result.stderr
    assert not (tmp_path / "out").exists()
