"""The figures of a report as files, for use in other documents."""

from pathlib import Path

from matplotlib.figure import Figure

from priocast.pipeline.figures.delivery_time import draw_distributions, draw_p99
from priocast.pipeline.figures.membership import draw_membership, lanes_of_changing_runs
from priocast.pipeline.figures.over_time import draw_queue_depth, draw_throughput
from priocast.pipeline.figures.style import render_png, render_svg
from priocast.pipeline.results import StudyResult


def write_figures(result: StudyResult, directory: Path) -> list[Path]:
    """Write every figure as SVG and PNG; return the paths."""
    figures = {
        "throughput": draw_throughput(result.throughputs),
        "queue-depth": draw_queue_depth(result.queue_depths),
    }
    if result.delivery_times:
        figures["delivery-times"] = draw_distributions(result.delivery_times)
        figures["p99"] = draw_p99(result.delivery_times)
    if changing := lanes_of_changing_runs(result.lanes):
        figures["membership"] = draw_membership(changing)
    return [path for name, figure in figures.items() for path in write_figure(name, figure, directory)]


def write_figure(name: str, figure: Figure, directory: Path) -> list[Path]:
    """Write one figure as PNG and SVG; return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    picture, page = directory / f"{name}.png", directory / f"{name}.svg"
    picture.write_bytes(render_png(figure))
    page.write_text(render_svg(figure), encoding="utf-8")
    return [picture, page]
