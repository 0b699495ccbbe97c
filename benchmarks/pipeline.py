"""`python -m benchmarks.pipeline`: what each check costs on Spark, beside the same check in DuckDB's SQL.

The traces are synthetic and valid (`pipeline_traces.py`). Both engines have the same cores and the same
limit of memory, and read the same segments, each in a process of its own. Spark's figures are those of the
second pass in a session ("warm"); the first one compiles. Processor seconds are shown besides, because they
mean something on a busy machine, too. Memory is the most that the process had resident.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from rich.console import Console
from rich.table import Table

from benchmarks.pipeline_sql import CHECKS as SQL_CHECKS
from benchmarks.pipeline_sql import SqlChecks
from benchmarks.pipeline_traces import (
    ADAPTIVE,
    REORDER,
    SEQUENCER,
    Fault,
    TraceShape,
    faulty_shapes,
    write_run,
    write_runs,
)
from priocast.core.guarantees import PRIORITY_ACCOUNTING, TIMESTAMP_ORDER
from priocast.pipeline.checks.catalogue import CHECKS, STAMP_CHECK
from priocast.pipeline.run_files import expected_rows
from priocast.pipeline.session import LOCAL_MEMORY, spark_session
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.pipeline.verdicts import EXAMPLES_MAX, first_of_each, judge

Result = TypeVar("Result")

MILLION = 1_000_000
SIZES, QUICK_SIZES = (MILLION, 10 * MILLION, 50 * MILLION), (MILLION,)
FAULTY_DELIVERIES = 20_000
TABLES = ("faults", "checks", "growth", "damage")
#: The guarantees that a trace of each order is for; in the others there would be nothing to examine.
EXAMINED = {
    SEQUENCER: tuple(check.guarantee for check in CHECKS if check.guarantee != PRIORITY_ACCOUNTING),
    REORDER: (PRIORITY_ACCOUNTING,),
    ADAPTIVE: (TIMESTAMP_ORDER,),
}
GROWN: dict[str, tuple[TraceShape, ...]] = {
    "members": tuple(TraceShape(MILLION, members=count) for count in (3, 5, 9)),
    "priorities": tuple(TraceShape(MILLION, priorities=count) for count in (4, 64, 256)),
    "runs": tuple(TraceShape(MILLION, runs=count) for count in (1, 10, 100)),
    "segments": tuple(TraceShape(MILLION, segments=count) for count in (1, 10, 100)),
}
_CHECK_OF = {check.guarantee: check for check in (*CHECKS, STAMP_CHECK)}
_LOAD, _COLD, _WARM = "tables", "whole verification, cold", "whole verification"
_SQL_MEMORY = LOCAL_MEMORY.replace("g", "GB")
_KIB_PER_MIB = 1024
_CONSOLE = Console(width=120)


@dataclass(frozen=True)
class Cost:
    """What a step cost: seconds by the clock and of the processor."""

    seconds: float
    processor: float

    def __str__(self) -> str:
        return f"{self.seconds:,.1f} ({self.processor:,.1f})"


@dataclass
class Measurement:
    """The steps of one engine on one trace, the most memory that it had, and what it found."""

    steps: dict[str, Cost] = field(default_factory=dict)
    peak_mib: int = 0
    violations: int = 0

    @contextmanager
    def step(self, name: str, process: int) -> Iterator[None]:
        """Measure a step of a process."""
        began, before = time.perf_counter(), _processor_seconds(process)
        yield
        self.steps[name] = Cost(time.perf_counter() - began, _processor_seconds(process) - before)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // _KIB_PER_MIB


def in_new_process(measure: Callable[..., Result], *arguments: object) -> Result:
    """Call a function in a process of its own: Java gets its options there, and memory is counted anew."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_plain_errors, measure, *arguments).result()


def _with_plain_errors(measure: Callable[..., Result], *arguments: object) -> Result:
    """Spark's errors refer to objects of Java, and cannot leave the process."""
    try:
        return measure(*arguments)
    except (PySparkException, Py4JError) as error:
        raise RuntimeError(str(error)) from None


def on_spark(directory: Path, guarantees: tuple[str, ...]) -> Measurement:
    """The verification as users run it, cold and warm, and then step by step."""
    checks = [_CHECK_OF[guarantee] for guarantee in guarantees]
    measured = Measurement()
    with spark_session(rows=expected_rows(str(directory))) as spark:
        java = spark.sparkContext._jvm
        assert java is not None
        process = int(java.java.lang.ProcessHandle.current().pid())
        for step in (_COLD, _WARM):
            with measured.step(step, process), load_trace(open_runs(spark, directory)) as trace:
                verdicts = judge(trace, checks=checks)
        runs = open_runs(spark, directory)
        began, before = time.perf_counter(), _processor_seconds(process)
        with load_trace(runs) as trace:
            spent = time.perf_counter() - began
            measured.steps[_LOAD] = Cost(spent, _processor_seconds(process) - before)
            for check in checks:
                with measured.step(check.guarantee, process):
                    first_of_each(check.find(trace), EXAMPLES_MAX).collect()
        measured.peak_mib = _peak_mib(process)
    measured.violations = sum(verdict.violations for verdict in verdicts)
    return measured


def in_sql(directory: Path, guarantees: tuple[str, ...]) -> Measurement:
    """The same in DuckDB."""
    process = os.getpid()
    measured = Measurement()
    database = SqlChecks(directory, _SQL_MEMORY, os.cpu_count() or 1)
    with measured.step(_WARM, process):
        with measured.step(_LOAD, process):
            database.make_tables()
        for guarantee in guarantees:
            with measured.step(guarantee, process):
                found = database.broken_runs(guarantee)
            measured.violations += sum(found.values())
    measured.peak_mib = _peak_mib(process)
    return measured


