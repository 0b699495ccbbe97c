"""Delivery times and rates by sender agree with a plain computation over the rows."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean, pvariance

import pytest
from pyspark.sql import SparkSession

from priocast.membership.options import MembershipOptions
from priocast.pipeline.figures.sender_rates import draw_delivery_rates, draw_ticks, draw_weights
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.sources import open_runs
from priocast.pipeline.tables.sender_times import SenderRate, sender_rates, sender_times
from priocast.pipeline.trace_tables import load_trace
from priocast.simulation.load_phases import phases_of
from priocast.simulation.scenario import Scenario, WorkloadOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.simulation.trace_writer import write_run
from priocast.trace.schema import BROADCAST, DELIVERED, SENT, MessageRow, ServiceRow
from priocast.trace.weight_samples import WeightSample

SETTLED, END = 1.0, 1.8
NOBODY = (0,) * 3


def simulated(quality: str) -> SimulatedRun:
    return run_scenario(
        Scenario(
            seed=7,
            membership=MembershipOptions(founders=3),
            workload=WorkloadOptions(
                messages=NOBODY,
                rate_per_second=NOBODY,
                consume_us=NOBODY,
                start_us=NOBODY,
                phases=phases_of((40, 10, 0), 200_000),
                until_us=2_200_000,
                quality=quality,
            ),
        )
    )


def plain_times(run: SimulatedRun) -> dict[tuple[str, bool], list[float]]:
    """By sender and whether the load had settled: ms until each other member delivered."""
    sent: dict[tuple[str, int], int] = {}
    found = defaultdict(list)
    events: list[tuple[ServiceRow | MessageRow, bool, list[int]]] = [
        (row, row.event == SENT, [row.number])
        for row in run.rows
        if isinstance(row, ServiceRow) and row.event in (SENT, DELIVERED)
    ]
    events += [
        (row, row.event == BROADCAST, [*range(row.first, row.first + row.count)])
        for row in run.messages
        if row.event in (BROADCAST, DELIVERED)
    ]
    for row, is_sent, numbers in events:
        if is_sent:
            sent.update(((row.sender, number), row.time_ns) for number in numbers)
    start = min(sent.values())
    for row, is_sent, numbers in events:
        for number in numbers:
            at = sent[row.sender, number]
            if not is_sent and row.member != row.sender and (at - start) / 1e9 < END:
                found[row.sender, (at - start) / 1e9 >= SETTLED].append((row.time_ns - at) / 1e6)
    return found


@pytest.mark.spark
def test_times_by_sender(spark: SparkSession, tmp_path: Path) -> None:
    runs = {"ordered": simulated(""), "causal": simulated("causal"), "unlabelled": simulated("")}
    for name, run in runs.items():
        labels = {} if name == "unlabelled" else {"settled_s": f"{SETTLED}:{END}"}
        write_run(run, tmp_path / name, name, labels)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        times, rates = sender_times(trace), sender_rates(trace)
    assert {time.run for time in times} == {"ordered", "causal"}
    found = {(time.run, time.sender, time.settled): time for time in times}
    for name in ("ordered", "causal"):
        plain = plain_times(runs[name])
        for (sender, settled), took in plain.items():
            time = found[name, f"{sender}#1", settled]
            assert time.messages == len(took) // 2
            assert time.mean_ms == pytest.approx(fmean(took))
            assert time.variance_ms2 == pytest.approx(pvariance(took), abs=1e-9)
        of_all = [each for (_, settled), took in plain.items() if settled for each in took]
        assert found[name, "", True].mean_ms == pytest.approx(fmean(of_all))
    fast = next(rate for rate in rates if (rate.run, rate.sender) == ("ordered", "a#1"))
    assert sum(fast.sent) == sum(fast.delivered) == pytest.approx(80, abs=3)
    assert len(fast.sent) == len(fast.delivered)
    assert max(fast.sent) <= 5, "a tenth of a second has four messages, or five"


def test_figures_are_drawn() -> None:
    rates = [SenderRate(run, "a#1", 1.0, (1,) * 30, (0, 2) * 15) for run in ("one", "two")]
    samples = [
        WeightSample("one", second / 10, "1/0.0" if second < 5 else "1/1.0", sender, 0.5, 0.4)
        for second in range(10)
        for sender in "ab"
    ]
    drawn = (draw_delivery_rates(rates), draw_ticks(rates), draw_weights(samples))
    for svg in map(render_svg, drawn):
        assert svg.startswith("<svg")
