"""The study of aborts: the best order is the best, and groups abort what their order makes them abort."""

import asyncio
import random
from itertools import permutations
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from priocast.core.errors import InvalidOption
from priocast.pipeline.abort_report import avoided_of_all, render_aborts
from priocast.pipeline.figures.abort_rates import draw_abort_rates
from priocast.pipeline.html import Html
from priocast.pipeline.tables.aborts import AbortRates, ClassTimes, abort_rates
from priocast.sql.sqlite_engine import SqliteEngine
from priocast.study.abort_workloads import WORKLOADS, AbortRequest, fewest_aborts
from priocast.study.aborts import AbortCell, AbortPlan, measure_cell, store_rows


def aborts_in(order: tuple[AbortRequest, ...], initial: int) -> int:
    """How many requests abort in this order."""
    values = {item: initial for request in order for item in request.changes}
    aborted = 0
    for request in order:
        after = {item: values[item] + change for item, change in request.changes.items()}
        if min(after.values()) < 0:
            aborted += 1
        else:
            values |= after
    return aborted


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_fewest_aborts_are_those_of_the_best_of_all_orders(name: str) -> None:
    workload = WORKLOADS[name]
    rng = random.Random(3)
    avoidable = 0
    for _ in range(12):
        requests = [workload.draw(rng, range(3)) for _ in range(6)]
        initial = workload.initial // 4
        found = [aborts_in(order, initial) for order in permutations(requests)]
        assert fewest_aborts(requests, initial) == min(found)
        avoidable += max(found) - min(found)
    assert avoidable


@pytest.mark.spark
def test_a_plain_group_aborts_in_the_order_of_its_requests_and_a_prioritised_one_less(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = AbortPlan(workloads=("bank",), replicas=(2,), rates=(200,), rounds=2)
    for cell in plan.cells():
        rows = asyncio.run(measure_cell(plan, cell, SqliteEngine, lambda: None))
        assert len(rows) == 2 * cell.round_size
        store_rows(tmp_path / f"{cell.variant}.parquet", "sqlite", cell, rows)
    (rates,) = abort_rates(spark, tmp_path)
    assert (rates.workload, rates.database, rates.replicas, rates.rate) == ("bank", "sqlite", 2, 200)
    assert rates.transactions == 2 * AbortCell("bank", 2, 200, "plain").round_size
    assert rates.best <= rates.prioritised < rates.plain
    assert set(rates.times) == {"plain", "prioritised"}
    assert rates.times["plain"]["others"].median_ms > 0


def test_what_was_avoided_is_a_share_of_what_was_avoidable() -> None:
    def rates(plain: int, prioritised: int, best: int) -> AbortRates:
        return AbortRates("tickets", "sqlite", 3, 100, 100, plain, prioritised, best, {})

    assert rates(30, 12, 10).avoided == 0.9
    assert rates(10, 10, 10).avoided is None
    assert avoided_of_all([rates(30, 12, 10), rates(10, 10, 10)]) == 0.9
    assert avoided_of_all([rates(10, 10, 10)]) is None


def test_the_report_says_what_was_avoided() -> None:
    times = {
        variant: {name: ClassTimes(value, value) for name in ("favoured", "others")}
        for variant, value in (("plain", 3.0), ("prioritised", 4.5))
    }
    rates = [AbortRates("tickets", "sqlite", 3, rate, 100, 30, 12, 10, times) for rate in (100, 200)]
    figure = draw_abort_rates(rates)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "plain, 3 replicas, sqlite",
        "prioritised, 3 replicas, sqlite",
        "best order",
    ]
    page = render_aborts(rates, Html("<svg/>"))
    assert "Priorities avoided 90% of the avoidable aborts." in page
    assert "3.0 → 4.5 ms" in page


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"workloads": ("lottery",)}, "no workload 'lottery'"),
        ({"replicas": (1,)}, "from 2 to 16"),
        ({"rates": (1,)}, "transactions a second"),
        ({"rounds": 0}, "rounds is 0"),
        ({"window": 0}, "window is 0"),
    ],
)
def test_an_impossible_plan_is_rejected(options: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidOption, match=reason):
        AbortPlan(**options)  # type: ignore[arg-type]
