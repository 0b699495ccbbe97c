"""Runs a campaign in rounds and stores each round, so that it can be stopped and resumed at any time.

A round is large enough that the executors are busy, and small enough that little is lost with it.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from priocast.campaign.plan import ANY, Plan, options_of
from priocast.campaign.result_table import ResultTable
from priocast.campaign.seed_rows import RESULT_COLUMNS, SeedRunner
from priocast.pipeline.executors import on_executors, ship_code, tasks_done
from priocast.pipeline.session import spark_session
from priocast.pipeline.storage_errors import storage_errors
from priocast.simulation.choice import replay_command

OnSeedsDone = Callable[[int], None]

#: Columns by which results can be summarised.
GROUPINGS = ("cell", "order", "prioritised", "policy", "delivery", "members", "load", "fault")
_SEEDS_PER_TASK = 4
_TASKS_PER_CORE = 32
_FAILED_SHOWN_MAX = 1_000


def ignore_seeds_done(done: int) -> None:
    """For callers that do not show progress."""


class CampaignRow(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the seeds that have these values in the columns by which they are grouped."""

    values: dict[str, str]
    seeds: int
    failed: int
    broadcasts: int
    deliveries: int
    views: int
    virtual_seconds: float
    seconds: float
    settling_seconds_max: float


class FailedSeed(msgspec.Struct, frozen=True, kw_only=True):
    """A seed with violations, and the command that replays it."""

    cell: str
    seed: int
    violations: tuple[str, ...]
    replay: str


class CampaignResult(msgspec.Struct, frozen=True, kw_only=True):
    """What all stored seeds of a campaign say. `seeds_run` were run now, the others earlier.

    `failed` is the number of seeds with violations; `failed_seeds` are the first of them. `start_seconds`
    passed until Spark was ready and the stored results were read, then `run_seconds` until all seeds were run
    and stored.
    """

    seeds: int
    seeds_run: int
    start_seconds: float
    run_seconds: float
    failed: int
    rows: tuple[CampaignRow, ...]
    failed_seeds: tuple[FailedSeed, ...]


def run_campaign(
    plan: Plan,
    out: str,
    master: str,
    by: tuple[str, ...] = ("cell",),
    on_seeds_done: OnSeedsDone = ignore_seeds_done,
) -> CampaignResult:
    """Run what is missing of the plan in the table of results below `out`, and summarise the table."""
    opened = time.perf_counter()
    with (
        spark_session(master) as spark,
        storage_errors(out),
        tempfile.TemporaryDirectory(prefix="priocast-campaign-") as scratch,
    ):
        ship_code(spark, Path(scratch))
        table = ResultTable(spark, out)
        missing = plan.missing(table.done(plan))
        if missing:
            table.check_writable()
        finished = len(plan) - len(missing)
        on_seeds_done(finished)
        started = time.perf_counter()
        size = spark.sparkContext.defaultParallelism * _TASKS_PER_CORE * _SEEDS_PER_TASK
        for start in range(0, len(missing), size):
            runner = SeedRunner(missing[start : start + size], plan.code)
            _run_round(spark, runner, table, finished, on_seeds_done)
            finished += len(runner.planned)
            on_seeds_done(finished)
        times = started - opened, time.perf_counter() - started
        return _summary(table.of_plan(plan), by, len(missing), times)


def _run_round(
    spark: SparkSession, runner: SeedRunner, table: ResultTable, finished: int, on_seeds_done: OnSeedsDone
) -> None:
    """Run some seeds and store their results; `finished` were done before."""
    count = len(runner.planned)
    tasks = -(-count // _SEEDS_PER_TASK)
    rows = on_executors(spark, count, tasks, runner, RESULT_COLUMNS)

    def on_tasks_done(done: int) -> None:
        on_seeds_done(finished + min(count, done * _SEEDS_PER_TASK))

    with tasks_done(spark.sparkContext, on_tasks_done):
        table.append(rows)


def _summary(
    stored: DataFrame, by: tuple[str, ...], seeds_run: int, times: tuple[float, float]
) -> CampaignResult:
    is_failed = f.size("violations") > 0
    grouped = stored.groupBy(*by).agg(
        f.count("*").alias("seeds"),
        f.count_if(is_failed).alias("failed"),
        *(f.sum(name).alias(name) for name in ("broadcasts", "deliveries", "views")),
        (f.sum("virtual_ns") / 1e9).alias("virtual_seconds"),
        f.sum("seconds").alias("seconds"),
        (f.max("settling_ns") / 1e9).alias("settling_seconds_max"),
    )
    rows = [
        CampaignRow(
            values={name: ANY if row[name] is None else str(row[name]) for name in by},
            **{name: row[name] for name in CampaignRow.__struct_fields__ if name != "values"},
        )
        for row in grouped.orderBy(*by).collect()
    ]
    failed = stored.where(is_failed).orderBy("cell", "seed").limit(_FAILED_SHOWN_MAX).collect()
    return CampaignResult(
        seeds=sum(row.seeds for row in rows),
        seeds_run=seeds_run,
        start_seconds=times[0],
        run_seconds=times[1],
        failed=sum(row.failed for row in rows),
        rows=tuple(rows),
        failed_seeds=tuple(
            FailedSeed(
                cell=row["cell"],
                seed=row["seed"],
                violations=tuple(row["violations"]),
                replay=replay_command(row["seed"], options_of(row["cell"])),
            )
            for row in failed
        ),
    )
