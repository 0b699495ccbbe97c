"""A figure of one message: every queue that it came to, before and after, as in the reorder paper's Figure 2.

One pair of columns a queue, the head on top. What had left the queue before is faded, above a line; the
message itself has a thick edge.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from priocast.pipeline.figures.style import INK, SETTINGS, colours_of_priorities, render_png, render_svg
from priocast.trace.explanation import Explanation, Waited
from priocast.trace.queues import Entry, Kind

_CELL_INCHES = 0.3
_COLUMN_INCHES = 1.45
_CELLS_MAX = 14
_GONE_MAX = 3
_FADED = 0.28
_TITLES = {Kind.SENDER: "sender {}", Kind.ORDERER: "orderer {}", Kind.MEMBER: "{}"}


class Cell(NamedTuple):
    """One cell of a column: a message, or how many are left out."""

    text: str
    priority: int | None
    faded: bool = False
    marked: bool = False


def draw_explanation(explanation: Explanation) -> Figure:
    """The queues side by side: when the message came, and with it."""
    waits = _drawn(explanation)
    with rc_context(SETTINGS):
        columns = [_columns(waited) for waited in waits]
        rows = max(len(column) for pair in columns for column in pair)
        width, height = 2 * _COLUMN_INCHES * len(columns) + 0.3, (rows + 2.2) * _CELL_INCHES + 0.9
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, 2 * len(columns))
        axes.set_ylim(rows + 0.2, -2.2)
        colours = colours_of_priorities(
            entry.priority for waited in waits for entry in (*waited.gone, *waited.after)
        )
        for index, (waited, pair) in enumerate(zip(waits, columns, strict=True)):
            _draw_queue(axes, 2 * index, waited, pair, colours)
        figure.suptitle(_title(explanation), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
        figure.legend(
            [Patch(facecolor=colour) for colour in reversed(colours.values())],
            [f"priority {priority}" for priority in reversed(colours)],
            loc="outside lower center",
            ncols=min(len(colours), 6),
        )
        return figure


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Draw into a file, on white: as SVG or as PNG, by the file's name."""
    figure = draw_explanation(explanation)
    if path.suffix == ".svg":
        drawn = render_svg(figure).replace("currentColor", INK)
        path.write_text(drawn.replace("<svg ", '<svg style="background: white" ', 1), encoding="utf-8")
    else:
        path.write_bytes(render_png(figure))


def _drawn(explanation: Explanation) -> Sequence[Waited]:
    """The members' queues, where those are re-ordered; otherwise those in which the message waited."""
    at_members = [waited for waited in explanation.waits if waited.kind is Kind.MEMBER]
    return at_members or explanation.waits


def _title(explanation: Explanation) -> str:
    place = "not delivered" if explanation.position is None else f"position {explanation.position}"
    return f"{explanation.message}: {place}, {explanation.view.order.order}"


def _columns(waited: Waited) -> tuple[list[Cell], list[Cell]]:
    """The cells of both columns, from what had left the queue to its end."""
    gone = [_cell(entry, waited, faded=True) for entry in waited.gone[-_GONE_MAX:]]
    hidden = len(waited.gone) - len(gone)
    if hidden > 0:
        gone.insert(0, Cell(f"{hidden:,} more", None, faded=True))
    centre = waited.after.index(waited.entry)
    return [*gone, *_shown(waited.before, waited, centre)], [*gone, *_shown(waited.after, waited, centre)]


def _shown(entries: Sequence[Entry], waited: Waited, centre: int) -> list[Cell]:
    first = max(0, min(centre - _CELLS_MAX // 2, len(entries) - _CELLS_MAX))
    cells = [_cell(entry, waited) for entry in entries[first : first + _CELLS_MAX]]
    left = len(entries) - first - len(cells)
    above = [Cell(f"{first:,} more", None)] if first else []
    below = [Cell(f"{left:,} more", None)] if left else []
    return [*above, *cells, *below]


def _cell(entry: Entry, waited: Waited, faded: bool = False) -> Cell:
    return Cell(str(entry.message), entry.priority, faded, entry is waited.entry)


def _draw_queue(
    axes: Axes, left: float, waited: Waited, pair: Sequence[Sequence[Cell]], colours: dict[int, str]
) -> None:
    title = _TITLES[waited.kind].format(waited.process)
    axes.text(left + 1, -1.6, title, ha="center", va="center", fontweight="bold")
    for index, (name, cells) in enumerate(zip(("when it came", "with it"), pair, strict=True)):
        axes.text(left + index + 0.5, -0.7, name, ha="center", va="center", fontsize=9)
        for row, cell in enumerate(cells):
            _draw_cell(axes, left + index, row, cell, colours)
        faded = sum(cell.faded for cell in cells)
        if faded:
            axes.plot([left + index + 0.04, left + index + 0.96], [faded, faded], color=INK, linewidth=1)
        if len(cells) == faded:
            axes.text(left + index + 0.5, faded + 0.5, "empty", ha="center", va="center", fontsize=8.5)


def _draw_cell(axes: Axes, left: float, row: int, cell: Cell, colours: dict[int, str]) -> None:
    alpha = _FADED if cell.faded else 1.0
    if cell.priority is not None:
        edge = 2.4 if cell.marked else 0.0
        axes.add_patch(
            FancyBboxPatch(
                (left + 0.09, row + 0.12),
                0.82,
                0.76,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=colours[cell.priority],
                edgecolor=INK if cell.marked else "none",
                linewidth=edge,
                alpha=alpha,
            )
        )
    filled = cell.priority is not None and not cell.faded
    axes.text(
        left + 0.5,
        row + 0.5,
        cell.text,
        ha="center",
        va="center",
        fontsize=8.5,
        color="white" if filled else INK,
        fontweight="bold" if cell.marked else "normal",
    )
