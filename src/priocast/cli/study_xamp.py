"""`priocast study xamp`: how long each quality of service takes, by message size and number of members."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.option_checks import check_figures, first_given
from priocast.cli.shared_options import MASTER, AsJson, Master, StudyDirectory
from priocast.cli.study_output import (
    StudyOutput,
    prepare_output,
    print_verdict,
    progress_bar,
    study_traces,
    whole_numbers,
)
from priocast.core.errors import InvalidOption
from priocast.core.message_times import MessageTimes
from priocast.core.quality import QualityKind
from priocast.study.xamp import (
    ExecutionTime,
    StoredGroup,
    XampPlan,
    by_group,
    expected_ms,
    indication_formula,
    keeps_window,
    measure_group,
    run_name,
    short_name,
    store_group,
    stored_group,
    times_of,
    window_of,
)
from priocast.study.xamp_worker import RAW, TOTAL_ORDER

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult

EXAMPLES = """
[bold]Examples[/]

  priocast study xamp

  priocast study xamp --members 2,4,8 --sizes 64,1024

  priocast study xamp --quick --json
"""
FIGURES = ("xamp-reliable", "xamp-atomic", "xamp-qualities")
_UNCOMPARED = {RAW: "Γ, Tr", "delta": "Δ+δ"}
_DEFAULT = XampPlan()
_QUICK_MEMBERS = (2, 3, 4)
_QUICK_SIZES = (64, 4096)
_QUICK_MESSAGES = 10
_ALLOWED_WITH_QUICK = {"quick", "out", "master", "as_json", "delta_ms", "precision_ms"}


def xamp(
    context: typer.Context,
    members: Annotated[str, typer.Option(help="Group sizes, separated by commas.")] = "2,3,4,6,8",
    sizes: Annotated[
        str, typer.Option(help="Message sizes in bytes, separated by commas.")
    ] = "64,1024,4096,16384",
    messages: Annotated[
        int, typer.Option(help="Messages of each quality and size, in each group.")
    ] = _DEFAULT.messages,
    delta_ms: Annotated[
        float, typer.Option(help="After what time delta delivers, in milliseconds.")
    ] = _DEFAULT.delta_ms,
    precision_ms: Annotated[
        float, typer.Option(help="How far two clocks may be apart for delta, in milliseconds.")
    ] = _DEFAULT.precision_ms,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"Small groups, {_QUICK_MESSAGES} messages of 2 sizes."),
    ] = False,
    out: StudyDirectory = Path("study-out/xamp"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Measure how long every quality of service takes, for several group and message sizes.

    One process sends, the others receive. Bare TCP, the total order and all qualities take turns, message by
    message. The times come from the traces, on Spark, which also verifies every guarantee. Each is compared
    with what the formulas of the xAMp paper give for the bare TCP of this machine. Groups that an interrupted
    study with the same options has finished are not measured again. Run it on an otherwise idle machine. Exit
    code 1: a violation, or delta delivered outside its window and the recipient did not mark it as late.
    """
    if quick and (given := first_given(context, except_for=_ALLOWED_WITH_QUICK)):
        raise InvalidOption(f"--quick sets the groups, sizes and messages: omit {given}, or omit --quick")
    plan = XampPlan(
        members=_QUICK_MEMBERS if quick else whole_numbers("--members", members),
        sizes=_QUICK_SIZES if quick else whole_numbers("--sizes", sizes),
        messages=_QUICK_MESSAGES if quick else messages,
        delta_ms=delta_ms,
        precision_ms=precision_ms,
    )
    check_figures("--out", out, FIGURES)
    console = Console(stderr=as_json)
    groups, output = measure_groups(plan, out, console)
    outcome = study_traces(output, master, console)
    times = [each for group in groups for each in group.times] + _from_traces(plan, outcome)
    clocked = [each for each in times if _is_delta(each.way)]
    outside = [each for each in clocked if not keeps_window(each, plan)]
    figures = _draw(times, plan, out)
    if as_json:
        broken = [f"{verdict.run}: {verdict.guarantee}" for verdict in outcome.broken]
        print_json({"plan": plan, "times": times, "broken": broken, "figures": list(map(str, figures))})
    else:
        for size in plan.members:
            console.print(_table(times, plan, size))
        _print_window(clocked, outside, plan, console)
        print_verdict(outcome, console)
        console.print(f"Figures: {', '.join(str(path) for path in figures if path.suffix == '.svg')}")
    if outcome.broken or outside:
        raise typer.Exit(EXIT_VIOLATION)


