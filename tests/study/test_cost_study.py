"""The cost study: which groups are measured, how rows are kept, and one small group of real processes."""

from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

from priocast.core.errors import InvalidOption
from priocast.study.cost import CostCell, CostPlan, measure_cell
from priocast.study.cost_files import (
    DELIVERIES,
    STEPS,
    delivery_rows,
    is_finished,
    mark_file,
    member_rows,
    memory_rows,
    row_file,
    step_rows,
    store_cell,
)
from priocast.study.cost_worker import CostReport, MemorySamples, PartTimes, Resources

CELL = CostCell("sequencer-ub", "plain", 2, 100)
PLAN = CostPlan(members=(2,), rates=(100,), deliveries=4, dropped=1)
USED = Resources(
    seconds=2.0,
    cpu_seconds=0.5,
    machine_seconds=3.0,
    collections=4,
    memory_bytes=10,
    memory_bytes_max=12,
)


def reports() -> list[CostReport]:
    return [
        CostReport(
            delivered=4,
            digest="same",
            took_ns=[10 * index, 20 * index],
            positions=[index, 2 + index],
            priorities=[7, 8],
            entered=PartTimes([1, 3], [100, 200]),
            left=PartTimes([4], [index]),
            resources=USED,
            memory=MemorySamples([0.0, 1.5], [10, 14 + index]),
        )
        for index in (0, 1)
    ]


def test_the_plan_of_the_paper_has_sixty_cells_and_the_shortest_runs_come_first() -> None:
    cells = list(CostPlan().cells())
    assert len(cells) == len(set(cells)) == 60
    assert cells[0].name == "sequencer-ub-plain-8-100"
    assert cells[1].name == "sequencer-ub-prioritised-8-100"
    assert cells[-1].name == "causal-history-prioritised-4-10"
    assert not cells[0].options.prioritised
    assert cells[1].options.prioritised


def test_the_token_ring_sends_one_message_in_a_visit_as_in_the_paper() -> None:
    assert CostCell("token-ring", "plain", 4, 10).options.burst == 1
    assert CELL.options.burst is None


@pytest.mark.parametrize(
    "bad",
    [
        {"members": (1,)},
        {"members": ()},
        {"rates": (0,)},
        {"deliveries": 0},
        {"dropped": 32_000},
        {"payload_bytes": 3},
    ],
)
def test_impossible_plans_are_rejected(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=f"{next(iter(bad))} is "):
        CostPlan(**bad)  # type: ignore[arg-type]


def test_the_rows_of_all_members_are_joined() -> None:
    assert delivery_rows(reports()) == {
        "member": [0, 0, 1, 1],
        "position": [0, 2, 1, 3],
        "priority": [7, 8, 7, 8],
        "took_ns": [0, 0, 10, 20],
    }
    steps = step_rows(reports())
    assert steps["member"] == [0, 0, 0, 1, 1, 1]
    assert steps["part"] == ["enter", "enter", "leave"] * 2
    assert (steps["messages"], steps["took_ns"]) == ([1, 3, 4] * 2, [100, 200, 0, 100, 200, 1])
    assert memory_rows(reports()) == {
        "member": [0, 0, 1, 1],
        "after_seconds": [0.0, 1.5, 0.0, 1.5],
        "resident_bytes": [10, 14, 10, 15],
    }
    members = member_rows(reports())
    assert members["collections"] == [4, 4]
    assert members["foreign_cores"] == [1.0, 1.0], "3 s of the machine in 2 s, of which 1 s is the members'"


def test_a_cell_is_finished_only_for_the_same_plan_and_with_all_its_rows(tmp_path: Path) -> None:
    assert not is_finished(tmp_path, PLAN, CELL)
    store_cell(tmp_path, PLAN, CELL, reports())
    assert is_finished(tmp_path, PLAN, CELL)
    assert is_finished(tmp_path, msgspec.structs.replace(PLAN, rates=(10, 100)), CELL), "other cells differ"
    assert not is_finished(tmp_path, msgspec.structs.replace(PLAN, dropped=0), CELL)
    assert not is_finished(tmp_path, PLAN, msgspec.structs.replace(CELL, rate=10))
    row_file(tmp_path, DELIVERIES, PLAN, CELL).unlink()
    assert not is_finished(tmp_path, PLAN, CELL)


@pytest.mark.parametrize("field", ["deliveries", "dropped", "payload_bytes", "seed"])
def test_a_cell_of_another_plan_is_kept_beside_it(tmp_path: Path, field: str) -> None:
    other = msgspec.structs.replace(PLAN, **{field: getattr(PLAN, field) + 1})
    store_cell(tmp_path, PLAN, CELL, reports())
    rows = row_file(tmp_path, DELIVERIES, PLAN, CELL).read_bytes()
    assert not is_finished(tmp_path, other, CELL)
    store_cell(tmp_path, other, CELL, [])
    assert is_finished(tmp_path, PLAN, CELL) and is_finished(tmp_path, other, CELL)
    assert row_file(tmp_path, DELIVERIES, PLAN, CELL).read_bytes() == rows


def test_a_cell_whose_rows_are_being_written_again_is_not_finished(tmp_path: Path) -> None:
    store_cell(tmp_path, PLAN, CELL, reports())
    rows = row_file(tmp_path, STEPS, PLAN, CELL).read_bytes()
    row_file(tmp_path, STEPS, PLAN, CELL).with_suffix(".part").mkdir()
    with pytest.raises(OSError, match="directory"):
        store_cell(tmp_path, PLAN, CELL, reports())
    assert not is_finished(tmp_path, PLAN, CELL)
    assert not mark_file(tmp_path, PLAN, CELL).exists()
    assert row_file(tmp_path, STEPS, PLAN, CELL).read_bytes() == rows


def test_a_table_without_rows_has_the_same_types(tmp_path: Path) -> None:
    nothing = PartTimes([], [])
    without = [msgspec.structs.replace(report, entered=nothing, left=nothing) for report in reports()]
    other = msgspec.structs.replace(CELL, order="causal-history")
    store_cell(tmp_path, PLAN, CELL, reports())
    store_cell(tmp_path, PLAN, other, without)
    with_rows, empty = (parquet.read_schema(row_file(tmp_path, STEPS, PLAN, cell)) for cell in (CELL, other))
    assert with_rows == empty


@pytest.mark.processes
def test_every_member_records_its_own_messages_and_the_load_goes_on() -> None:
    plan = CostPlan(members=(3,), rates=(100,), deliveries=60, dropped=20)
    counts: list[int] = []
    found = measure_cell(plan, CostCell("sequencer-ub", "prioritised", 3, 100), counts.append)
    assert counts[-1] == 60
    assert {report.delivered for report in found} == {60}
    rows = delivery_rows(found)
    assert sorted(rows["position"]) == list(range(60)), "every delivery belongs to one sender"
    assert min(rows["took_ns"]) > 0
    assert len(set(rows["priority"])) > 10
    assert set(step_rows(found)["member"]) == {0}, "only the sequencer orders"
    used = [report.resources for report in found]
    assert all(each is not None and each.cpu_seconds > 0 and each.memory_bytes > 0 for each in used)
    assert min(memory_rows(found)["resident_bytes"]) > 0
