"""The report of the cost study: the paper's tables and figures with our values, as a page and as Markdown."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from priocast.pipeline.cost_tables import text_tables
from priocast.pipeline.figures.cost import draw_delivery_times, draw_memory
from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import element, figure, table
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.tables.cost import CellFiles, CostRow, MemoryLine, cost_rows, memory_lines

OfCell = TypeVar("OfCell", CostRow, MemoryLine)

#: The paper has one figure for each number of members.
_FIGURE_NUMBERS = {4: "Figure 4", 8: "Figure 5"}


def study_cost(
    files: CellFiles,
    deliveries: int,
    dropped: int,
    out: Path,
    master: str = LOCAL,
    progress: Progress = ignore_progress,
) -> list[CostRow]:
    """Measure the cells on Spark; write `report.html`, `tables.md` and the figures to `out`."""
    progress("starting Spark")
    with spark_session(master) as spark:
        progress("measuring")
        rows = cost_rows(spark, files, deliveries, dropped)
        lines = memory_lines(spark, files)
    progress("writing the report")
    drawings = _drawings(rows, lines)
    for name, (drawing, _) in drawings.items():
        write_figure(name, drawing, out)
    tables = text_tables(rows)
    (out / "tables.md").write_text("\n\n".join(each.markdown() for each in tables) + "\n", encoding="utf-8")
    contents = [
        *(figure(render_svg(drawing), caption) for drawing, caption in drawings.values()),
        *(
            part
            for each in tables
            for part in (element("h2", each.title), table(each.headings, each.rows, numbers_from=3))
        ),
    ]
    write_page(
        page("Priocast report: cost", element("h1", "The cost of priorities"), *contents), out / "report.html"
    )
    return rows


def figure_names(sizes: Sequence[int]) -> list[str]:
    """The names of the figures of these group sizes."""
    return [name for members in sizes for name in (_delivery_name(members), _memory_name(members))]


def _delivery_name(members: int) -> str:
    return f"cost-{members}-members"


def _memory_name(members: int) -> str:
    return f"cost-{members}-members-memory"


def _drawings(rows: Sequence[CostRow], lines: Sequence[MemoryLine]) -> dict[str, tuple[Figure, str]]:
    """All figures with their captions, by name."""
    times = {
        _delivery_name(members): (draw_delivery_times(of_size), _caption(members))
        for members, of_size in by_members(rows).items()
    }
    memory = {
        _memory_name(members): (draw_memory(of_size), _memory_caption(members))
        for members, of_size in by_members(lines).items()
    }
    return times | memory


def by_members(rows: Sequence[OfCell]) -> dict[int, list[OfCell]]:
    """The cells of each group size."""
    sizes = sorted({row.members for row in rows})
    return {size: [row for row in rows if row.members == size] for size in sizes}


def _caption(members: int) -> str:
    number = _FIGURE_NUMBERS.get(members)
    return f"{number} of the paper: dotted its values, solid ours." if number else "Not in the paper."


def _memory_caption(members: int) -> str:
    return f"Memory over time, {members} members: the mean of the members; dashed the prioritised versions."
