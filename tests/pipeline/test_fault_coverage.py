"""The fault-injection campaign: what is injected into simulated groups, and the table of Spark."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.guarantees import LIVENESS, NON_TRIVIALITY, SERVICE_TOTAL_ORDER
from priocast.pipeline.coverage_report import render_coverage
from priocast.pipeline.tables.fault_coverage import ALL_QUALITIES, FaultCoverage, with_totals
from priocast.study.faults import FAULTS, InjectedFault, InjectionPlan, inject
from priocast.trace.run_directory import read_manifest


@pytest.mark.usefixtures("spark")
def test_the_command_shows_what_is_tolerated(tmp_path: Path, spark: SparkSession) -> None:
    arguments = ["study", "faults", "--seeds", "1", "--quality", "atomic", "--out", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = {row["fault"]: row for row in json.loads(result.stdout)}
    assert set(rows) == {fault.name for fault in FAULTS}
    omission, corruption = rows["omission"], rows["corruption (Pn2)"]
    assert omission["injected"] > 1
    assert [omission[name] for name in ("affected", "noticed", "tolerated", "lost")] == [1, 1, 1, []]
    assert corruption["tolerated"] == 0
    assert corruption["lost"] == [NON_TRIVIALITY], "the simulator ended the run there"
    assert rows["half duplex (Pn4)"]["injected"] > 0
    page = (tmp_path / "report.html").read_text()
    assert "Faults that break what they assume" in page and "corruption (Pn2)" in page


@pytest.mark.parametrize(
    ("name", "quality", "guarantee"),
    [
        ("inconsistency (Pn1)", "reliable", NON_TRIVIALITY),
        ("corruption (Pn2)", "tight", NON_TRIVIALITY),
        ("disorder (Pn5)", "atomic:acknowledged", SERVICE_TOTAL_ORDER),
        ("long inaccessibility (Pn6)", "atomic", LIVENESS),
    ],
)
def test_a_broken_property_costs_a_promise(tmp_path: Path, name: str, quality: str, guarantee: str) -> None:
    fault = next(each for each in FAULTS if each.name == name)
    found = (each.guarantee for seed in range(10) for each in inject(fault, quality, seed, tmp_path))
    assert guarantee in found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_occurs(tmp_path: Path, fault: InjectedFault) -> None:
    for seed in range(3):
        inject(fault, "atomic", seed, tmp_path)
    assert any(int(read_manifest(run).labels["injected"]) for run in tmp_path.iterdir())


def test_a_slow_application_is_no_fault_of_delta() -> None:
    cells = InjectionPlan(seeds=1, qualities=("delta:150", "tight")).cells()
    slow = [quality for fault, quality, _ in cells if fault.name == "slow recipient"]
    assert slow == ["tight"]


def coverage(fault: str, quality: str, tolerated: int = 4, lost: tuple[str, ...] = ()) -> FaultCoverage:
    return FaultCoverage(
        fault=fault,
        quality=quality,
        assumed=True,
        runs=5,
        affected=4,
        injected=70,
        noticed=3,
        tolerated=tolerated,
        lost=lost,
    )


def test_the_report_says_what_was_lost() -> None:
    page = render_coverage([coverage("omission", "reliable", 3, (NON_TRIVIALITY,))])
    assert "3 of 4 runs" in page and "75%" in page and NON_TRIVIALITY in page
    assert "banner bad" in page


def test_each_kind_of_fault_has_a_total() -> None:
    tight = coverage("omission", "tight", 2, (NON_TRIVIALITY,))
    rows = [coverage("crash", "tight"), tight, coverage("omission", "unreliable", 3, (LIVENESS,))]
    crash, total, *others = with_totals(rows)
    assert (crash, others) == (rows[0], rows[1:]), "a single quality needs no total"
    assert total == FaultCoverage(
        fault="omission",
        quality=ALL_QUALITIES,
        assumed=True,
        runs=10,
        affected=8,
        injected=140,
        noticed=6,
        tolerated=5,
        lost=(LIVENESS, NON_TRIVIALITY),
    )
