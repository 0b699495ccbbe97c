"""The figures of a report as files, for papers and pages of one's own."""

from pathlib import Path

from matplotlib.figure import Figure

from priocast.pipeline.figures.delivery_time import draw_distributions, draw_p99
from priocast.pipeline.figures.membership import draw_membership, lanes_of_changing_runs
from priocast.pipeline.figures.over_time import draw_queue_depth, draw_throughput
from priocast.pipeline.figures.style import render_png, render_svg
from priocast.pipeline.outcome import Outcome


def write_figures(outcome: Outcome, directory: Path) -> list[Path]:
    """Write every figure as SVG and as PNG; return what was written."""
    figures = {
        "throughput": draw_throughput(outcome.throughputs),
        "queue-depth": draw_queue_depth(outcome.queue_depths),
    }
    if outcome.delivery_times:
        figures["delivery-times"] = draw_distributions(outcome.delivery_times)
        figures["p99"] = draw_p99(outcome.delivery_times)
    if changing := lanes_of_changing_runs(outcome.lanes):
        figures["membership"] = draw_membership(changing)
    return [path for name, figure in figures.items() for path in write_figure(name, figure, directory)]


def write_figure(name: str, figure: Figure, directory: Path) -> list[Path]:
    """Write one figure as PNG and as SVG; return what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    picture, page = directory / f"{name}.png", directory / f"{name}.svg"
    picture.write_bytes(render_png(figure))
    page.write_text(render_svg(figure), encoding="utf-8")
    return [picture, page]
