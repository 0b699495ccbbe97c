"""The tables and figures of the cost study, on rows whose results are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from priocast.pipeline.cost_paper import COLUMNS, PAPER, column_of
from priocast.pipeline.cost_report import by_members, figure_names, study_cost
from priocast.pipeline.cost_tables import summary_table, text_tables
from priocast.pipeline.figures.cost import draw_delivery_times, draw_memory
from priocast.pipeline.tables.cost import CellFiles, CostRow, MemoryLine, cost_rows, memory_lines

UB = CostRow(
    order="sequencer-ub",
    variant="plain",
    members=4,
    rate=100,
    messages=10,
    mean_ms=1.5,
    first_ms=0.5,
    median_ms=1.0,
    third_ms=2.0,
    p99_ms=9.0,
    prioritisation_us=3.25,
    prioritisation_median_us=3.0,
    collections=2.5,
    memory_mib=40.0,
    memory_max_mib=41.0,
    cpu_us=120.0,
    foreign_cores=0.1,
)
ROWS = [
    UB,
    replace(UB, variant="prioritised"),
    replace(UB, order="causal-history", prioritisation_us=None, prioritisation_median_us=None),
    replace(UB, order="reorder"),
    replace(UB, members=3),
]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    cell = {"order": "sequencer-ub", "variant": "plain", "members": 4, "rate": 100}
    parquet.write_table(pyarrow.Table.from_pylist([cell | row for row in rows]), path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> CellFiles:
    took_ms = [50, 1, 2, 3, 4]
    used: dict[str, object] = {"memory_bytes": 1 << 20, "cpu_seconds": 0.04, "foreign_cores": 0.5}
    return CellFiles(
        [
            write(
                tmp_path / "deliveries.parquet",
                [{"position": index, "took_ns": each * 1_000_000} for index, each in enumerate(took_ms)],
            )
        ],
        [
            write(
                tmp_path / "steps.parquet",
                [
                    {"part": "enter", "messages": 1, "took_ns": 2_000},
                    {"part": "enter", "messages": 3, "took_ns": 2_000},
                    {"part": "leave", "messages": 4, "took_ns": 8_000},
                ],
            )
        ],
        [
            write(
                tmp_path / "members.parquet",
                [
                    used | {"collections": 2, "memory_bytes_max": 2 << 20},
                    used | {"collections": 3, "memory_bytes_max": 3 << 20},
                ],
            )
        ],
        [
            write(
                tmp_path / "memory.parquet",
                [
                    {"member": member, "after_seconds": second, "resident_bytes": (1 + member + step) << 20}
                    for member in (0, 1)
                    for step, second in enumerate((0.0, 1.25, 2.5))
                ],
            )
        ],
    )


@pytest.mark.spark
def test_the_first_deliveries_are_dropped_and_the_steps_count_per_message(
    spark: SparkSession, files: CellFiles
) -> None:
    (row,) = cost_rows(spark, files, deliveries=5, dropped=1)
    assert row.cell == ("sequencer-ub", "plain", 4, 100)
    assert (row.messages, row.mean_ms, row.median_ms) == (4, 2.5, 2.5)
    assert (row.first_ms, row.third_ms) == (1.75, 3.25)
    assert row.prioritisation_us == 1.0 + 2.0, "4 µs for 4 messages that enter, 8 µs for 4 that leave"
    assert row.prioritisation_median_us == pytest.approx((2.0 + 2 / 3) / 2 + 2.0)
    assert (row.collections, row.memory_mib, row.memory_max_mib) == (2.5, 1.0, 3.0)
    assert (row.cpu_us, row.foreign_cores) == (10_000.0, 0.5)


@pytest.mark.spark
def test_memory_over_time_is_the_mean_of_the_members(spark: SparkSession, files: CellFiles) -> None:
    assert memory_lines(spark, files) == [
        MemoryLine("sequencer-ub", "plain", 4, 100, [0.0, 1.25, 2.5], [1.5, 2.5, 3.5])
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_report_has_the_tables_and_a_figure_for_each_group_size(files: CellFiles, tmp_path: Path) -> None:
    study_cost(files, 5, 1, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Table 2: prioritisation times" in page
    assert "Figure 4 of the paper" in page
    assert "2.50 (134)" in (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "Memory over time, 4 members" in page
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"{name}.svg" for name in figure_names([4])}


def test_the_paper_has_a_value_for_every_column() -> None:
    assert sorted(PAPER) == [(members, rate) for members in (4, 8) for rate in (10, 40, 60, 80, 100)]
    for row in PAPER.values():
        assert len(row.delivery_ms) == len(row.collections) == len(COLUMNS)
        assert len(row.prioritisation_us) == 4, "none for communication history"
        assert all(each.first <= each.median <= each.third for each in row.delivery_ms)
    assert column_of("token-ring", "prioritised") == 3
    assert column_of("reorder", "plain") is None


def test_every_value_is_beside_that_of_the_paper_where_there_is_one() -> None:
    delivery, prioritisation, collections, *_ = text_tables(ROWS)
    assert delivery.headings[3:] == ["UB", "UB prio", "CH", "reorder"]
    means = {tuple(row[:2]): row[3:] for row in delivery.rows if row[2] == "mean"}
    assert means == {
        ("3", "100"): ["1.50", "-", "-", "-"],
        ("4", "100"): ["1.50 (134)", "1.50 (487)", "1.50 (7.10)", "1.50"],
    }
    assert prioritisation.headings[2:] == ["UB", "UB prio", "reorder"]
    assert prioritisation.rows[-1][2:4] == ["3.2, median 3.0 (3.4)", "3.2, median 3.0 (11.4)"]
    assert collections.rows[-1][2] == "2.50 (17.50)"
    assert "| 4 | 100 | mean | 1.50 (134) |" in delivery.markdown()


def test_the_summary_has_a_line_for_each_cell() -> None:
    lines = {(row[0], row[2]): row[3:] for row in summary_table(ROWS).rows}
    assert lines["4", "UB"] == ["1.50", "134", "1.00", "1.28", "3.2", "3.4", "2.5", "0.1"]
    assert lines["4", "CH"][4:6] == ["", ""], "the paper has no such value, and neither do we"
    assert lines["3", "UB"][1] == lines["3", "UB"][3] == lines["3", "UB"][5] == ""
    assert len(lines) == len(ROWS)


def test_the_figure_shows_the_paper_beside_each_line_of_ours() -> None:
    sizes = by_members(ROWS)
    assert list(sizes) == [3, 4]
    figure = draw_delivery_times(sizes[4])
    median, mean = figure.axes
    assert [np.size(line.get_xdata()) for line in median.lines] == [1, 1, 1, 1, 1, 1, 1, 0]
    assert [np.ravel(line.get_ydata()).tolist() for line in mean.lines[:2]] == [[1.5], [134.25]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["UB", "UB prio", "CH", "reorder"]


def test_the_figure_of_the_memory_has_a_panel_for_each_rate_and_a_line_for_each_variant() -> None:
    lines = [
        MemoryLine("sequencer-ub", variant, 4, rate, [0.0, 1.0], [40.0, 41.0])
        for variant in ("plain", "prioritised")
        for rate in (10, 100)
    ]
    figure = draw_memory(lines)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "10 messages/s and member",
        "100 messages/s and member",
    ]
    assert [[line.get_linestyle() for line in axes.lines] for axes in figure.axes] == [["-", "--"]] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["UB", "UB prio"]
