"""`priocast demo`: a real group under overload, plain and prioritised, checked and reported by Spark."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.ordering import (
    BUCKET,
    PART_COUNT,
    PART_MS,
    Bucket,
    Burst,
    Order,
    PartCount,
    PartMs,
    Starvation,
)
from priocast.cli.running import duration, prepare_output, ratio_of, run_planned, study_traces
from priocast.core.priority import NAMED_LEVELS, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import parse_starvation
from priocast.protocols import find_protocol
from priocast.study.overload import FinishedRun, plan
from priocast.study.workload import Workload

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult
    from priocast.pipeline.tables.delivery_time import DeliveryTime

EXAMPLES = """
[bold]Examples[/]

  priocast demo

  priocast demo --members 6 --load 5 --seconds 2 --out /tmp/six

  priocast demo --starvation ageing:20ms --json

  priocast demo --order time-parts/token-ring --part-ms 5

'priocast study preemption' shows one urgent command among queues of hundreds.
"""
EXIT_VIOLATED = 1
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}


def demo(
    members: Annotated[int, typer.Option(help="How many processes.")] = 4,
    load: Annotated[float, typer.Option(help="As a multiple of the load that saturates the group.")] = 3.0,
    seconds: Annotated[float, typer.Option(help="How long messages are broadcast in each run.")] = 3.0,
    handling_us: Annotated[int, typer.Option(help="How long a member handles one message.")] = 250,
    order: Order = "sequencer-ub",
    starvation: Starvation = "none",
    burst: Burst = None,
    bucket: Bucket = BUCKET,
    part_ms: PartMs = PART_MS,
    part_count: PartCount = PART_COUNT,
    out: Annotated[Path, typer.Option(help="Where traces and report go.")] = Path("demo-out"),
    master: Annotated[str, typer.Option(help="The Spark master.")] = "local[*]",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Run a real group on this machine under overload, plain and prioritised, and see what priorities do.

    Every member is a process that broadcasts messages of four priorities, more than the group can take, and
    handles what it delivers. Spark then checks every promise on the traces and writes a report.
    """
    find_protocol(order)
    options = OrderingOptions(
        starvation=parse_starvation(starvation),
        burst=burst,
        bucket=bucket,
        part_ms=part_ms,
        part_count=part_count,
    )
    workload = Workload(members=members, load=load, seconds=seconds, handling_us=handling_us)
    planned = plan(workload, order, options)
    output = prepare_output(out)
    console = Console(stderr=as_json)
    console.print(
        f"[bold]{members} processes[/], each handling a message in {handling_us} us: "
        f"{workload.saturating_rate:,.0f} messages a second saturate the group"
    )
    finished = [run_planned(each, output.traces, console) for each in planned]
    outcome = study_traces(output, master, console)
    if as_json:
        typer.echo(json.dumps(_document(finished, outcome), indent=2))
    else:
        _show(load, finished, outcome, console)
    if outcome.broken or not all(run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATED)


def _show(load: float, finished: list[FinishedRun], outcome: "StudyResult", console: Console) -> None:
    half, plain, prioritised = finished
    times = {(time.run, time.priority): time for time in outcome.delivery_times}
    console.print(_comparison(times, load, half.name, plain.name, prioritised.name))
    _show_urgent(times, half.name, plain.name, prioritised.name, console)
    same = all(run.same_digest for run in finished)
    console.print(
        f"The {plain.members} members delivered the same messages in the same order in every run."
        if same
        else "[bold red]Members ended in different states.[/]"
    )
    console.print(
        f"Woken late by the scheduler, p99: {half.late_ms_p99:.1f} ms at half load, "
        f"{prioritised.late_ms_p99:.1f} ms under overload; no delivery can be surer than that."
    )
    kept = sum(verdict.promised and verdict.holds for verdict in outcome.verdicts)
    promised = sum(verdict.promised for verdict in outcome.verdicts)
    verdict = "[bold green]every promise kept[/]" if not outcome.broken else "[bold red]promises broken[/]"
    console.print(
        f"Spark checked {outcome.events:,} events of {len(outcome.runs)} runs: {verdict} "
        f"({kept} of {promised})."
    )
    for broken in outcome.broken:
        console.print(f"  [red]{broken.run}: {broken.guarantee}: {broken.violations} violation(s)[/]")
    assert outcome.report is not None
    console.print(f"Open the report: [link={outcome.report.resolve().as_uri()}]{outcome.report}[/link]")


def _comparison(
    times: dict[tuple[str, int], "DeliveryTime"], load: float, half: str, plain: str, prioritised: str
) -> Table:
    title = f"Delivery time at {load:g} x the saturating load"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("priority", no_wrap=True)
    headings = (
        "messages",
        "plain\nmedian",
        "\np99",
        "prioritised\nmedian",
        "\np99",
        "p99\nshorter",
        "half load\np99",
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for run, priority in sorted(times, key=lambda key: -key[1]):
        if run != plain:
            continue
        without, given, calm = times[plain, priority], times[prioritised, priority], times[half, priority]
        table.add_row(
            _NAMES[priority],
            f"{given.count:,}",
            duration(without.median_ms),
            duration(without.p99_ms),
            duration(given.median_ms),
            duration(given.p99_ms),
            ratio_of(without.p99_ms / given.p99_ms),
            duration(calm.p99_ms),
            style="bold" if priority == URGENT else "",
        )
    return table


def _show_urgent(
    times: dict[tuple[str, int], "DeliveryTime"], half: str, plain: str, prioritised: str, console: Console
) -> None:
    without, given, calm = (times[run, URGENT].p99_ms for run in (plain, prioritised, half))
    console.print(
        f"99 of 100 [bold]urgent[/] messages arrived within [bold]{duration(given)}[/] instead of "
        f"{duration(without)}: {without / given:,.0f} times sooner, and {given / calm:.1f} x what they "
        "take at half load."
    )


def _document(finished: list[FinishedRun], outcome: "StudyResult") -> dict[str, object]:
    return {
        "runs": msgspec.to_builtins(finished),
        "verdicts": [msgspec.to_builtins(verdict) for verdict in outcome.verdicts],
        "delivery_times": [
            {key: value for key, value in asdict(time).items() if key != "curve"}
            for time in outcome.delivery_times
        ],
        "report": str(outcome.report),
    }
