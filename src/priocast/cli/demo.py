"""`priocast demo`: a real group under overload, plain and prioritised, verified and reported by Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.console import LISTEN, open_browser
from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.shared_options import (
    ACKNOWLEDGE_MS,
    ADAPTATION,
    BUCKET,
    MASTER,
    PART_COUNT,
    PART_MS,
    AcknowledgeMs,
    Adaptation,
    AsJson,
    Bucket,
    Burst,
    FixedOrder,
    HandlingUs,
    Load,
    Master,
    Members,
    PartCount,
    PartMs,
    Seconds,
    Starvation,
    StudyDirectory,
    check_order_options,
)
from priocast.cli.study_output import (
    duration,
    prepare_output,
    print_verdict,
    ratio_of,
    run_planned,
    study_traces,
)
from priocast.core.priority import NAMED_LEVELS, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import parse_starvation
from priocast.protocols import check_order
from priocast.protocols.adaptive.policies import check_adaptation
from priocast.study.overload import FinishedRun, PlannedRun, plan
from priocast.study.workload import Workload
from priocast.testing.addresses import free_addresses

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult
    from priocast.pipeline.tables.delivery_time import DeliveryTime

EXAMPLES = """
[bold]Examples[/]

  priocast demo

  priocast demo --members 6 --load 5 --seconds 2 --out /tmp/six

  priocast demo --live

  priocast demo --starvation ageing:20ms --json

  priocast demo --order time-parts/token-ring --part-ms 5

'priocast study preemption' shows one urgent command that overtakes hundreds of queued ones.
"""
_OPEN_SECONDS = 60.0
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}


Live = Annotated[bool, typer.Option("--live", help="Show the group on a live page while it runs.")]


def demo(
    context: typer.Context,
    members: Members = 4,
    load: Load = 3.0,
    seconds: Seconds = 3.0,
    handling_us: HandlingUs = 250,
    order: FixedOrder = "sequencer-ub",
    starvation: Starvation = "none",
    burst: Burst = None,
    bucket: Bucket = BUCKET,
    acknowledge_ms: AcknowledgeMs = ACKNOWLEDGE_MS,
    part_ms: PartMs = PART_MS,
    part_count: PartCount = PART_COUNT,
    adaptation: Adaptation = ADAPTATION,
    live: Live = False,
    out: StudyDirectory = Path("demo-out"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Overload a real group on this machine, plain and prioritised, and compare the delivery times.

    Every member is a process that broadcasts messages of four priorities, faster than the group can handle
    them. Spark then verifies every guarantee on the traces and writes a report. With --live, a page shows
    the group meanwhile: in the plain run urgent messages wait like all others, in the prioritised run they
    overtake. Exit code 1: a violation.
    """
    check_order(order, primary=True, policy=parse_starvation(starvation))
    check_order_options(context, order)
    check_adaptation(adaptation)
    options = OrderingOptions(
        starvation=parse_starvation(starvation),
        burst=burst,
        bucket=bucket,
        acknowledge_ms=acknowledge_ms,
        part_ms=part_ms,
        part_count=part_count,
        adaptation=adaptation,
    )
    workload = Workload(members=members, load=load, seconds=seconds, handling_us=handling_us)
    planned = plan(workload, order, options)
    output = prepare_output(out)
    console = Console(stderr=as_json)
    console.print(
        f"[bold]{members} processes[/], each handles a message in {handling_us} us: "
        f"{workload.saturating_rate:,.0f} messages per second saturate the group"
    )
    if live:
        finished = _run_live(planned, output.traces, console)
    else:
        finished = [run_planned(each, output.traces, console) for each in planned]
    outcome = study_traces(output, master, console)
    if as_json:
        print_json(_document(finished, outcome))
    else:
        _show(load, finished, outcome, console)
    if outcome.broken or not all(run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATION)


def _run_live(planned: list[PlannedRun], traces: Path, console: Console) -> list[FinishedRun]:
    """Carry out the runs while a page shows them; they begin when somebody has it open."""
    from priocast.cli.live_page import live_page  # h11 takes 15 ms to import

    admins = [str(address) for address in free_addresses(planned[0].workload.members)]
    with live_page(admins, LISTEN) as page:
        console.print(f"The live page is at [link={page.url}]{page.url}[/link]")
        open_browser(page.url)
        if not page.wait_watched(0):
            console.print(f"The runs begin when it is open, or after {_OPEN_SECONDS:g} s.")
        page.wait_watched(_OPEN_SECONDS)
        return [run_planned(each, traces, console, admins) for each in planned]


def _show(load: float, finished: list[FinishedRun], outcome: "StudyResult", console: Console) -> None:
    half, plain, prioritised = finished
    times = {(time.run, time.priority): time for time in outcome.delivery_times}
    console.print(_comparison(times, load, half.name, plain.name, prioritised.name))
    _show_urgent(times, half.name, plain.name, prioritised.name, console)
    same = all(run.same_digest for run in finished)
    console.print(
        f"The {plain.members} members delivered the same messages in the same order in every run."
        if same
        else "[bold red]Members delivered different messages, or in different orders.[/]"
    )
    console.print(
        f"Scheduling delay of this machine, p99: {half.late_ms_p99:.1f} ms at half load, "
        f"{prioritised.late_ms_p99:.1f} ms under overload. It is a lower bound of every p99 above."
    )
    print_verdict(outcome, console)


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
        "p99\ngain",
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
        f"99 % of the [bold]urgent[/] messages were delivered within [bold]{duration(given)}[/] instead of "
        f"{duration(without)}: {without / given:,.0f} times faster, and {given / calm:.1f} x the time at "
        "half load."
    )


def _document(finished: list[FinishedRun], outcome: "StudyResult") -> dict[str, object]:
    return {
        "runs": finished,
        "verdicts": outcome.verdicts,
        "delivery_times": [
            {key: value for key, value in msgspec.to_builtins(time).items() if key != "curve"}
            for time in outcome.delivery_times
        ],
        "report": str(outcome.report),
    }
