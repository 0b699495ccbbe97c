"""The report of the saturation study: curves and tables, as a page and as Markdown."""

from collections.abc import Sequence
from pathlib import Path

from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.saturation import draw_saturation
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import element, figure, table
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.tables.saturation import SaturationRow, saturation_rows

HEADINGS = ("order", "variant", "offered/s", "delivered/s", "p50 ms", "p99 ms", "urgent p99 ms")
GroupKey = tuple[str, str, int, int]


def study_saturation(
    files: Sequence[Path], out: Path, master: str = LOCAL, progress: Progress = ignore_progress
) -> list[SaturationRow]:
    """Measure the cells on Spark; write `report.html`, `tables.md` and the figures to `out`."""
    progress("starting Spark")
    with spark_session(master) as spark:
        progress("measuring")
        rows = saturation_rows(spark, files)
    progress("writing the report")
    contents, texts = [], []
    for key, of_group in by_group(rows).items():
        drawing = draw_saturation(of_group)
        write_figure(figure_name(key), drawing, out)
        contents += [
            element("h2", title_of(key)),
            figure(render_svg(drawing), "Dotted: everything that is offered is delivered."),
            table(list(HEADINGS), map(cells_of, of_group), numbers_from=2),
        ]
        texts.append(_markdown(title_of(key), of_group))
    (out / "tables.md").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    title = element("h1", "Saturation: rates and delivery times over the offered load")
    write_page(page("Priocast report: saturation", title, *contents), out / "report.html")
    return rows


def by_group(rows: Sequence[SaturationRow]) -> dict[GroupKey, list[SaturationRow]]:
    """The cells that differ by order, variant and load alone: each of these has a figure and a table."""
    found: dict[GroupKey, list[SaturationRow]] = {}
    for row in rows:
        found.setdefault((row.place, row.shape, row.members, row.payload_bytes), []).append(row)
    return found


def figure_name(key: GroupKey) -> str:
    """The name of a figure's files."""
    return "saturation-" + "-".join(map(str, key))


def title_of(key: GroupKey) -> str:
    """What distinguishes a figure, in words."""
    place, shape, members, payload_bytes = key
    where = "on processes of this machine" if place == "processes" else f"simulated {place.upper()}"
    return f"{members} members, {payload_bytes:,} bytes, {shape}, {where}"


def cells_of(row: SaturationRow) -> list[str]:
    """A row of the tables."""
    times = (row.p50_ms, row.p99_ms, row.urgent_p99_ms)
    return [
        row.order,
        row.variant,
        f"{row.load:,}",
        f"{row.delivered_per_second:,.0f}",
        *("-" if each is None else f"{each:,.2f}" for each in times),
    ]


def _markdown(title: str, rows: Sequence[SaturationRow]) -> str:
    lines = [HEADINGS, ["---"] * len(HEADINGS), *map(cells_of, rows)]
    return f"**{title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)
