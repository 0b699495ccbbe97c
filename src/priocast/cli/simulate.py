"""`priocast simulate`: runs seeds in the simulator and checks every guarantee; failures can be replayed."""

import os
import re
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json_line
from priocast.cli.option_checks import check_empty_directory, check_replaceable
from priocast.cli.shared_options import Jobs
from priocast.core.errors import InvalidOption
from priocast.core.quality import parse_quality
from priocast.operations.output_paths import HASHES
from priocast.protocols import find_protocol
from priocast.simulation.choice import ALL_GENERATED, Choice, Delivery, Policy, replay_command
from priocast.simulation.faults import FaultKind
from priocast.simulation.playground.link import PlaygroundLink, parse_link
from priocast.simulation.playground.playground import play
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.service_generator import EVERY_QUALITY
from priocast.simulation.simulator import run_scenario
from priocast.simulation.swarm import SeedResult, SwarmSummary, result_of, run_swarm, summarise
from priocast.simulation.trace_writer import write_run

EXAMPLES = """
[bold]Examples[/]

  priocast simulate --seeds 0:10000 --jobs 8

  priocast simulate --seeds 17 --show

  priocast simulate --seeds 0:1000 --policy partitionable --delivery safe

  priocast simulate --seeds 0:1000 --members 5 --load 400 --fault crash

  priocast simulate --seeds 17 --out runs/17 && priocast verify runs/17

  priocast simulate --seeds 0:1000 --quality atomic

  priocast simulate --seeds 0:1000 --quality all

  priocast simulate --link 'seed=7&order=token-ring&do=200:send:a:224;300:kill:b'
"""
#: A fault or transition that occurs in fewer percent of the seeds is hardly tested.
OCCURS_PERCENT = 1.0
_SEEDS = re.compile(r"(\d+)(?::(\d+))?")

Order = Annotated[str | None, typer.Option(help="The ordering protocol of all seeds.", show_default="random")]
PartitionPolicy = Annotated[
    str | None, typer.Option(help="primary or partitionable, for all seeds.", show_default="random")
]
DeliveryGuarantee = Annotated[
    str | None, typer.Option(help="agreed or safe, for all seeds.", show_default="random")
]
Members = Annotated[int | None, typer.Option(help="Size of the group, for all seeds.", show_default="random")]
Load = Annotated[
    int | None, typer.Option(help="Percent of the random number and rate of messages.", show_default="100")
]
OnlyFault = Annotated[
    str | None,
    typer.Option(help=f"The only kind of fault: {', '.join(get_args(FaultKind))}.", show_default="random"),
]
Link = Annotated[str | None, typer.Option(help="Run what a link of the playground says, instead of seeds.")]
Qualities = Annotated[
    list[str] | None,
    typer.Option(
        help="Groups on a simulated LAN that send with this quality of service; may be given several "
        "times, or 'all'.",
        show_default="none",
    ),
]


