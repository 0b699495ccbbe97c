"""The saturation study: which groups it runs, and what it makes of a run."""

from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow import parquet

from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.core.priority import BACKGROUND, URGENT
from priocast.simulation.workload import planned_broadcasts
from priocast.study.saturation import (
    BURST,
    BURSTS,
    EVERYBODY,
    LAN,
    OTHERS,
    PLAIN,
    PRIORITISED,
    PROCESSES,
    SLOW,
    SLOW_MEMBER,
    SLOW_US,
    STEADY,
    WAN,
    Deliveries,
    SaturationCell,
    SaturationPlan,
    SaturationResult,
    counted_period,
    rate_of,
    result_of_members,
)
from priocast.study.saturation_cells import (
    PlannedCell,
    cell_file,
    planned_cells,
    result_of_reports,
    store_cell,
    stored_cells,
)
from priocast.study.saturation_simulated import scenario_of, simulate_cell
from priocast.study.saturation_worker import SaturationReport
from priocast.study.wan import percentile

UB = "sequencer-ub"
CELL = SaturationCell(LAN, STEADY, 3, 64, UB, PRIORITISED, 1_000)


def plan_of(**options: object) -> SaturationPlan:
    return SaturationPlan(orders=(UB,), messages=300, **options)  # type: ignore[arg-type]


def cell_of(**changes: object) -> SaturationCell:
    fields = {name: getattr(CELL, name) for name in CELL.__struct_fields__}
    return SaturationCell(**(fields | changes))


def test_all_combinations_are_cells() -> None:
    plan = plan_of(places=(LAN, WAN), shapes=(STEADY, BURSTS), variants=(PLAIN, PRIORITISED), loads=(100,))
    cells = list(plan.cells())
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * len(plan.members)


def test_groups_of_processes_that_are_too_large_are_left_out() -> None:
    """Those of the simulator are not (issue 17: one study has all sizes)."""
    plan = plan_of(places=(PROCESSES, LAN), members=(2, 16, 256), loads=(1_000,))
    assert [(cell.place, cell.members) for cell in plan.cells()] == [
        (PROCESSES, 2),
        (PROCESSES, 16),
        (LAN, 2),
        (LAN, 16),
        (LAN, 256),
    ]


def test_loads_last_long_enough_and_bursts_are_whole() -> None:
    plan = plan_of()
    assert plan.messages_of(CELL) == 100
    assert plan.messages_of(cell_of(load=90_000)) == 9_000, "0.3 s"
    assert plan.messages_of(cell_of(load=1_000_000)) * 3 == pytest.approx(plan.messages_max, rel=0.01)
    assert plan.messages_of(cell_of(shape=BURSTS)) == 21 * BURST, "64 bursts of the group"
    assert plan.messages_of(cell_of(shape=BURSTS, load=90_000)) % BURST == 0


@pytest.mark.parametrize("shape", [STEADY, BURSTS])
@pytest.mark.parametrize("members", [2, 4, 64, 256])
def test_every_member_has_enough_messages_for_a_rate(shape: str, members: int) -> None:
    cell = cell_of(shape=shape, members=members)
    assert plan_of(members=(members,)).messages_of(cell) >= 8 * cell.burst


def test_whole_intervals_between_bursts_count() -> None:
    """The last burst counts with the pause after it: eight bursts take eight intervals, not seven."""
    bursts = [(sender, phase + 100 * number) for sender, phase in ((0, 7), (1, 50)) for number in range(8)]
    period = counted_period(bursts, interval_ns=100)
    assert (period.begin, period.end) == (207, 807)
    assert sum(due in period for _, due in bursts) == 2 * 6
    assert counted_period([(0, 5)], interval_ns=10).end == 15, "a single burst lasts until the next"


def test_neither_a_backlog_of_the_warm_up_nor_chance_counts() -> None:
    assert rate_of(1_000, delivered=120, due=75) == 1_000
    assert rate_of(1_000, delivered=30, due=75) == pytest.approx(400)


