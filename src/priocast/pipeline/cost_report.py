"""The report of the cost study: the paper's tables and figures with our values, as a page and as Markdown."""

from collections.abc import Sequence
from pathlib import Path

from priocast.pipeline.cost_tables import text_tables
from priocast.pipeline.figures.cost import draw_delivery_times
from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import element, figure, table
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.tables.cost import CellFiles, CostRow, cost_rows

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
    progress("writing the report")
    drawings = {members: draw_delivery_times(of_size) for members, of_size in by_members(rows).items()}
    for members, drawing in drawings.items():
        write_figure(figure_name(members), drawing, out)
    tables = text_tables(rows)
    (out / "tables.md").write_text("\n\n".join(each.markdown() for each in tables) + "\n", encoding="utf-8")
    contents = [
        *(figure(render_svg(drawing), _caption(members)) for members, drawing in drawings.items()),
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


def figure_name(members: int) -> str:
    """The name of the figure of a group size."""
    return f"cost-{members}-members"


def by_members(rows: Sequence[CostRow]) -> dict[int, list[CostRow]]:
    """The cells of each group size."""
    sizes = sorted({row.members for row in rows})
    return {size: [row for row in rows if row.members == size] for size in sizes}


def _caption(members: int) -> str:
    number = _FIGURE_NUMBERS.get(members)
    return f"{number} of the paper: dotted its values, solid ours." if number else "Not in the paper."
