"""`priocast campaign` and `priocast cluster`: what they reject before Spark starts, and their help."""

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from priocast.campaign.campaign import CampaignResult, CampaignRow
from priocast.cli.campaign import result_table
from priocast.cli.main import app
from priocast.core.errors import InvalidOption, UnknownProtocol


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (["--seeds", "x"], InvalidOption, "is not a seed or a range of seeds"),
        (["--seeds", "0:2", "--order", "nonsense"], UnknownProtocol, "nonsense"),
        (["--seeds", "0:2", "--policy", "nonsense"], InvalidOption, "--policy is 'nonsense'"),
        (["--seeds", "0:2", "--delivery", "agreed", "--delivery", "x"], InvalidOption, "--delivery is 'x'"),
        (["--seeds", "0:2", "--fault", "cut", "--fault", "x"], InvalidOption, "--fault is 'x'"),
        (["--seeds", "0:2", "--members", "0"], InvalidOption, "members is 0: it must be between 1 and 26"),
        (["--seeds", "0:2", "--load", "0"], InvalidOption, "load is 0: it must be between 1 and"),
        (["--seeds", "0:2", "--by", "colour"], InvalidOption, "--by is 'colour': choose cell, order"),
        (["--seeds", "0:2", "--out", "file/out"], InvalidOption, "--out: file/out cannot be created"),
        (["--seeds", "0:2", "--traces", "file"], InvalidOption, "--traces: file is a file"),
    ],
)
def test_invalid_options_are_rejected_before_anything_runs(
    options: list[str],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    result = run("campaign", *options)
    assert isinstance(result.exception, error) and message in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_orders_can_be_told_apart_on_a_narrow_terminal() -> None:
    orders = ("count-parts/deterministic-merge", "count-parts/agreement-proposal", "token-ring")
    rows = tuple(
        CampaignRow(
            values={"order": order},
            seeds=10_000,
            failed=10_000,
            broadcasts=1_000_000,
            deliveries=1_000_000,
            views=100_000,
            virtual_seconds=12_345.6,
            seconds=12_345.6,
            settling_seconds_max=123.45,
        )
        for order in orders
    )
    result = CampaignResult(
        seeds=3, seeds_run=3, start_seconds=1.0, run_seconds=1.0, failed=0, rows=rows, failed_seeds=()
    )
    console = Console(width=80, record=True)
    console.print(result_table(result, ("order",)))
    shown = console.export_text()
    names = "".join(line.split()[0] for line in shown.splitlines() if line.strip())
    assert all(order in names for order in orders) and shown.count("1,000,000") == len(orders)


def test_cluster_that_was_never_started(tmp_path: Path) -> None:
    result = run("cluster", "status", "--directory", str(tmp_path))
    assert result.exit_code == 1 and "no cluster was started" in result.output
    assert isinstance(run("cluster", "down", "--directory", str(tmp_path)).exception, InvalidOption)


def test_help_has_examples() -> None:
    assert "priocast campaign --seeds 0:100000" in run("campaign", "--help").output
    assert "priocast cluster down" in run("cluster", "up", "--help").output
