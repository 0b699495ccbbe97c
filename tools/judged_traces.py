"""`PYTHONPATH=tests python -m tools.judged_traces`: Spark judges simulated traces, clean and damaged ones.

A clean trace is that of a seed in which the simulator found nothing: no promise may be broken in it. Every
order and layer has its turn, and so have the qualities of service. A damaged one has up to three damages at
random rows: Spark must find as many violations of each guarantee as the oracle of the tests, which shares
nothing with the checks. Many traces are one verification. The exit code is 1 if a verdict is wrong.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress

from pipeline.damages import OF_SIMULATED, damaged
from pipeline.oracle import expected_places
from pipeline.reordered_runs import simulated
from pipeline.sample_runs import SampleRun
from priocast.pipeline.session import spark_session
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.pipeline.verdicts import Verdict, judge
from priocast.protocols import all_orders
from priocast.simulation.choice import Choice
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.service_generator import EVERY_QUALITY
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import manifest_of

_QUALITIES_EVERY = 10
_DAMAGES_MAX = 3
#: The orders that the oracle knows.
_DAMAGED_ORDERS = (
    *("sequencer-ub", "sequencer-bb", "token-ring", "causal-history", "agreement-skeen"),
    *("reorder", "reorder-locks"),
)


class JudgedTrace(NamedTuple):
    """A trace, and how many violations of each guarantee it has; None: no promise is broken."""

    run: str
    expected: dict[str, int] | None


Writer = Callable[[Path, int], JudgedTrace]


def write_clean(directory: Path, seed: int) -> JudgedTrace:
    """Write the trace of a seed."""
    orders = all_orders()
    choice = Choice(orders[seed % len(orders)])
    if seed % _QUALITIES_EVERY == 0:
        choice = Choice(qualities=EVERY_QUALITY)
    run = run_scenario(generate_scenario(seed, choice))
    assert not run.violations, f"seed {seed} ({choice}) is clean"
    named = SampleRun(manifest_of(run), run.rows).named(f"clean-{seed}")
    named.write_whole(directory)
    return JudgedTrace(named.manifest.run, None)


def damaged_trace(seed: int) -> SampleRun:
    """The simulated run of a seed, with damages."""
    random = Random(seed)  # noqa: S311 - the seed repeats the damages
    run = simulated(seed, _DAMAGED_ORDERS[seed % len(_DAMAGED_ORDERS)])
    return damaged(run, random, OF_SIMULATED, random.randint(1, _DAMAGES_MAX)).named(f"damaged-{seed}")


def write_damaged(directory: Path, seed: int) -> JudgedTrace:
    """Write a trace with damages; the oracle says what they break."""
    run = damaged_trace(seed)
    run.write_whole(directory)
    found = {guarantee: len(places) for guarantee, places in expected_places(run).items()}
    return JudgedTrace(run.manifest.run, found)


def wrong_verdicts(traces: list[JudgedTrace], verdicts: list[Verdict]) -> Iterator[str]:
    """What Spark found and should not have found, or the other way round."""
    expected = {trace.run: trace.expected for trace in traces}
    for verdict in verdicts:
        of_run = expected[verdict.run]
        if of_run is None:
            if verdict.promised and not verdict.holds:
                yield f"{verdict.run}: false alarm, {verdict.violations} violations of {verdict.guarantee}"
        elif verdict.violations != (known := of_run.get(verdict.guarantee, 0)):
            found = f"{verdict.violations} violations of {verdict.guarantee}"
            yield f"{verdict.run}: {found}, and the oracle finds {known}"


def judge_together(spark: SparkSession, pool: ProcessPoolExecutor, seeds: range, write: Writer) -> list[str]:
    """Write the traces of these seeds, and judge them in one verification."""
    with tempfile.TemporaryDirectory(prefix="priocast-judged-") as directory:
        traces = list(pool.map(partial(write, Path(directory)), seeds))
        with load_trace(open_runs(spark, directory)) as trace:
            return list(wrong_verdicts(traces, judge(trace)))


def main() -> int:
    """Judge all traces, and print what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.judged_traces", description=__doc__)
    parser.add_argument("--clean", type=int, default=1_000, help="clean traces (default: 1,000)")
    parser.add_argument("--damaged", type=int, default=1_000, help="damaged traces (default: 1,000)")
    parser.add_argument("--together", type=int, default=200, help="traces in one verification (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    options = parser.parse_args()
    console = Console()
    wrong: list[str] = []
    with (
        spark_session() as spark,
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool,
        Progress(console=console) as progress,
    ):
        for name, count, write in (
            ("clean", options.clean, write_clean),
            ("damaged", options.damaged, write_damaged),
        ):
            task = progress.add_task(f"{name} traces", total=count)
            for start in range(options.seed, options.seed + count, options.together):
                seeds = range(start, min(start + options.together, options.seed + count))
                found = judge_together(spark, pool, seeds, write)
                for each in found:
                    console.print(each, style="red", markup=False)
                if not console.is_terminal:
                    console.print(f"{name} traces {seeds[0]:,} to {seeds[-1]:,}: {len(found)} wrong verdicts")
                wrong += found
                progress.advance(task, len(seeds))
    console.print(
        f"{options.clean:,} clean and {options.damaged:,} damaged traces, {len(wrong)} wrong verdicts"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
