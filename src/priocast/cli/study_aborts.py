"""`priocast study aborts`: which transactions integrity constraints abort, with and without priorities."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_directory, check_figures, check_pipeline, check_replaceable
from priocast.cli.shared_options import MASTER, AsJson, Master, StudyDirectory
from priocast.cli.study_output import progress_bar, whole_numbers
from priocast.cli.verdict_output import show_progress
from priocast.core.errors import InvalidOption
from priocast.operations.output_paths import REPORT

if TYPE_CHECKING:
    from priocast.pipeline.tables.aborts import AbortRates
    from priocast.sql.engine import Engine
    from priocast.study.aborts import AbortPlan

EXAMPLES = """
[bold]Examples[/]

  priocast study aborts

  priocast study aborts --workload tickets --replicas 3,5 --rates 100,400,1000 --rounds 40

  priocast study aborts --database postgresql --rates 100

  priocast study aborts --rounds 4 --json
"""
_FIGURE = "abort-rates"
_DATABASES = ("sqlite", "postgresql")


def aborts(
    workload: Annotated[
        list[str] | None,
        typer.Option(help="tickets, bank or stock; may be repeated.", show_default="all of them"),
    ] = None,
    database: Annotated[
        list[str] | None,
        typer.Option(help="sqlite or postgresql; may be repeated.", show_default="sqlite"),
    ] = None,
    replicas: Annotated[str, typer.Option(help="Numbers of replicas, separated by commas.")] = "3,5",
    rates: Annotated[
        str, typer.Option(help="Transactions per second of the group, separated by commas.")
    ] = "100,400",
    rounds: Annotated[int, typer.Option(help="Rounds of requests for each group, four a second.")] = 20,
    window: Annotated[
        int,
        typer.Option(help="How many messages may be ordered and not consumed; they are not overtaken."),
    ] = 8,
    seed: Annotated[int, typer.Option(help="The seed of the requests.")] = 1,
    out: StudyDirectory = Path("study-out/aborts"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Measure how many transactions abort because of integrity constraints, and how many had to.

    Replicas of a database in this process get the same requests twice: in a plain group and in a prioritised
    one, whose policy derives priorities from the requests (few seats before many, deposits before
    withdrawals). The best order of each round is computed. Counted on Spark, with a report and a figure.
    """
    check_pipeline()
    check_directory("--out", out)
    check_replaceable("--out", out / "report.html", REPORT)
    check_figures("--out", out, (_FIGURE,))
    databases = database or ["sqlite"]
    if unknown := [name for name in databases if name not in _DATABASES]:
        raise InvalidOption(f"--database is {unknown[0]!r}: choose {' or '.join(_DATABASES)}")
    plan = _plan(workload, replicas, rates, rounds, window, seed)
    console = Console(stderr=as_json)
    transactions = out / "transactions"
    for earlier in transactions.glob("*.parquet"):
        earlier.unlink()
    for name in databases:
        _measure(plan, name, transactions, console)
    from priocast.pipeline.abort_report import avoided_of_all, study_abort_rates

    with show_progress(quiet=as_json) as progress:
        found = study_abort_rates(transactions, out, master, progress)
    if as_json:
        print_json({"plan": plan, "groups": found, "avoided": avoided_of_all(found)})
    else:
        _print(found, avoided_of_all(found), out, console)


def _plan(
    workloads: list[str] | None, replicas: str, rates: str, rounds: int, window: int, seed: int
) -> "AbortPlan":
    from priocast.study.abort_workloads import WORKLOADS
    from priocast.study.aborts import AbortPlan

    return AbortPlan(
        workloads=tuple(dict.fromkeys(workloads or WORKLOADS)),
        replicas=whole_numbers("--replicas", replicas),
        rates=whole_numbers("--rates", rates),
        rounds=rounds,
        window=window,
        seed=seed,
    )


def _measure(plan: "AbortPlan", database: str, transactions: Path, console: Console) -> None:
    from priocast.study.aborts import measure_cell, store_rows

    with progress_bar(console) as progress, _engines(database) as make_engine:
        for cell in plan.cells():
            title = f"{cell.workload}, {cell.replicas} {database}, {cell.rate}/s, {cell.variant}"
            task = progress.add_task(title, total=plan.rounds)
            rows = asyncio.run(measure_cell(plan, cell, make_engine, lambda: progress.advance(task)))  # noqa: B023 (called at once)
            name = f"{cell.workload}-{database}-{cell.replicas}-{cell.rate}-{cell.variant}.parquet"
            store_rows(transactions / name, database, cell, rows)


@contextmanager
def _engines(database: str) -> "Iterator[Callable[[], Engine]]":
    """What makes the engine of a new replica."""
    if database == "sqlite":
        from priocast.sql.sqlite_engine import SqliteEngine

        yield SqliteEngine
        return
    from priocast.sql.postgres_engine import PostgresEngine
    from priocast.testing.postgres_server import postgres_server

    with postgres_server() as create:
        numbers = count()
        yield lambda: PostgresEngine(create(f"replica_{next(numbers)}"))


def _print(rates: "list[AbortRates]", avoided: float | None, out: Path, console: Console) -> None:
    table = Table(
        title="aborted transactions; others: answer times of those that are not favoured, p50",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    table.add_column("", no_wrap=True)
    for heading in ("repl.", "rate", "plain", "prio.", "best", "avoided", "others", "prio."):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rates:
        slow = [row.times[variant]["others"].median_ms for variant in ("plain", "prioritised")]
        table.add_row(
            f"{row.workload}, {row.database}",
            str(row.replicas),
            f"{row.rate:,}/s",
            *(f"{count / row.transactions:.1%}" for count in (row.plain, row.prioritised, row.best)),
            "-" if row.avoided is None else f"{row.avoided:.0%}",
            *(f"{each:.0f} ms" for each in slow),
        )
    console.print(table)
    if avoided is not None:
        console.print(f"Priorities avoided [bold]{avoided:.0%}[/] of the avoidable aborts.")
    console.print(f"Report: {out / 'report.html'}")