def simulate(
    seeds: Annotated[str, typer.Option(help="One seed (17), or a range without its end (0:1000).")] = "0:100",
    jobs: Jobs = 0,
    order: Order = None,
    policy: PartitionPolicy = None,
    delivery: DeliveryGuarantee = None,
    members: Members = None,
    load: Load = None,
    fault: OnlyFault = None,
    quality: Qualities = None,
    link: Link = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print every option of the run. One seed only.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write a run directory for 'priocast verify'. One seed only.")
    ] = None,
    hashes: Annotated[
        Path | None, typer.Option(help="Write the hash of each seed's trace to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Simulate groups with faults, in virtual time, and check every guarantee.

    A seed determines every option of a run: the group, its load, the network and its faults. The same seed
    gives the same trace, byte for byte, and so does a link of the playground. Exit code 1: a guarantee was
    violated.
    """
    chosen = parse_seeds(seeds)
    if len(chosen) != 1 and link is None and (show or out is not None):
        raise InvalidOption(
            f"--show and --out need exactly one seed, but {seeds!r} has {len(chosen)}: give one, such as 17"
        )
    choice = _parse_choice(order, policy, delivery, members, load, fault, quality or [])
    played = None if link is None else _parse_played(link, choice)
    check_empty_directory("--out", out)
    check_replaceable("--hashes", hashes, HASHES)
    console = Console(stderr=as_json)
    if show:
        scenario = played.scenario() if played else generate_scenario(chosen[0], choice)
        console.print(scenario.describe(), markup=False, highlight=False)
    started = time.perf_counter()
    if played:
        outcomes = [result_of(play(played), started)]
    else:
        outcomes = _run(chosen, jobs or os.cpu_count() or 1, choice, console)
    summary = summarise(outcomes, time.perf_counter() - started, choice.fault_kinds)
    if hashes is not None:
        _write_hashes(outcomes, hashes)
    if out is not None:
        write_run(play(played) if played else run_scenario(generate_scenario(chosen[0], choice)), out)
    if as_json:
        print_json_line(summary)
    else:
        _print_summary(summary, console)
        for seed in summary.failed_seeds:
            command = played.command if played else replay_command(seed, str(choice))
            console.print(f"replay: {command}", markup=False)
    if summary.violations:
        raise typer.Exit(EXIT_VIOLATION)


def parse_seeds(text: str) -> range:
    """Parse `17`, one seed, or `0:100`, the seeds from 0 to 99."""
    match = _SEEDS.fullmatch(text)
    first = int(match[1]) if match else 0
    chosen = range(first, int(match[2]) if match[2] else first + 1) if match else range(0)
    if not chosen:
        raise InvalidOption(
            f"{text!r} is not a seed or a range of seeds: write a number, such as 17, or from:to, such as "
            "0:100 (0 to 99)"
        )
    return chosen


def _parse_played(link: str, choice: Choice) -> PlaygroundLink:
    """Parse a link of the playground, which fixes every option itself."""
    if choice != ALL_GENERATED:
        raise InvalidOption("a link says how its run is ordered, its size and its load: give only --link")
    return parse_link(link)


def _parse_choice(
    order: str | None,
    policy: str | None,
    delivery: str | None,
    members: int | None,
    load: int | None,
    fault: str | None,
    qualities: Sequence[str],
) -> Choice:
    """Parse the options that are fixed for all seeds."""
    if order is not None:
        find_protocol(order)
    for name, value, known in (
        ("policy", policy, Policy),
        ("delivery", delivery, Delivery),
        ("fault", fault, FaultKind),
    ):
        check_choices(name, [] if value is None else [value], known)
    return Choice(
        order=order,
        policy=cast("Policy | None", policy),
        delivery=cast("Delivery | None", delivery),
        members=members,
        load=load,
        fault=cast("FaultKind | None", fault),
        qualities=EVERY_QUALITY
        if "all" in qualities
        else tuple(str(parse_quality(each)) for each in qualities),
    )


def check_choices(name: str, values: Sequence[str], known: object) -> None:
    """Raise InvalidOption if a value of this option is not in the `Literal` that is known."""
    for value in values:
        if value not in get_args(known):
            raise InvalidOption(f"--{name} is {value!r}: choose {' or '.join(map(repr, get_args(known)))}")


def seed_columns() -> tuple[ProgressColumn, ...]:
    """The columns of a progress bar over seeds."""
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()


def _run(seeds: range, jobs: int, choice: Choice, console: Console) -> list[SeedResult]:
    outcomes: list[SeedResult] = []
    with (
        closing(run_swarm(seeds, jobs, choice)) as results,  # ends its processes, whatever interrupts
        Progress(*seed_columns(), console=console, transient=True) as progress,
    ):
        bar = progress.add_task("seeds", total=len(seeds))
        for outcome in results:
            outcomes.append(outcome)
            progress.advance(bar)
            for violation in outcome.violations:
                progress.console.print(str(violation), style="red", markup=False, highlight=False)
    return outcomes


def _write_hashes(outcomes: list[SeedResult], path: Path) -> None:
    lines = sorted((outcome.seed, outcome.digest) for outcome in outcomes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{seed} {digest}\n" for seed, digest in lines))


def _print_summary(summary: SwarmSummary, console: Console) -> None:
    table = Table(title=f"{summary.seeds:,} seeds", title_justify="left", show_header=False)
    table.add_row("time", f"{summary.seconds:.1f} s, {summary.seeds / summary.seconds:.1f} seeds/s")
    table.add_row("virtual time", f"{summary.virtual_seconds:,.1f} s")
    table.add_row("messages", f"{summary.broadcasts:,} broadcast, {summary.deliveries:,} delivered")
    table.add_row("frames", f"{summary.frames:,}")
    table.add_row("views", f"{summary.views:,}")
    for title, percents in (
        ("faults", summary.fault_percent),
        ("view changes", summary.transition_percent),
    ):
        table.add_section()
        table.add_row(title, "share of the seeds", style="bold")
        for kind, percent in percents.items():
            table.add_row(
                f"  {kind}", f"{percent:5.1f} %", style="" if percent >= OCCURS_PERCENT else "yellow"
            )
    table.add_section()
    for title, seeds in (
        ("slowest seeds", summary.slowest),
        ("slowest to quiescence", summary.slowest_to_rest),
    ):
        table.add_row(title, ", ".join(f"{seed} ({seconds:.2f} s)" for seed, seconds in seeds))
    table.add_row("violations", str(len(summary.violations)), style="red" if summary.violations else "green")
    console.print(table)
    if summary.digest:
        console.print(f"digest: {summary.digest}", markup=False, highlight=False, soft_wrap=True)
