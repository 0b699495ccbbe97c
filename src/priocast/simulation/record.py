"""A simulated run on disk, in the form that a real run has: the pipeline does not tell them apart."""

from importlib.metadata import version
from pathlib import Path

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols import find_protocol
from priocast.simulation.simulator import Run
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import Manifest


def write_run(run: Run, directory: Path) -> None:
    """Write the manifest, and one segment a member."""
    scenario = run.scenario
    members = [ProcessId(name) for name in scenario.members]
    assert {row.member for row in run.rows} <= set(scenario.members)
    manifest = Manifest(
        run=f"seed-{scenario.seed}",
        group="simulation",
        order=scenario.order,
        prioritised=scenario.ordering.prioritised,
        starvation=str(scenario.ordering.starvation),
        orderer=find_protocol(scenario.order).orderer(View(1, tuple(members))),
        members=list(scenario.members),
        clock="virtual",
        options=scenario.flat(),
        labels={"driver": "simulation", "digest": run.digest},
        seed=scenario.seed,
        versions={"priocast": version("priocast")},
    )
    write_manifest(directory, manifest)
    for member in members:
        rows = [row for row in run.rows if row.member == member.name]
        write_segment(directory, f"{member.name}-{member.incarnation}-000000", rows)
