"""`priocast study wan`: five regions in the simulator, and one table for each size."""

import json

from support.command import priocast


def test_every_order_has_a_row_for_each_region() -> None:
    arguments = ("--members", "5", "--order", "sequencer-ub", "--order", "token-ring", "--seconds", "8")
    result = priocast("study", "wan", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["order"] for row in rows} == {"sequencer-ub", "token-ring"}
    assert {row["region"] for row in rows} >= {"Washington", "Frankfurt", "Tokyo", "Sydney"}
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in rows)


def test_sizes_are_checked_before_anything_runs() -> None:
    result = priocast("study", "wan", "--members", "five")
    assert result.returncode == 2
    assert "'five'" in result.stderr
