"""Writes a simulated run to disk in the format of a real run, so that the pipeline can read it."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from msgspec.structs import replace

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols import find_protocol
from priocast.simulation.simulator import SimulatedRun
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import Manifest, TraceRow


def write_run(
    run: SimulatedRun, directory: Path, name: str | None = None, labels: Mapping[str, str] | None = None
) -> None:
    """Write the manifest, and one segment for each incarnation; a run is named after its seed by default."""
    manifest = manifest_of(run)
    labelled = {**manifest.labels, **(labels or {})}
    manifest = replace(manifest, run=name or manifest.run, labels=labelled)
    write_manifest(directory, manifest)
    rows_of: dict[tuple[str, int], list[TraceRow]] = {}
    for row in run.rows:
        rows_of.setdefault((row.member, row.incarnation), []).append(row)
    for (member, incarnation), rows in sorted(rows_of.items()):
        write_segment(directory, manifest.run, f"{member}-{incarnation}-000000", rows)


def manifest_of(run: SimulatedRun) -> Manifest:
    """The manifest of a simulated run."""
    scenario = run.scenario
    founders = [
        name
        for name, start_us in zip(scenario.members, scenario.workload.start_us, strict=True)
        if not start_us
    ]
    protocol = find_protocol(scenario.order)
    view = View(1, tuple(ProcessId(name) for name in founders))
    return Manifest(
        run=f"seed-{scenario.seed}",
        group="simulation",
        order=scenario.order,
        prioritised=scenario.ordering.prioritised,
        starvation=str(scenario.ordering.starvation),
        orders="coordinator" if protocol.orderer(view) else "",
        priorities_act=protocol.PRIORITIES_ACT,
        members=founders,
        policy=scenario.membership.policy,
        delivery=scenario.membership.delivery,
        clock="virtual",
        options=scenario.flat(),
        labels={"driver": "simulation", "digest": run.digest},
        seed=scenario.seed,
        versions={"priocast": version("priocast")},
    )