def both(shape: TraceShape, guarantees: tuple[str, ...]) -> tuple[Measurement, Measurement]:
    """What a trace of this shape costs on Spark, and in SQL."""
    _CONSOLE.print(str(shape), style="dim", soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="priocast-bench-") as name:
        in_new_process(write_runs, Path(name), shape)
        on, sql = (in_new_process(engine, Path(name), guarantees) for engine in (on_spark, in_sql))
    assert bool(on.violations) == bool(sql.violations) == bool(shape.fault), "both engines agree"
    return on, sql


def checks_tables(sizes: tuple[int, ...]) -> Iterator[Table]:
    """Each check at each size, on both engines: a table for each size and order."""
    for size in sizes:
        for order, guarantees in EXAMINED.items():
            table = _table("each check, Spark warm", "deliveries", "order", "step")
            on, sql = both(TraceShape(size, order=order), guarantees)
            for step in (_LOAD, *guarantees, _WARM):
                _add(table, (f"{size:,}", order, step), on.steps[step], sql.steps[step])
            table.add_row(f"{size:,}", order, _COLD, str(on.steps[_COLD]))
            memory = (f"{on.peak_mib:,} MiB", f"{sql.peak_mib:,} MiB")
            table.add_row(f"{size:,}", order, "peak memory", *memory)
            yield table


def growth_tables(deliveries: int) -> Iterator[Table]:
    """The whole verification, as one thing at a time grows: a table for each thing."""
    for what, shapes in GROWN.items():
        table = _table("whole verification as one thing grows, Spark warm", "deliveries", "what", "how many")
        for shape in shapes:
            on, sql = both(replace(shape, deliveries=deliveries), EXAMINED[SEQUENCER])
            labels = (f"{deliveries:,}", what, str(getattr(shape, what)))
            _add(table, labels, on.steps[_WARM], sql.steps[_WARM])
        yield table


def damage_tables(size: int) -> Iterator[Table]:
    """A trace in which one member's deliveries are missing, beside the good one."""
    table = _table("one member's deliveries are missing, Spark warm", "deliveries", "trace", "violations")
    for fault in (None, Fault.MEMBER_LOST):
        on, sql = both(TraceShape(size, fault=fault), EXAMINED[SEQUENCER])
        labels = (f"{size:,}", "damaged" if fault else "good", f"{on.violations:,}")
        _add(table, labels, on.steps[_WARM], sql.steps[_WARM])
    yield table


def faults_tables() -> Iterator[Table]:
    """Which planted violations each engine finds."""
    table = Table(title="planted violations: the guarantees that each engine finds broken")
    for heading in ("fault", "planted in", "on Spark", "in SQL"):
        table.add_column(heading)
    shapes = dict(faulty_shapes(FAULTY_DELIVERIES))
    with tempfile.TemporaryDirectory(prefix="priocast-bench-") as name:
        for run, shape in shapes.items():
            write_run(Path(name) / run, shape, seed=1)
        on = in_new_process(broken_on_spark, Path(name))
        sql = in_new_process(broken_in_sql, Path(name))
    for run, shape in shapes.items():
        assert shape.fault is not None
        planted = shape.fault.guarantee
        assert planted in on[run] and planted in sql[run], f"both engines find {run}"
        table.add_row(run, planted, ", ".join(on[run]), ", ".join(sql[run]))
    yield table


def broken_on_spark(directory: Path) -> dict[str, list[str]]:
    """The guarantees that each run breaks."""
    with spark_session() as spark, load_trace(open_runs(spark, directory)) as trace:
        verdicts = judge(trace)
    found: dict[str, list[str]] = {verdict.run: [] for verdict in verdicts}
    for verdict in verdicts:
        found[verdict.run] += [] if verdict.holds else [verdict.guarantee]
    return found


def broken_in_sql(directory: Path) -> dict[str, list[str]]:
    """The same in DuckDB."""
    database = SqlChecks(directory, _SQL_MEMORY, os.cpu_count() or 1)
    database.make_tables()
    by_guarantee = {guarantee: database.broken_runs(guarantee) for guarantee in SQL_CHECKS}
    return {
        path.name: [guarantee for guarantee, runs in by_guarantee.items() if path.name in runs]
        for path in directory.iterdir()
    }


def _table(title: str, *headings: str) -> Table:
    table = Table(title=f"{title}: seconds (processor seconds)")
    for heading in (*headings, "Spark", "DuckDB", "ratio"):
        table.add_column(
            heading, justify="left" if heading in {"order", "step", "what", "trace"} else "right"
        )
    return table


def _add(table: Table, labels: tuple[str, ...], spark: Cost, sql: Cost) -> None:
    ratio = spark.seconds / sql.seconds if sql.seconds > 0.1 else None
    table.add_row(*labels, str(spark), str(sql), f"{ratio:.1f}" if ratio else "")


def main() -> None:
    """Measure, and print each table as soon as it is complete: the largest take an hour."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one million deliveries, nothing larger")
    parser.add_argument("--deliveries", type=int, action="append", help="a size (may be given several times)")
    parser.add_argument(
        "--only", choices=TABLES, action="append", help="measure only this (may be given several times)"
    )
    arguments = parser.parse_args()
    sizes = tuple(arguments.deliveries or (QUICK_SIZES if arguments.quick else SIZES))
    tables = {
        "faults": faults_tables(),
        "checks": checks_tables(sizes),
        "growth": growth_tables(sizes[0]),
        "damage": damage_tables(sizes[0]),
    }
    for name in arguments.only or TABLES:
        for table in tables[name]:
            _CONSOLE.print(table)


if __name__ == "__main__":
    main()
