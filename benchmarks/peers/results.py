"""The results of a comparison: medians and spread, as Markdown and as a figure."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.peers.launches import LaunchResult
from benchmarks.peers.load import PeerLoad
from benchmarks.peers.systems import PeerSystem
from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.style import new_figure, styled

FIGURE = "peers"


class PeerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the launches of one system gave; if it was skipped or failed, why."""

    name: str
    setup: str
    guarantees: str
    launches: list[LaunchResult]
    reason: str = ""


def result_of(system: PeerSystem, launches: Sequence[LaunchResult], reason: str = "") -> PeerResult:
    """The result of a system."""
    return PeerResult(
        name=system.name,
        setup=system.setup,
        guarantees=system.guarantees,
        launches=list(launches),
        reason=reason,
    )


def markdown(results: Sequence[PeerResult], load: PeerLoad, machine: Mapping[str, str]) -> str:
    """A table with a row for each system, and what was measured and where."""
    lines = [
        _explanation(load, machine),
        "",
        "| system | set-up | guarantees | launches | msg/s | delivery, ms | foreign load before | during |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        count = (
            f"{len(each.launches)}, then {each.reason}"
            if each.launches and each.reason
            else len(each.launches)
        )
        head = [each.name, each.setup, each.guarantees, str(count)]
        cells = [
            _spread(rates_of(each), "{:,.0f}"),
            _spread([launch.delivery_us / 1000 for launch in each.launches], "{:.2f}"),
            _spread([launch.foreign_cores for launch in each.launches], "{:.1f}"),
            _spread([launch.foreign_cores_measured for launch in each.launches], "{:.1f}"),
        ]
        lines.append(f"| {' | '.join([*head, *(cells if each.launches else [each.reason, '', '', ''])])} |")
    return "\n".join(lines) + "\n"


def _explanation(load: PeerLoad, machine: Mapping[str, str]) -> str:
    where = ", ".join(f"{name}: {value}" for name, value in machine.items())
    return (
        f"{load.members} members, messages of {load.size} bytes. Rate: messages per second delivered at the "
        f"slowest member, {load.messages:,} per member (slow systems: fewer) after {load.warm_ups} such "
        f"rounds. Delivery time: median at {load.rate} messages per second and member, without the first "
        "member. Median (lowest to highest) of the launches, which took turns. Foreign load: processors that "
        f"other programs kept busy just before a launch, and during its measured part. {where}."
    )


def rates_of(result: PeerResult) -> list[float]:
    """The rates of the launches that have one."""
    return [launch.rate for launch in result.launches if launch.rate is not None]


def _spread(values: Sequence[float], shape: str) -> str:
    if not values:
        return ""
    median, low, high = (
        shape.format(value) for value in (statistics.median(values), min(values), max(values))
    )
    return median if low == high else f"{median} ({low} to {high})"


@styled
def draw_peers(results: Sequence[PeerResult]) -> Figure:
    """Delivery time over rate: a mark for each launch, a name at the median."""
    figure, (axes,) = new_figure(5.0)
    for each in results:
        rates = rates_of(each)
        times = [launch.delivery_us / 1000 for launch in each.launches]
        if rates:
            axes.plot(rates, times, "o", ms=4, alpha=0.6)
            axes.annotate(each.name, (statistics.median(rates), statistics.median(times)), fontsize=9)
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.set_xlabel("messages/s, delivered at the slowest member")
    axes.set_ylabel("delivery time at a steady rate, median (ms)")
    return figure


def write_results(
    results: Sequence[PeerResult], load: PeerLoad, machine: Mapping[str, str], out: Path
) -> None:
    """Write `peers.md` and `peers.json`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "peers.md").write_text(markdown(results, load, machine), encoding="utf-8")
    (out / "peers.json").write_bytes(
        msgspec.json.encode({"load": load, "machine": machine, "results": results})
    )


def write_drawing(results: Sequence[PeerResult], out: Path) -> None:
    """Write the figure."""
    write_figure(FIGURE, draw_peers(results), out)
