"""A figure of one message: every queue that it entered, before and after, as in the reorder paper's Figure 2.

Each queue is a pair of columns with its head on top. Messages that had already left the queue are faded,
above a line; the message itself has a thick edge.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from priocast.pipeline.figures.style import INK, SETTINGS, colours_of_priorities, render_png, render_svg
from priocast.trace.explanation import Explanation, QueueWait
from priocast.trace.queues import QueueEntry, QueueKind

_CELL_INCHES = 0.3
_COLUMN_INCHES = 1.45
_CELLS_MAX = 14
_GONE_MAX = 3
_FADED = 0.28
_TITLES = {QueueKind.SENDER: "sender {}", QueueKind.ORDERER: "orderer {}", QueueKind.MEMBER: "{}"}


class Cell(NamedTuple):
    """One cell of a column: a message, or the number of messages that are not shown."""

    text: str
    priority: int | None
    faded: bool = False
    marked: bool = False


def draw_explanation(explanation: Explanation) -> Figure:
    """The queues side by side: on arrival of the message, and with it."""
    waits = _drawn(explanation)
    with rc_context(SETTINGS):
        columns = [_columns(wait) for wait in waits]
        rows = max(len(column) for pair in columns for column in pair)
        width, height = 2 * _COLUMN_INCHES * len(columns) + 0.3, (rows + 2.2) * _CELL_INCHES + 0.9
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, 2 * len(columns))
        axes.set_ylim(rows + 0.2, -2.2)
        colours = colours_of_priorities(
            entry.priority for wait in waits for entry in (*wait.gone, *wait.after)
        )
        for index, (wait, pair) in enumerate(zip(waits, columns, strict=True)):
            _draw_queue(axes, 2 * index, wait, pair, colours)
        figure.suptitle(_title(explanation), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
        figure.legend(
            [Patch(facecolor=colour) for colour in reversed(colours.values())],
            [f"priority {priority}" for priority in reversed(colours)],
            loc="outside lower center",
            ncols=min(len(colours), 6),
        )
        return figure


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Write the figure to a file, on white, as SVG or PNG by the file's suffix."""
    figure = draw_explanation(explanation)
    if path.suffix == ".svg":
        drawn = render_svg(figure).replace("currentColor", INK)
        path.write_text(drawn.replace("<svg ", '<svg style="background: white" ', 1), encoding="utf-8")
    else:
        path.write_bytes(render_png(figure))


def _drawn(explanation: Explanation) -> Sequence[QueueWait]:
    """The members' queues if those are reordered; otherwise the queues in which the message wait."""
    at_members = [wait for wait in explanation.waits if wait.kind is QueueKind.MEMBER]
    return at_members or explanation.waits


def _title(explanation: Explanation) -> str:
    position = "not delivered" if explanation.position is None else f"position {explanation.position}"
    return f"{explanation.message}: {position}, {explanation.view.order.order}"


def _columns(wait: QueueWait) -> tuple[list[Cell], list[Cell]]:
    """The cells of both columns, from the messages that had left the queue to its tail."""
    gone = [_cell(entry, wait, faded=True) for entry in wait.gone[-_GONE_MAX:]]
    hidden = len(wait.gone) - len(gone)
    if hidden > 0:
        gone.insert(0, Cell(f"{hidden:,} more", None, faded=True))
    centre = wait.after.index(wait.entry)
    return [*gone, *_shown(wait.before, wait, centre)], [*gone, *_shown(wait.after, wait, centre)]


def _shown(entries: Sequence[QueueEntry], wait: QueueWait, centre: int) -> list[Cell]:
    first = max(0, min(centre - _CELLS_MAX // 2, len(entries) - _CELLS_MAX))
    cells = [_cell(entry, wait) for entry in entries[first : first + _CELLS_MAX]]
    left = len(entries) - first - len(cells)
    above = [Cell(f"{first:,} more", None)] if first else []
    below = [Cell(f"{left:,} more", None)] if left else []
    return [*above, *cells, *below]


def _cell(entry: QueueEntry, wait: QueueWait, faded: bool = False) -> Cell:
    return Cell(str(entry.message), entry.priority, faded, entry is wait.entry)


def _draw_queue(
    axes: Axes, left: float, wait: QueueWait, pair: Sequence[Sequence[Cell]], colours: dict[int, str]
) -> None:
    title = _TITLES[wait.kind].format(wait.process)
    axes.text(left + 1, -1.6, title, ha="center", va="center", fontweight="bold")
    for index, (name, cells) in enumerate(zip(("on arrival", "with it"), pair, strict=True)):
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
