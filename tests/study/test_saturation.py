"""The saturation study: which groups it runs, and what it makes of a run."""

from pathlib import Path

import pytest
from pyarrow import parquet

from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.core.priority import BACKGROUND, URGENT
from priocast.study.saturation import (
    BURST,
    BURSTS,
    LAN,
    PLAIN,
    PRIORITISED,
    PROCESSES,
    SLOW_MEMBER,
    SLOW_US,
    STEADY,
    WAN,
    SaturationCell,
    SaturationPlan,
    SaturationResult,
)
from priocast.study.saturation_cells import cell_file, store_cell
from priocast.study.saturation_simulated import scenario_of, simulate_cell
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


def test_loads_last_long_enough_and_bursts_are_whole() -> None:
    plan = plan_of()
    assert plan.messages_of(CELL) == 100
    assert plan.messages_of(cell_of(load=90_000)) == 3_000, "a tenth of a second"
    assert plan.messages_of(cell_of(shape=BURSTS)) == BURST
    assert plan.messages_of(cell_of(shape=BURSTS, load=90_000)) % BURST == 0


def test_one_member_is_slow() -> None:
    assert scenario_of(plan_of(), cell_of(shape=SLOW_MEMBER)).workload.consume_us == (0, 0, SLOW_US)
    assert scenario_of(plan_of(), CELL).workload.consume_us == (0, 0, 0)


def test_what_is_offered_is_delivered_until_the_group_is_saturated() -> None:
    relaxed = simulate_cell(plan_of(), CELL)
    assert relaxed.delivered_per_second == pytest.approx(1_000, rel=0.2)
    assert len(relaxed.took_ns) == len(relaxed.priorities)
    assert 0 < percentile(relaxed.took_ns, 99) < 5_000_000
    plan = SaturationPlan(orders=(UB,), messages=3_000)
    saturated = simulate_cell(plan, cell_of(shape=SLOW_MEMBER, load=4_000))
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
    plan = SaturationPlan(orders=(order,), messages=1_000)
    result = simulate_cell(plan, cell_of(order=order, members=4, load=64_000))
    assert result.delivered_per_second == pytest.approx(64_000, rel=0.1)
    assert percentile(result.took_ns, 99) < 5_000_000


def test_a_plain_group_has_the_same_messages_and_orders_them_as_they_come() -> None:
    plan = SaturationPlan(orders=(UB,), messages=3_000)
    saturated = simulate_cell(plan, cell_of(shape=SLOW_MEMBER, load=4_000, variant=PLAIN))
    urgent = [
        took
        for took, priority in zip(saturated.took_ns, saturated.priorities, strict=True)
        if priority == URGENT
    ]
    assert percentile(urgent, 99) > 500_000_000, "they wait for all others"


def test_a_sample_has_few_rows_of_everything() -> None:
    many = SaturationResult(1.0, [1, 2] * 300_000, [1, 2] * 300_000).sample()
    assert 100_000 < len(many.took_ns) == len(many.priorities) <= 200_000


def test_a_file_is_named_by_all_that_decides_its_rows(tmp_path: Path) -> None:
    names = {
        cell_file(tmp_path, plan, cell)
        for plan in (plan_of(), plan_of(seed=2), SaturationPlan(orders=(UB,), messages=301))
        for cell in (CELL, cell_of(load=2_000), cell_of(variant=PLAIN))
    }
    assert len(names) == 9
    path = cell_file(tmp_path / "cells", plan_of(), cell_of(order="time-parts/sequencer-ub"))
    assert path.parent == tmp_path / "cells"
    store_cell(path, CELL, SaturationResult(990.5, [URGENT, BACKGROUND], [1_000_000, 2_000_000]))
    rows = parquet.read_table(path).to_pylist()
    assert [(row["priority"], row["took_ns"]) for row in rows] == [
        (URGENT, 1_000_000),
        (BACKGROUND, 2_000_000),
    ]
    assert rows[0]["delivered_per_second"] == 990.5 and rows[1]["order"] == UB
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"members": (1,)}, "members is 1: from 2"),
        ({"members": (65,), "places": (PROCESSES,)}, "from 2 to 64"),
        ({"members": ()}, "members is empty"),
        ({"payload_bytes": (8,)}, "payload_bytes is 8: from 16"),
        ({"loads": (3,)}, "loads is 3: from 16"),
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
