"""Measures the cells of the saturation study, and keeps their rows as Parquet: an interrupted study goes on.

There is one file for each cell, with one row for each delivery of its sample. Its name says how it was
measured, and it appears when it is whole. A study reports all files of its directory.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from priocast.core.errors import PriocastError
from priocast.simulation.worker_pool import call_in_processes
from priocast.study.machine_load import describe_machine, foreign_cores
from priocast.study.saturation import (
    PROCESSES,
    Deliveries,
    SaturationCell,
    SaturationPlan,
    SaturationResult,
    result_of_members,
)
from priocast.study.saturation_simulated import simulate_cell
from priocast.study.saturation_worker import SaturationReport, SaturationTask
from priocast.testing.process_group import WorkerProgram, loopback_members, run_in_agreement

_WORKER = WorkerProgram("priocast.study.saturation_worker", SaturationReport)
#: Files of another format were measured in another way, and are left alone.
_FORMAT = "v2"


class PlannedCell(msgspec.Struct, frozen=True):
    """A cell, the plan that it belongs to, and the file for its rows."""

    plan: SaturationPlan
    cell: SaturationCell
    path: Path

    @property
    def is_finished(self) -> bool:
        """Whether it has been measured in this way."""
        return self.path.is_file()


class FinishedCell(msgspec.Struct, frozen=True):
    """A cell that was measured, or why it could not be."""

    cell: SaturationCell
    failure: str = ""


def planned_cells(plans: Sequence[SaturationPlan], directory: Path) -> list[PlannedCell]:
    """All cells of these plans, each once."""
    planned = [
        PlannedCell(plan, cell, cell_file(directory, plan, cell)) for plan in plans for cell in plan.cells()
    ]
    return list({each.path: each for each in planned}.values())


def measure_cells(planned: Sequence[PlannedCell], jobs: int) -> Generator[FinishedCell, None, None]:
    """Measure cells, store their rows, and yield them as they are finished.

    `jobs` of them are simulated at a time. Groups of processes run one after the other, when nothing else
    does. If one of them fails, the others are measured nevertheless.
    """
    simulated = [partial(_simulate, each) for each in planned if each.cell.place != PROCESSES]
    with closing(call_in_processes(simulated, jobs)) as finished:
        yield from finished
    for each in planned:
        if each.cell.place == PROCESSES:
            yield _run_and_store(each)


def _simulate(planned: PlannedCell) -> FinishedCell:
    store_cell(planned, simulate_cell(planned.plan, planned.cell))
    return FinishedCell(planned.cell)


def _run_and_store(planned: PlannedCell) -> FinishedCell:
    try:
        store_cell(planned, _run_processes(planned.plan, planned.cell))
    except PriocastError as error:
        return FinishedCell(planned.cell, str(error) or type(error).__name__)
    return FinishedCell(planned.cell)


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
            burst=cell.burst,
            interval_ns=cell.interval_ns,
            payload_bytes=cell.payload_bytes,
            handling_us=handling_us,
            seed=str(plan.seed),
        )
        for number, (member, handling_us) in enumerate(
            zip(loopback_members(cell.members), cell.handling_us(), strict=True)
        )
    ]
    return result_of_reports(cell, run_in_agreement(cell.order, _WORKER, tasks, lambda _: None))


def result_of_reports(cell: SaturationCell, reports: Sequence[SaturationReport]) -> SaturationResult:
    """What a group of processes did, and the load that others put on the machine meanwhile."""
    own = sum(report.cpu_seconds for report in reports)
    foreign = [foreign_cores(report.machine_seconds, own, report.seconds) for report in reports]
    deliveries = [report.deliveries or Deliveries(0.0, [], []) for report in reports]
    return result_of_members(cell, deliveries, sum(foreign) / len(foreign))


def cell_file(directory: Path, plan: SaturationPlan, cell: SaturationCell) -> Path:
    """Where the rows of a cell are."""
    messages = plan.messages_of(cell) * cell.members
    parts = (_FORMAT, *msgspec.structs.astuple(cell), messages, plan.seed)
    return directory / f"{'_'.join(map(str, parts)).replace('/', '+')}.parquet"


def stored_cells(directory: Path) -> dict[Path, SaturationCell]:
    """The files of all cells that were measured, with these and other options."""
    return {path: _cell_of(path) for path in sorted(directory.glob(f"{_FORMAT}_*.parquet"))}


def _cell_of(path: Path) -> SaturationCell:
    _, place, shape, members, payload_bytes, order, variant, load, _, _ = path.stem.split("_")
    return SaturationCell(
        place, shape, int(members), int(payload_bytes), order.replace("+", "/"), variant, int(load)
    )


def store_cell(planned: PlannedCell, result: SaturationResult) -> None:
    """Write the rows of a cell; they appear together."""
    import pyarrow
    from pyarrow import parquet

    of_cell = msgspec.structs.asdict(planned.cell) | {
        "messages": planned.plan.messages_of(planned.cell) * planned.cell.members,
        "seed": planned.plan.seed,
        "machine": describe_machine(),
        "foreign_cores": result.foreign_cores,
    }
    tables = [_table_of(of_cell | {"who": who}, part) for who, part in result.deliveries.items()]
    planned.path.parent.mkdir(parents=True, exist_ok=True)
    begun = planned.path.with_suffix(".part")
    parquet.write_table(pyarrow.concat_tables(tables), begun)
    begun.replace(planned.path)


def _table_of(values: dict[str, Any], part: Deliveries) -> Any:
    import pyarrow

    rows = len(part.took_ns)
    values |= {"delivered_per_second": part.delivered_per_second}
    columns = {name: [value] * rows for name, value in values.items()}
    columns |= {"priority": part.priorities, "took_ns": part.took_ns}
    # None, of simulated groups, has no type of its own.
    types = {"foreign_cores": pyarrow.float64()}
    return pyarrow.table({name: pyarrow.array(each, types.get(name)) for name, each in columns.items()})