@pytest.mark.parametrize("load", [400, 1_000])
def test_bursts_are_delivered_as_offered(load: int) -> None:
    result = simulate_cell(plan_of(), cell_of(shape=BURSTS, members=4, load=load))
    assert result.deliveries[EVERYBODY].delivered_per_second == pytest.approx(load, rel=0.02)


def test_simulated_groups_get_the_load_that_is_printed() -> None:
    """Seven members share 1,000 messages per second: 142.86 each."""
    workload = scenario_of(plan_of(), cell_of(members=7, load=1_000)).workload
    assert sum(workload.rate_per_second) == pytest.approx(1_000)
    assert sum(scenario_of(plan_of(), cell_of(members=7, load=5)).workload.rate_per_second) == pytest.approx(
        5
    )


def test_bursts_of_the_simulator_are_at_regular_intervals() -> None:
    cell = cell_of(shape=BURSTS)
    scenario = scenario_of(plan_of(), cell)
    times = sorted({planned.time for planned in planned_broadcasts(scenario, "b")})
    assert len(times) == plan_of().messages_of(cell) // BURST
    assert {after - before for before, after in pairwise(times)} == {cell.interval_ns}


def test_one_member_is_slow() -> None:
    assert scenario_of(plan_of(), cell_of(shape=SLOW_MEMBER)).workload.consume_us == (0, 0, SLOW_US)
    assert scenario_of(plan_of(), CELL).workload.consume_us == (0, 0, 0)


def test_what_is_offered_is_delivered_until_the_group_is_saturated() -> None:
    relaxed = simulate_cell(plan_of(), CELL).deliveries[EVERYBODY]
    assert relaxed.delivered_per_second == pytest.approx(1_000, rel=0.02)
    assert len(relaxed.took_ns) == len(relaxed.priorities)
    assert 0 < percentile(relaxed.took_ns, 99) < 5_000_000
    plan = SaturationPlan(orders=(UB,), messages=3_000)
    saturated = simulate_cell(plan, cell_of(shape=SLOW_MEMBER, load=4_000)).deliveries[SLOW]
    assert saturated.delivered_per_second == pytest.approx(1_000_000 / SLOW_US, rel=0.1)
    urgent, background = (
        [
            took
            for took, priority in zip(saturated.took_ns, saturated.priorities, strict=True)
            if priority == chosen
        ]
        for chosen in (URGENT, BACKGROUND)
    )
    assert percentile(urgent, 99) < percentile(background, 50) / 5


@pytest.mark.parametrize("order", ["reorder", "reorder-locks"])
def test_reordering_keeps_up_with_a_stream_of_many_priorities(order: str) -> None:
    """Without rounds, some urgent message would be undecided at any time (decision 78)."""
    plan = SaturationPlan(orders=(order,), messages=1_000, messages_max=6_400)
    result = simulate_cell(plan, cell_of(order=order, members=4, load=64_000)).deliveries[EVERYBODY]
    assert result.delivered_per_second == pytest.approx(64_000, rel=0.1)
    assert percentile(result.took_ns, 99) < 5_000_000


def test_a_plain_group_has_the_same_messages_and_orders_them_as_they_come() -> None:
    plan = SaturationPlan(orders=(UB,), messages=3_000)
    saturated = simulate_cell(plan, cell_of(shape=SLOW_MEMBER, load=4_000, variant=PLAIN)).deliveries[SLOW]
    urgent = [
        took
        for took, priority in zip(saturated.took_ns, saturated.priorities, strict=True)
        if priority == URGENT
    ]
    assert percentile(urgent, 99) > 500_000_000, "they wait for all others"


