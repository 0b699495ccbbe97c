"""The rows of the cost study as Parquet files, one for each table and cell: an interrupted study goes on.

The names of the files say how a cell was measured, so plans of different lengths can share a directory. A
cell is finished when its mark is there, which is written last and removed first.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from priocast.study.cost import CostCell, CostPlan
from priocast.study.cost_worker import CostReport, PartTimes, Resources
from priocast.study.machine_load import foreign_cores
from priocast.study.step_times import ENTER, LEAVE

if TYPE_CHECKING:
    import pyarrow

DELIVERIES, STEPS, MEMBERS, MEMORY = TABLES = ("deliveries", "steps", "members", "memory")
Columns = dict[str, list[Any]]
#: The types of columns that are not numbers of 64 bits: a table without rows has none to derive them from.
_TEXT = ("order", "variant", "part")
_FRACTIONS = ("seconds", "cpu_seconds", "machine_seconds", "foreign_cores", "after_seconds")


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    cell: CostCell
    deliveries: int
    dropped: int
    payload_bytes: int
    seed: int


def is_finished(directory: Path, plan: CostPlan, cell: CostCell) -> bool:
    """Whether an earlier study has measured this cell in the same way, and its rows are still there."""
    try:
        found = msgspec.json.decode(mark_file(directory, plan, cell).read_bytes(), type=_Mark)
    except (OSError, msgspec.DecodeError):
        return False
    return found == _mark(plan, cell) and all(
        row_file(directory, each, plan, cell).is_file() for each in TABLES
    )


def row_file(directory: Path, table: str, plan: CostPlan, cell: CostCell) -> Path:
    """Where the rows of a cell are."""
    return directory / table / f"{_file_name(plan, cell)}.parquet"


def mark_file(directory: Path, plan: CostPlan, cell: CostCell) -> Path:
    """Where the mark of a finished cell is."""
    return directory / f"{_file_name(plan, cell)}.json"


def _file_name(plan: CostPlan, cell: CostCell) -> str:
    return "_".join(map(str, (cell.name, plan.deliveries, plan.dropped, plan.payload_bytes, plan.seed)))


def store_cell(directory: Path, plan: CostPlan, cell: CostCell, reports: Sequence[CostReport]) -> None:
    """Write the rows of a cell for the pipeline, and then the mark that they are whole."""
    mark = mark_file(directory, plan, cell)
    mark.unlink(missing_ok=True)
    rows_of = (delivery_rows, step_rows, member_rows, memory_rows)
    for table, columns in zip(TABLES, (of_table(reports) for of_table in rows_of), strict=True):
        rows = len(columns["member"])
        of_cell = {name: [value] * rows for name, value in msgspec.structs.asdict(cell).items()}
        _write_whole(row_file(directory, table, plan, cell), _arrow_table(of_cell | columns))
    begun = mark.with_suffix(".part")
    begun.write_bytes(msgspec.json.encode(_mark(plan, cell)))
    begun.replace(mark)


def _write_whole(path: Path, table: "pyarrow.Table") -> None:
    """Write a table to a file that appears when it is whole."""
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_suffix(".part")
    parquet.write_table(table, begun)
    begun.replace(path)


def _arrow_table(columns: Columns) -> "pyarrow.Table":
    import pyarrow

    types = dict.fromkeys(_TEXT, pyarrow.string()) | dict.fromkeys(_FRACTIONS, pyarrow.float64())
    schema = pyarrow.schema([(name, types.get(name, pyarrow.int64())) for name in columns])
    return pyarrow.table(columns, schema=schema)


def delivery_rows(reports: Sequence[CostReport]) -> Columns:
    """One row for each message that its sender delivered."""
    return {
        "member": _repeated([len(report.took_ns) for report in reports]),
        "position": _joined([report.positions for report in reports]),
        "priority": _joined([report.priorities for report in reports]),
        "took_ns": _joined([report.took_ns for report in reports]),
    }


def step_rows(reports: Sequence[CostReport]) -> Columns:
    """One row for each step in which messages entered or left the queue where priorities act."""
    parts: list[tuple[str, PartTimes]] = []
    of_member: list[int] = []
    for report in reports:
        assert report.entered is not None and report.left is not None
        parts += (ENTER, report.entered), (LEAVE, report.left)
        of_member.append(len(report.entered.counts) + len(report.left.counts))
    return {
        "member": _repeated(of_member),
        "part": _joined([[name] * len(part.counts) for name, part in parts]),
        "messages": _joined([part.counts for _, part in parts]),
        "took_ns": _joined([part.took_ns for _, part in parts]),
    }


def member_rows(reports: Sequence[CostReport]) -> Columns:
    """One row for each member: what it used. `foreign_cores` is the load that others put on the machine."""
    used = [report.resources for report in reports if report.resources is not None]
    own = sum(each.cpu_seconds for each in used)
    columns: Columns = {name: [getattr(each, name) for each in used] for name in Resources.__struct_fields__}
    columns["foreign_cores"] = [foreign_cores(each.machine_seconds, own, each.seconds) for each in used]
    return {"member": list(range(len(used)))} | columns


def memory_rows(reports: Sequence[CostReport]) -> Columns:
    """One row for each time at which the resident memory of a member was read."""
    samples = [report.memory for report in reports if report.memory is not None]
    return {
        "member": _repeated([len(each.after_seconds) for each in samples]),
        "after_seconds": _joined([each.after_seconds for each in samples]),
        "resident_bytes": _joined([each.resident_bytes for each in samples]),
    }


def _mark(plan: CostPlan, cell: CostCell) -> _Mark:
    return _Mark(
        cell=cell,
        deliveries=plan.deliveries,
        dropped=plan.dropped,
        payload_bytes=plan.payload_bytes,
        seed=plan.seed,
    )


def _repeated(counts: Sequence[int]) -> list[int]:
    """The index of each member, as often as it has rows."""
    return [index for index, count in enumerate(counts) for _ in range(count)]


def _joined(lists: Sequence[list[Any]]) -> list[Any]:
    return [each for part in lists for each in part]
