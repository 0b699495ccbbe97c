"""The tables and figures of the saturation study, on rows whose results are known."""

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from priocast.core.priority import BACKGROUND, URGENT
from priocast.pipeline.figures.saturation import (
    ORDERS,
    draw_over_members,
    draw_over_payload,
    draw_saturation,
    highest_rates,
    lowest_loads,
)
from priocast.pipeline.figures.style import (
    looks_of_runs,
    new_figure,
    short_count,
    use_log_counts,
    use_log_milliseconds,
)
from priocast.pipeline.saturation_report import (
    GroupKey,
    by_group,
    figure_names,
    overviews,
    study_saturation,
)
from priocast.pipeline.tables.saturation import SaturationRow, saturation_rows
from priocast.protocols import PROTOCOLS
from priocast.study.saturation import (
    EVERYBODY,
    LAN,
    OTHERS,
    PRIORITISED,
    PROCESSES,
    SLOW,
    SLOW_MEMBER,
    STEADY,
    Deliveries,
    SaturationCell,
    SaturationPlan,
    SaturationResult,
)
from priocast.study.saturation_cells import planned_cells, store_cell, stored_cells

UB = SaturationRow(
    place=LAN,
    shape=STEADY,
    members=4,
    payload_bytes=64,
    who=EVERYBODY,
    order="sequencer-ub",
    variant=PRIORITISED,
    load=1_000,
    messages=4_000,
    seed=1,
    machine="2 x Some Processor",
    foreign_cores=None,
    delivered_per_second=990.0,
    deliveries=100,
    p50_ms=0.25,
    p99_ms=0.5,
    urgent_p99_ms=None,
)
MANY = [
    replace(UB, order=order, variant=variant, load=load, delivered_per_second=min(load, 30_000))
    for order in PROTOCOLS
    for variant in ("plain", PRIORITISED)
    for load in (1_000, 16_000, 256_000)
]


def labels_of(axes: Axes, axis: str) -> list[str]:
    """The labels of the ticks that are in the range of an axis."""
    low, high = sorted(axes.get_xlim() if axis == "x" else axes.get_ylim())
    chosen = axes.xaxis if axis == "x" else axes.yaxis
    places = [place for place in chosen.get_majorticklocs() if low <= place <= high]
    return chosen.get_major_formatter().format_ticks(places)


def drawn(low: float, high: float) -> Figure:
    figure, (axes,) = new_figure(3.0)
    axes.plot([1, 2], [low, high])
    use_log_milliseconds(axes, "y")
    axes.set_ylim(low, high)
    return figure


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.5, 2_000, ["1", "10", "100", "1,000"]),
        (0.15, 25, ["0.2", "0.5", "1", "2", "5", "10", "20"]),
        (0.19, 0.65, ["0.2", "0.4", "0.6"]),
        (0.08, 0.6, ["0.1", "0.2", "0.5"]),
    ],
)
def test_every_range_has_labels(low: float, high: float, labels: list[str]) -> None:
    """With powers of ten alone, less than a decade has none."""
    assert labels_of(drawn(low, high).axes[0], "y") == labels


def test_counts_are_short() -> None:
    assert [short_count(value) for value in (2, 500, 1_000, 2_500, 1_000_000)] == [
        "2",
        "500",
        "1k",
        "2.5k",
        "1M",
    ]
    _, (axes,) = new_figure(3.0)
    axes.plot([100, 1_000_000], [1, 2])
    use_log_counts(axes, "x")
    assert labels_of(axes, "x") == ["100", "1k", "10k", "100k", "1M"]


def test_all_orders_can_be_distinguished() -> None:
    assert tuple(PROTOCOLS) == ORDERS
    looks = looks_of_runs(PROTOCOLS)
    assert len({tuple(look.items()) for look in looks.values()}) == len(PROTOCOLS)
    figure = draw_saturation(MANY)
    assert len(figure.axes) == 6, "a row of panels for each variant"
    lines = [line for line in figure.axes[0].lines if line.get_label() in PROTOCOLS]
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}) == 16
    (alone,) = draw_saturation([replace(UB, order="adaptive")]).axes[1].lines
    assert alone.get_color() == looks["adaptive"]["color"], "the same in all figures"


def test_all_panels_have_plain_numbers() -> None:
    """Axes that share their range do not reset each other's labels."""
    figure = draw_saturation(MANY)
    texts = {text for axes in figure.axes for axis in "xy" for text in labels_of(axes, axis)}
    assert texts and not any("$" in text for text in texts)