def test_the_slow_member_is_apart_from_the_others() -> None:
    slow = simulate_cell(plan_of(), cell_of(shape=SLOW_MEMBER, load=4_000)).deliveries
    assert set(slow) == {SLOW, OTHERS}
    assert len(slow[OTHERS].took_ns) == 2 * len(slow[SLOW].took_ns)
    assert percentile(slow[SLOW].took_ns, 50) > percentile(slow[OTHERS].took_ns, 50)
    members = [Deliveries(rate, [URGENT], [took]) for rate, took in ((90.0, 1), (80.0, 2), (10.0, 30))]
    result = result_of_members(cell_of(shape=SLOW_MEMBER), members).deliveries
    assert result[SLOW] == members[-1]
    assert result[OTHERS] == Deliveries(80.0, [URGENT, URGENT], [1, 2])
    assert result_of_members(CELL, members).deliveries[EVERYBODY].delivered_per_second == 10.0


def test_a_sample_has_few_rows_of_everything() -> None:
    many = Deliveries(1.0, [1, 2] * 60_000, [1, 2] * 60_000).sample()
    assert 20_000 < len(many.took_ns) == len(many.priorities) <= 40_000


def test_the_foreign_load_of_processes_is_stored() -> None:
    report = SaturationReport(
        delivered=1,
        deliveries=Deliveries(10.0, [URGENT], [1]),
        seconds=2.0,
        cpu_seconds=0.5,
        machine_seconds=3.0,
    )
    reports = [report, report]
    assert result_of_reports(CELL, reports).foreign_cores == pytest.approx((3.0 - 2 * 0.5) / 2.0)


def test_a_file_is_named_by_all_that_decides_its_rows(tmp_path: Path) -> None:
    names = {
        cell_file(tmp_path, plan, cell)
        for plan in (plan_of(), plan_of(seed=2), SaturationPlan(orders=(UB,), messages=303))
        for cell in (CELL, cell_of(load=800), cell_of(variant=PLAIN))
    }
    assert len(names) == 9


def test_the_rows_of_a_cell_appear_together(tmp_path: Path) -> None:
    cell = cell_of(order="time-parts/sequencer-ub", shape=SLOW_MEMBER)
    path = cell_file(tmp_path / "cells", plan_of(), cell)
    slow, others = Deliveries(9.5, [URGENT], [1_000]), Deliveries(990.5, [BACKGROUND, URGENT], [2, 3])
    store_cell(PlannedCell(plan_of(), cell, path), SaturationResult({SLOW: slow, OTHERS: others}, 0.25))
    rows = parquet.read_table(path).to_pylist()
    assert [(row["who"], row["priority"], row["took_ns"]) for row in rows] == [
        (SLOW, URGENT, 1_000),
        (OTHERS, BACKGROUND, 2),
        (OTHERS, URGENT, 3),
    ]
    assert rows[0]["delivered_per_second"] == 9.5 and rows[1]["order"] == "time-parts/sequencer-ub"
    assert (rows[0]["messages"], rows[0]["seed"], rows[0]["foreign_cores"]) == (300, 1, 0.25)
    assert "Python" in rows[0]["machine"]
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    (path.parent / "of-another-format.parquet").touch()
    assert stored_cells(path.parent) == {path: cell}


def test_plans_share_cells(tmp_path: Path) -> None:
    plans = [plan_of(members=(2, 4), loads=(100,)), plan_of(members=(4, 8), loads=(100,))]
    assert [each.cell.members for each in planned_cells(plans, tmp_path)] == [2, 4, 8]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"members": (1,)}, "members is 1: from 2"),
        ({"members": (65,), "places": (PROCESSES,)}, "from 2 to 64"),
        ({"messages_max": 0}, "messages is 300, 0: from 40"),
        ({"members": ()}, "members is empty"),
        ({"payload_bytes": (8,)}, "payload_bytes is 8: from 16"),
        ({"loads": (0,)}, "loads is 0: from 1 to"),
        ({"places": ("moon",)}, "places has 'moon': choose among lan, wan, processes"),
        ({"shapes": ("odd",)}, "shapes has 'odd'"),
        ({"variants": ("both",)}, "variants has 'both'"),
    ],
)
def test_invalid_plans_are_rejected(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        plan_of(**options)


def test_unknown_orders_are_rejected() -> None:
    with pytest.raises(UnknownProtocol, match="nonsense"):
        SaturationPlan(orders=("nonsense",))