def measure_groups(plan: XampPlan, out: Path, console: Console) -> tuple[list[StoredGroup], StudyOutput]:
    """Measure the groups that an earlier study with the same plan has not finished."""
    found = {size: stored_group(out, size, plan) for size in plan.members}
    kept = {size: group for size, group in found.items() if group is not None}
    output = prepare_output(out, keep={run_name(size) for size in kept})
    kept = {size: group for size, group in kept.items() if (output.traces / run_name(size)).is_dir()}
    if kept:
        console.print(f"Already measured: groups of {', '.join(map(str, kept))}.")
    with progress_bar(console) as progress:
        for size in plan.members:
            if size in kept:
                continue
            task = progress.add_task(f"{size} members", total=plan.total(size))

            def show(sent: int, task: int = task) -> None:
                progress.update(task, completed=sent)  # type: ignore[arg-type]

            reports = measure_group(size, plan, str(output.traces / run_name(size)), show)
            times = times_of(size, plan, reports, (RAW, TOTAL_ORDER))
            kept[size] = StoredGroup(plan=plan, members=size, times=times)
            store_group(out, kept[size])
    return [kept[size] for size in plan.members], output


def _from_traces(plan: XampPlan, outcome: "StudyResult") -> list[ExecutionTime]:
    members_of = {run_name(size): size for size in plan.members}
    return [
        ExecutionTime(
            members=members_of[each.run],
            size=each.bytes,
            way=each.quality,
            **{name: getattr(each, name) for name in MessageTimes.__struct_fields__},
        )
        for each in outcome.service_times
        if each.run in members_of
    ]


def _table(times: Iterable[ExecutionTime], plan: XampPlan, members: int) -> Table:
    found = by_group(times)
    table = Table(
        title=f"{members} members: medians in ms",
        caption=(
            "indication: delivery at the last recipient; paper: T_e (best) of its Table 4, with Γ and Tr(d) "
            "of bare TCP between these processes; spread: between the first and the last delivery"
        ),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("indi-\ncation", "", "paper", "x\npaper", "confir-\nmation", "spread", "longest\nspread"):
        table.add_column(heading, justify="right", no_wrap=True)
    for size in plan.sizes:
        raw = found[members, size, RAW]
        for way in plan.ways(members):
            if (time := found.get((members, size, way))) is None:
                continue
            first = way == RAW
            cells = _cells(time, raw)
            name = short_name(way)
            table.add_row(f"{size:,}" if first else "", name, *cells, style="dim" if first else "")
        table.add_section()
    return table


def _cells(time: ExecutionTime, raw: ExecutionTime) -> list[str]:
    formula, expected = indication_formula(time.way), expected_ms(time.way, raw)
    is_compared = formula is not None and expected is not None and expected > 0
    return [
        _ms(time.indication_ms),
        formula.text if formula else _UNCOMPARED.get(short_name(time.way), ""),
        _ms(expected) if is_compared and expected else "",
        f"{time.indication_ms / expected:.1f}" if is_compared and expected else "",
        _ms(time.confirmation_ms),
        _ms(time.spread_ms),
        _ms(time.spread_max_ms),
    ]


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.3f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def _print_window(
    clocked: list[ExecutionTime], outside: list[ExecutionTime], plan: XampPlan, console: Console
) -> None:
    first, last = window_of(plan)
    stated = f"{first:g} to {last:g} ms after the sending, and at most {plan.precision_ms:g} ms apart"
    if not outside:
        console.print(f"delta: [bold green]every delivery in its window[/], {stated}.")
    if late := sum(each.late for each in clocked):
        count = late + sum(each.count for each in clocked)
        console.print(
            f"delta: {late} of {count} messages are not in the figures: a recipient was late and said so, "
            "because the machine did not run it in time."
        )
    for each in outside:
        console.print(
            f"[red]delta: {each.members} members, {each.size:,} bytes: {each.shortest_ms:.1f} to "
            f"{each.longest_ms:.1f} ms, up to {each.spread_max_ms:.1f} ms apart, {each.incomplete} not "
            f"delivered everywhere; stated: {stated}[/]"
        )


def _draw(times: list[ExecutionTime], plan: XampPlan, out: Path) -> list[Path]:
    from priocast.pipeline.figures.execution_time import MeasuredTime, draw_over_members, draw_over_sizes
    from priocast.pipeline.figures.figure_files import write_figure

    def measured(each: ExecutionTime) -> MeasuredTime:
        is_raw, name = each.way == RAW, short_name(each.way)
        return MeasuredTime(name, each.members, each.size, each.indication_ms, each.confirmation_ms, is_raw)

    middle = plan.sizes[len(plan.sizes) // 2]
    figures = (
        draw_over_sizes([measured(each) for each in times if each.way == QualityKind.RELIABLE]),
        draw_over_sizes([measured(each) for each in times if each.way == QualityKind.ATOMIC]),
        draw_over_members([measured(each) for each in times if each.size == middle]),
    )
    return [
        path
        for name, figure in zip(FIGURES, figures, strict=True)
        for path in write_figure(name, figure, out)
    ]


def _is_delta(way: str) -> bool:
    return way.startswith(QualityKind.DELTA)
