"""`priocast study adaptive`: how the adaptive order follows its senders, beside all-ack and causal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from priocast.cli.exit_codes import EXIT_VIOLATION
from priocast.cli.json_output import print_json
from priocast.cli.shared_options import MASTER, AsJson, Master, StudyDirectory
from priocast.cli.study_output import prepare_output, print_verdict, progress_bar, study_traces
from priocast.core.errors import InvalidOption
from priocast.study.adaptive import (
    ALL_ACK,
    CAUSAL,
    LoadRun,
    LoadVariant,
    carry_out,
    simulate,
    variants,
    weights_over_time,
)
from priocast.study.adaptive_load import AdaptiveLoad

if TYPE_CHECKING:
    from priocast.pipeline.results import StudyResult

EXAMPLES = """
[bold]Examples[/]

  priocast study adaptive

  priocast study adaptive --only simulator --seconds 120

  priocast study adaptive --slow-seconds 1 --json
"""
_DEFAULT = AdaptiveLoad()
_SIMULATOR, _PROCESSES = "simulator", "processes"


class OrderTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery times of one run: of what was sent in its first half, and in its second half.

    `of_causal` is the mean as a multiple of the causal floor under the same load, and `of_all_ack`
    the variance of all-ack as a multiple of this one's.
    """

    run: str
    mean_ms_first_half: float
    variance_first_half: float
    mean_ms: float
    variance: float
    p99_ms: float
    of_causal: float | None
    of_all_ack: float | None


def adaptive(
    seconds: Annotated[float, typer.Option(help="How long each run sends.")] = _DEFAULT.seconds,
    slow_seconds: Annotated[
        float, typer.Option(help="How long a slow sender pauses between messages, in seconds.")
    ] = _DEFAULT.slow_seconds,
    only: Annotated[
        str | None, typer.Option(help="simulator or processes: run only there.", show_default="both")
    ] = None,
    changing: Annotated[
        bool,
        typer.Option("--changing/--constant", help="Also with rates that change, or constant ones only."),
    ] = True,
    out: StudyDirectory = Path("study-out/adaptive"),
    master: Master = MASTER,
    as_json: AsJson = False,
) -> None:
    """Send the adaptive paper's load with several orders, and measure how evenly it is delivered.

    Two senders broadcast 10 messages per second, one 20, and three are slow. In all-ack every message waits
    for the slow senders; the adaptive order gives them few slots. The quality causal orders nothing: no order
    is faster. The same again with rates that change, pauses and, in the simulator, a sender that joins. Spark
    verifies every guarantee and measures the times at the other members. Exit code 1: a violation.
    """
    if only not in (None, _SIMULATOR, _PROCESSES):
        raise InvalidOption(f"--only is {only!r}: it must be {_SIMULATOR} or {_PROCESSES}")
    load = AdaptiveLoad(seconds=seconds, slow_seconds=slow_seconds)
    output = prepare_output(out)
    console = Console(stderr=as_json)
    finished: list[LoadRun] = []
    if only != _PROCESSES:
        finished += [_simulate(each, output.traces, console) for each in _simulated(load, changing)]
    if only != _SIMULATOR:
        finished += [_carry_out(each, output.traces, console) for each in _real(load, changing)]
    weights = [sample for run in finished for sample in weights_over_time(run)]
    outcome = study_traces(output, master, console, weights)
    rows = times_of(outcome, [run.variant for run in finished])
    if as_json:
        samples = {run.variant.name: run.samples for run in finished if run.samples}
        print_json({"load": load, "runs": rows, "weights": samples, "report": str(outcome.report)})
    else:
        console.print(_table(rows, load))
        print_verdict(outcome, console)
    if outcome.broken or any(run.violations or not run.same_digest for run in finished):
        raise typer.Exit(EXIT_VIOLATION)


def _simulated(load: AdaptiveLoad, changing: bool) -> list[LoadVariant]:
    later = msgspec.structs.replace(load, changes=True, joins=True)
    return [*variants("sim", load), *(variants("sim-changing", later) if changing else ())]


def _real(load: AdaptiveLoad, changing: bool) -> list[LoadVariant]:
    later = msgspec.structs.replace(load, changes=True)
    return [*variants("real", load), *(variants("real-changing", later)[:1] if changing else ())]


def _simulate(variant: LoadVariant, traces: Path, console: Console) -> LoadRun:
    with console.status(f"{variant.name}: simulating"):
        return simulate(variant, traces)


def _carry_out(variant: LoadVariant, traces: Path, console: Console) -> LoadRun:
    with progress_bar(console) as progress:
        task = progress.add_task(variant.name, total=variant.load.total)
        return carry_out(variant, traces, lambda delivered: progress.update(task, completed=delivered))


def times_of(outcome: "StudyResult", runs: Sequence[LoadVariant]) -> list[OrderTimes]:
    """The times of each run over all senders, compared with the other runs under the same load."""
    found = {(time.run, time.settled): time for time in outcome.sender_times if not time.sender}
    rows = []
    for variant in runs:
        after, before = found[variant.name, True], found.get((variant.name, False))
        floor, all_ack = (found.get((f"{variant.environment}-{way}", True)) for way in (CAUSAL, ALL_ACK))
        rows.append(
            OrderTimes(
                run=variant.name,
                mean_ms_first_half=before.mean_ms if before else 0.0,
                variance_first_half=before.variance_ms2 if before else 0.0,
                mean_ms=after.mean_ms,
                variance=after.variance_ms2,
                p99_ms=after.p99_ms,
                of_causal=after.mean_ms / floor.mean_ms if floor else None,
                of_all_ack=all_ack.variance_ms2 / after.variance_ms2 if all_ack else None,
            )
        )
    return rows


def _table(rows: Sequence[OrderTimes], load: AdaptiveLoad) -> Table:
    title = f"ms until the other members deliver; slow senders pause for {load.slow_seconds:g} s"
    caption = "equal-weights: the adaptive order without adaptation; most columns: the second half of a run"
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("run", no_wrap=True)
    for heading in ("mean,\n1st half", "variance,\n1st half", "mean", "variance", "p99", "mean:\ncausal"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("all-ack:\nvariance", justify="right", no_wrap=True)
    for row in rows:
        values = (row.mean_ms_first_half, row.variance_first_half, row.mean_ms, row.variance, row.p99_ms)
        ratios = (row.of_causal, row.of_all_ack)
        table.add_row(row.run, *map(_brief, values), *(_brief(each) if each else "" for each in ratios))
    return table


def _brief(value: float) -> str:
    """Three digits, and powers of ten only where they save room."""
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"
