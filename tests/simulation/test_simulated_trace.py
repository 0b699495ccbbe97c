"""A simulated run on disk has the format of a real one."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from priocast.simulation.choice import Choice
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run
from priocast.trace.recorded_run import open_run
from priocast.trace.run_directory import find_runs, read_manifest
from priocast.trace.schema import TraceRow


@pytest.mark.parametrize(
    ("order", "orders", "priorities_act"),
    [("sequencer-ub", "coordinator", "sequencing"), ("token-ring", "", "sending")],
)
def test_run_directory_holds_every_row(order: str, orders: str, priorities_act: str, tmp_path: Path) -> None:
    run = run_scenario(generate_scenario(17, Choice(order)))
    write_run(run, tmp_path / "run")
    assert find_runs(tmp_path) == [tmp_path / "run"]
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.seed, manifest.clock, manifest.order) == (17, "virtual", order)
    assert (manifest.orders, manifest.priorities_act) == (orders, priorities_act)
    assert manifest.members == list(run.scenario.members)[: run.scenario.membership.founders]
    assert manifest.policy == run.scenario.membership.policy
    assert manifest.delivery == run.scenario.membership.delivery
    assert manifest.starvation == str(run.scenario.ordering.starvation)
    assert manifest.options["faults.loss_percent"] == run.scenario.faults.loss_percent
    assert manifest.labels["digest"] == run.digest
    recorded = open_run(tmp_path / "run")

    def by_step(rows: Iterable[TraceRow]) -> list[TraceRow]:
        return sorted(rows, key=lambda row: (row.member, row.incarnation, row.step))

    assert list(recorded.messages()) == by_step(run.messages)
    assert list(recorded.group_events) == by_step(run.group_events)
