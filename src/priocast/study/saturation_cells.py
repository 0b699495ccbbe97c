"""Measures the cells of the saturation study, and keeps their rows as Parquet: an interrupted study goes on.

There is one file for each cell, with one row for each delivery of its sample. Its name says how it was
measured, and it appears when it is whole.
"""

from collections.abc import Generator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from priocast.simulation.worker_pool import call_in_processes
from priocast.study.saturation import PROCESSES, SaturationCell, SaturationPlan, SaturationResult
from priocast.study.saturation_simulated import simulate_cell
from priocast.study.saturation_worker import SaturationReport, SaturationTask
from priocast.testing.process_group import WorkerProgram, loopback_members, run_in_agreement

_WORKER = WorkerProgram("priocast.study.saturation_worker", SaturationReport)


def measure_cells(
    plan: SaturationPlan, files: Mapping[SaturationCell, Path], jobs: int
) -> Generator[SaturationCell, None, None]:
    """Measure cells, store their rows in these files, and yield them as they are finished.

    `jobs` of them are simulated at a time. Groups of processes run one after the other, when nothing else
    does.
    """
    simulated = [partial(_simulate, plan, *each) for each in files.items() if each[0].place != PROCESSES]
    with closing(call_in_processes(simulated, jobs)) as cells:
        yield from cells
    for cell, path in files.items():
        if cell.place == PROCESSES:
            store_cell(path, cell, _run_processes(plan, cell))
            yield cell


def _simulate(plan: SaturationPlan, cell: SaturationCell, path: Path) -> SaturationCell:
    store_cell(path, cell, simulate_cell(plan, cell))
    return cell


def _run_processes(plan: SaturationPlan, cell: SaturationCell) -> SaturationResult:
    tasks = [
        SaturationTask(
            **member,
            run=cell.order,
            order=cell.order,
            options=cell.options,
            number=number,
            members=cell.members,
            messages=plan.messages_of(cell),
            rate=cell.load / cell.members,
            burst=cell.burst,
            payload_bytes=cell.payload_bytes,
            handling_us=handling_us,
            seed=str(plan.seed),
        )
        for number, (member, handling_us) in enumerate(
            zip(loopback_members(cell.members), cell.handling_us(), strict=True)
        )
    ]
    reports = run_in_agreement(cell.order, _WORKER, tasks, lambda _: None)
    return SaturationResult(
        min(report.delivered_per_second for report in reports),
        [priority for report in reports for priority in report.priorities],
        [took for report in reports for took in report.took_ns],
    )


def cell_file(directory: Path, plan: SaturationPlan, cell: SaturationCell) -> Path:
    """Where the rows of a cell are."""
    parts = (*msgspec.structs.astuple(cell), plan.messages, plan.seed)
    return directory / f"{'_'.join(map(str, parts)).replace('/', '+')}.parquet"


def store_cell(path: Path, cell: SaturationCell, result: SaturationResult) -> None:
    """Write the rows of a cell; they appear together."""
    import pyarrow
    from pyarrow import parquet

    rows = len(result.took_ns)
    of_cell = msgspec.structs.asdict(cell) | {"delivered_per_second": result.delivered_per_second}
    columns = {name: [value] * rows for name, value in of_cell.items()}
    columns |= {"priority": result.priorities, "took_ns": result.took_ns}
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_suffix(".part")
    parquet.write_table(pyarrow.table(columns), begun)
    begun.replace(path)
