"""The style of the figures: one colour for each run or priority, units on every axis, and only data.

Figures are drawn without pyplot, so that no state is shared. As SVG they take the text colour of the page.
"""

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

Data = TypeVar("Data")

#: Marks the figures as ours in their metadata: only such files are ever replaced.
MARK = "Priocast"
INK = "#24303c"
_WIDTH = 10.4
_PANELS_PER_ROW = 3
# Okabe and Ito's palette, which colour-blind readers can distinguish.
_RUN_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_LINES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")
#: How many runs can be distinguished by colour alone.
RUNS_BY_COLOUR = len(_RUN_COLOURS)
_LEGEND_COLUMNS = 4
_LEGEND_ROW_HEIGHT = 0.24
_LEGEND_LETTER_WIDTH = 0.085
_LEGEND_HANDLE_WIDTH = 0.7
# Views with consecutive numbers must be distinguishable, and white text must be legible on them.
VIEW_COLOURS = ("#0072b2", "#009e73", "#b8740a", "#a0527f", "#5b6b7b", "#1f8fc4", "#7a8f2a")
# From calm to alarming, by urgency; priorities without a name get colours in between.
_URGENCY_COLOURS = ("#8d99a6", "#5b8fb9", "#3c9d8f", "#e0a030", "#e8743b", "#d7263d")
SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "grid.color": "#8d99a6",
    "grid.alpha": 0.28,
    "grid.linewidth": 0.7,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "priocast",
}


def colours_of_runs(runs: Iterable[str]) -> dict[str, str]:
    """A colour for each run, the same in every figure."""
    return {run: _RUN_COLOURS[index % len(_RUN_COLOURS)] for index, run in enumerate(dict.fromkeys(runs))}


def lines_of_runs(runs: Iterable[str]) -> dict[str, str]:
    """A line style for each run: the next one where the colours repeat."""
    return {run: line_of(index // RUNS_BY_COLOUR) for index, run in enumerate(dict.fromkeys(runs))}


def line_of(index: int) -> str:
    """The line style with this index."""
    return _LINES[index % len(_LINES)]


def looks_of_runs(runs: Iterable[str]) -> dict[str, dict[str, str]]:
    """A colour, a line style and a marker for each run: where the colours repeat, the others differ."""
    looks = {}
    for index, run in enumerate(dict.fromkeys(runs)):
        again = index // RUNS_BY_COLOUR
        colour = _RUN_COLOURS[index % RUNS_BY_COLOUR]
        looks[run] = {"color": colour, "linestyle": line_of(again), "marker": _MARKERS[again % len(_MARKERS)]}
    return looks


def height_with_legend(height: float, labels: Collection[str]) -> float:
    """The height of a figure with a legend of these labels above it."""
    rows = -(-len(labels) // _legend_columns(labels))
    return height + _LEGEND_ROW_HEIGHT * (rows - 1)


def add_legend_above(axes: Axes) -> None:
    """Add a legend above the axes."""
    labels = axes.get_legend_handles_labels()[1]
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=_legend_columns(labels))


def _legend_columns(labels: Collection[str]) -> int:
    """As many columns as there is room for beside each other, if all are as wide as the longest label."""
    width = _LEGEND_HANDLE_WIDTH + _LEGEND_LETTER_WIDTH * max(map(len, labels))
    return max(min(len(labels), _LEGEND_COLUMNS, int(_WIDTH / width)), 1)


def colours_of_priorities(priorities: Iterable[int]) -> dict[int, str]:
    """A colour for each priority in use, spread over the scale from calm to alarming."""
    ordered = sorted(set(priorities))
    last = len(_URGENCY_COLOURS) - 1
    steps = max(len(ordered) - 1, 1)
    return {priority: _URGENCY_COLOURS[round(index * last / steps)] for index, priority in enumerate(ordered)}


def styled(draw: Callable[[Sequence[Data]], Figure]) -> Callable[[Sequence[Data]], Figure]:
    """Make a function draw in this style, independent of global settings."""

    @wraps(draw)
    def draw_styled(data: Sequence[Data]) -> Figure:
        with rc_context(SETTINGS):
            return draw(data)

    return draw_styled


def new_figure(
    height: float, panels: int = 1, *, share_x: bool = True, share_y: bool = True
) -> tuple[Figure, Sequence[Axes]]:
    """A figure as wide as the page, with panels that share their axes' ranges, three in a row at most."""
    columns = min(panels, _PANELS_PER_ROW)
    rows = -(-panels // columns)
    figure = Figure(figsize=(_WIDTH, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
    spare = list(grid.flat)[panels:]
    for axes in spare:
        axes.remove()
    return figure, list(grid.flat)[:panels]


def new_column(heights: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """A figure as wide as the page, with panels of these heights one below the other."""
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=list(heights))
    return figure, list(grid.flat)


class _PlainLogLocator(LogLocator):
    """Ticks at powers of ten; if that are few, also at 2 and 5; if that are few, too, evenly spaced ones."""

    _TICKS_MIN = 3

    def __init__(self) -> None:
        super().__init__(base=10, numticks=12)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        low, high = sorted((vmin, vmax))
        for subs in ((1.0,), (1.0, 2.0, 5.0)):
            values = self._values(low, high, subs)
            if low <= 0 or sum(low <= value <= high for value in values) >= self._TICKS_MIN:
                return values
        evenly: Sequence[float] = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [value for value in evenly if value > 0]

    def _values(self, low: float, high: float, subs: tuple[float, ...]) -> Sequence[float]:
        self.set_params(subs=subs)
        values: Sequence[float] = super().tick_values(low, high)
        return values


def use_log_milliseconds(axes: Axes, axis: str) -> None:
    """Show an axis of milliseconds with a logarithmic scale, in plain numbers."""
    _use_log(axes, axis, lambda value: f"{value:,.10g}")


def use_log_counts(axes: Axes, axis: str) -> None:
    """Show an axis of counts with a logarithmic scale: 500, 1k, 1M."""
    _use_log(axes, axis, short_count)


def short_count(value: float) -> str:
    """A large number in few letters: 500, 1k, 2.5M."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _use_log(axes: Axes, axis: str, text: Callable[[float], str]) -> None:
    chosen = axes.xaxis if axis == "x" else axes.yaxis
    if chosen.get_scale() != "log":  # axes that share it lose their labels
        axes.set(**{f"{axis}scale": "log"})
    chosen.set_major_locator(_PlainLogLocator())
    chosen.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    chosen.set_minor_formatter(NullFormatter())


def render_svg(figure: Figure) -> str:
    """The figure as an SVG element for a page: text and axes in the page's text colour, no background."""
    text = _render(figure, "svg").decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def render_png(figure: Figure) -> bytes:
    """The figure as a PNG on white."""
    return _render(figure, "png")


def _render(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    transparent = kind == "svg"
    metadata = {"Date": None, "Creator": MARK} if kind == "svg" else {"Software": MARK}
    with rc_context(SETTINGS):
        figure.savefig(buffer, format=kind, dpi=144, transparent=transparent, metadata=metadata)
    return buffer.getvalue()