def test_rates_over_sizes_are_the_highest_and_times_those_of_the_lowest_shared_load() -> None:
    rows = [
        replace(UB, members=members, load=load, delivered_per_second=rate)
        for members, load, rate in ((2, 500, 500.0), (2, 1_000, 900.0), (2, 9_000, 800.0), (4, 1_000, 700.0))
    ]
    assert [row.delivered_per_second for row in highest_rates(rows, "members")] == [900.0, 700.0]
    assert [row.load for row in lowest_loads(rows, "members")] == [1_000, 1_000]
    assert [row.load for row in lowest_loads([*rows[:1], *rows[3:]], "members")] == [500, 1_000]
    assert len(draw_over_members(rows).axes) == 3
    large = [replace(UB, payload_bytes=65_536, load=100), UB]
    figure = draw_over_payload(large)
    assert labels_of(figure.axes[0], "x") == ["64", "64 Ki"]


def test_there_is_an_overview_where_there_are_several_sizes() -> None:
    rows = [UB, replace(UB, members=16), replace(UB, payload_bytes=1_024)]
    names = {overview.name: len(of_figure) for overview, of_figure in overviews(rows).items()}
    assert names == {
        "saturation-lan-steady-64-bytes-over-members": 2,
        "saturation-lan-steady-4-members-over-bytes": 2,
    }
    assert set(names) <= set(figure_names(list(by_group(rows))))
    assert not overviews([UB])


@pytest.mark.spark
def test_cells_of_several_commands_are_reported_and_the_longest_run_of_each(
    spark: SparkSession, tmp_path: Path
) -> None:
    plans = [
        SaturationPlan(orders=("sequencer-ub",), members=(4,), loads=(1_000,), messages=messages)
        for messages in (400, 4_000)
    ]
    slow = SaturationPlan(orders=("reorder",), members=(4,), loads=(500,), shapes=(SLOW_MEMBER,))
    for planned in planned_cells([*plans, slow], tmp_path / "cells"):
        took_ns = planned.plan.messages * 1_000
        part = Deliveries(900.0, [URGENT, BACKGROUND], [took_ns, 3 * took_ns])
        parts = {SLOW: Deliveries(9.0, [BACKGROUND], [7_000_000]), OTHERS: part}
        of_cell = parts if planned.plan is slow else {EVERYBODY: part}
        store_cell(planned, SaturationResult(of_cell, 0.5 if planned.plan is slow else None))
    rows = saturation_rows(spark, list(stored_cells(tmp_path / "cells")))
    assert [(row.order, row.who, row.messages) for row in rows] == [
        ("reorder", OTHERS, 4_000),
        ("reorder", SLOW, 4_000),
        ("sequencer-ub", EVERYBODY, 4_000),
    ]
    assert (rows[1].delivered_per_second, rows[1].p50_ms, rows[1].urgent_p99_ms) == (9.0, 7.0, None)
    assert (rows[2].p50_ms, rows[2].foreign_cores, rows[0].foreign_cores) == (8.0, None, 0.5)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_report_says_how_it_was_measured(tmp_path: Path) -> None:
    plan = SaturationPlan(orders=("sequencer-ub",), members=(2, 4), loads=(1_000,), places=(LAN, PROCESSES))
    for planned in planned_cells([plan], tmp_path / "cells"):
        foreign = 0.75 if planned.cell.place == PROCESSES else None
        store_cell(planned, SaturationResult({EVERYBODY: Deliveries(9.0, [URGENT], [1_000])}, foreign))
    study_saturation(list(stored_cells(tmp_path / "cells")), tmp_path, assumptions=["As assumed."])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("seed 1", "4,000 to 4,000 messages", "As assumed.", "Python", "0.75 processors busy"):
        assert text in page, text
    assert "| 4,000 | 1 | 0.75 |" in (tmp_path / "tables.md").read_text(encoding="utf-8")
    keys = [GroupKey(place, STEADY, size, 64, EVERYBODY) for place in (LAN, PROCESSES) for size in (2, 4)]
    assert {path.stem for path in tmp_path.glob("*.svg")} <= set(figure_names(keys))
    assert (tmp_path / "saturation-lan-steady-64-bytes-over-members.svg").is_file()


def test_a_cell_has_a_row_for_each_part() -> None:
    cell = SaturationCell(LAN, SLOW_MEMBER, 4, 64, "reorder", PRIORITISED, 500)
    assert cell.parts == (SLOW, OTHERS)
