"""The report of the saturation study: curves and tables, as a page and as Markdown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from priocast.pipeline.figures.figure_files import write_figure
from priocast.pipeline.figures.saturation import draw_over_members, draw_over_payload, draw_saturation
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import Html, element, figure, folded, table
from priocast.pipeline.progress import Progress, ignore_progress
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.session import LOCAL, spark_session
from priocast.pipeline.tables.saturation import SaturationRow, saturation_rows

HEADINGS = ("order", "variant", "offered/s", "delivered/s", "p50 ms", "p99 ms", "urgent p99 ms")
_MORE_HEADINGS = ("messages", "seed", "foreign cores")
#: Narrow enough for a terminal of 80 columns.
SHORT_HEADINGS = ("order", "var.", "offered", "delivered", "p50 ms", "p99 ms", "urgent", "load")
SHORT_NOTE = "urgent: p99 of urgent messages in ms; load: processors that other programs kept busy."
_SHORT_VARIANTS = {"prioritised": "prio"}
_EVERYBODY = "all"
_OFFERED = "Dotted: everything that is offered is delivered."
_RATES = "A rate is that of the slowest member, after a warm-up of a quarter of the time."
_DELIVERY_TIMES = "A delivery time begins when the message was due, which may be before it was broadcast."
_SIZES = (
    "The highest rate of all loads that were offered, and the times at the lowest load that all sizes have. "
    "A group that delivers the highest load may deliver more."
)


class GroupKey(NamedTuple):
    """The cells with the same of these are in one figure and one table."""

    place: str
    shape: str
    members: int
    payload_bytes: int
    who: str


class _Overview(NamedTuple):
    """A figure over several groups: its name, its title, and how it is drawn."""

    name: str
    title: str
    draw: Callable[[Sequence[SaturationRow]], Figure]


def study_saturation(
    files: Sequence[Path],
    out: Path,
    master: str = LOCAL,
    progress: Progress = ignore_progress,
    assumptions: Sequence[str] = (),
) -> list[SaturationRow]:
    """Measure the cells on Spark; write `report.html`, `tables.md` and the figures to `out`.

    The `assumptions` of the simulator are sentences for the page.
    """
    progress("starting Spark")
    with spark_session(master) as spark:
        progress("measuring")
        rows = saturation_rows(spark, files)
    progress("writing the report")
    texts = [_markdown(title_of(key), of_group) for key, of_group in by_group(rows).items()]
    notes = notes_of(rows, assumptions)
    lines = "\n".join(f"- {note}" for note in notes)
    (out / "tables.md").write_text("\n\n".join([lines, *texts]) + "\n", encoding="utf-8")
    title = element("h1", "Saturation: rates and delivery times over the offered load")
    contents = [
        title,
        element("ul", *(element("li", note) for note in notes)),
        *_overview_parts(rows, out),
        *_group_parts(rows, out),
    ]
    write_page(page("Priocast report: saturation", *contents), out / "report.html")
    return rows


def notes_of(rows: Sequence[SaturationRow], assumptions: Sequence[str]) -> list[str]:
    """How it was measured: how much, with which seeds, on which machine, with which model."""
    messages, seeds = [row.messages for row in rows], sorted({row.seed for row in rows})
    cells = len({row.cell for row in rows})
    size, seed = f"{min(messages):,} to {max(messages):,}", ", ".join(map(str, seeds))
    notes = [f"{cells:,} rows, of groups with {size} messages; seed {seed}.", _RATES, _DELIVERY_TIMES]
    if any(row.place != "processes" for row in rows):
        notes += assumptions
    of_processes = [row for row in rows if row.foreign_cores is not None]
    for machine in sorted({row.machine for row in of_processes}):
        loads = [row.foreign_cores or 0.0 for row in of_processes if row.machine == machine]
        mean = sum(loads) / len(loads)
        notes.append(
            f"Processes ran on {machine}. Other programs kept {mean:.2f} processors busy on average, and "
            f"{max(loads):.2f} at most."
        )
    return notes


def by_group(rows: Sequence[SaturationRow]) -> dict[GroupKey, list[SaturationRow]]:
    """The cells that differ by order, variant and load alone: each of these has a figure and a table."""
    found: dict[GroupKey, list[SaturationRow]] = {}
    for row in rows:
        key = GroupKey(row.place, row.shape, row.members, row.payload_bytes, row.who)
        found.setdefault(key, []).append(row)
    return found


def overviews(rows: Sequence[SaturationRow]) -> dict[_Overview, list[SaturationRow]]:
    """The figures over group sizes and over message sizes, where there are several."""
    groups = by_group(rows)
    found: dict[_Overview, list[SaturationRow]] = {}
    for key, of_group in groups.items():
        for overview, size in _overviews_of(key):
            if len({getattr(each, size) for each in groups if (overview, size) in _overviews_of(each)}) > 1:
                found.setdefault(overview, []).extend(of_group)
    return found


def _overviews_of(key: GroupKey) -> list[tuple[_Overview, str]]:
    """The figures that a group is in, and what they have on their axis."""
    where, who = f"{key.shape}, {_where(key)}", _who(key)
    name = f"saturation-{key.place}-{key.shape}"
    suffix = "" if key.who == _EVERYBODY else f"-{key.who}"
    over_members = _Overview(
        f"{name}-{key.payload_bytes}-bytes-over-members{suffix}",
        f"Over the number of members: {key.payload_bytes:,} bytes, {where}{who}",
        draw_over_members,
    )
    over_payload = _Overview(
        f"{name}-{key.members}-members-over-bytes{suffix}",
        f"Over the size of a message: {key.members} members, {where}{who}",
        draw_over_payload,
    )
    return [(over_members, "members"), (over_payload, "payload_bytes")]


def figure_names(keys: Sequence[GroupKey]) -> list[str]:
    """The names of all figures that a report of these groups may have."""
    names = [figure_name(key) for key in keys]
    return names + sorted({overview.name for key in keys for overview, _ in _overviews_of(key)})


def figure_name(key: GroupKey) -> str:
    """The name of a figure's files."""
    return "saturation-" + "-".join(str(part) for part in key if part != _EVERYBODY)


def title_of(key: GroupKey) -> str:
    """What distinguishes a figure, in words."""
    return f"{key.members} members, {key.payload_bytes:,} bytes, {key.shape}, {_where(key)}{_who(key)}"


def _where(key: GroupKey) -> str:
    return "on processes of this machine" if key.place == "processes" else f"simulated {key.place.upper()}"


def _who(key: GroupKey) -> str:
    words = {"slow": ": the slow member", "others": ": the other members"}
    return words.get(key.who, "")


def _overview_parts(rows: Sequence[SaturationRow], out: Path) -> list[Html]:
    parts = []
    for overview, of_figure in overviews(rows).items():
        drawing = overview.draw(of_figure)
        write_figure(overview.name, drawing, out)
        parts += [element("h2", overview.title), figure(render_svg(drawing), _SIZES)]
    return parts


def _group_parts(rows: Sequence[SaturationRow], out: Path) -> list[Html]:
    parts = []
    for key, of_group in by_group(rows).items():
        drawing = draw_saturation(of_group)
        write_figure(figure_name(key), drawing, out)
        headings = [*HEADINGS, *_MORE_HEADINGS]
        parts += [
            element("h2", title_of(key)),
            figure(render_svg(drawing), _OFFERED),
            folded("Table", table(headings, map(cells_of, of_group), numbers_from=2)),
        ]
    return parts


def cells_of(row: SaturationRow) -> list[str]:
    """A row of the tables."""
    times = (row.p50_ms, row.p99_ms, row.urgent_p99_ms)
    return [
        row.order,
        row.variant,
        f"{row.load:,}",
        f"{row.delivered_per_second:,.0f}",
        *("-" if each is None else f"{each:,.2f}" for each in times),
        f"{row.messages:,}",
        str(row.seed),
        "-" if row.foreign_cores is None else f"{row.foreign_cores:.2f}",
    ]


def short_cells_of(row: SaturationRow) -> list[str]:
    """A row of the tables for a terminal."""
    times = (row.p50_ms, row.p99_ms, row.urgent_p99_ms)
    return [
        row.order,
        _SHORT_VARIANTS.get(row.variant, row.variant),
        f"{row.load:,}",
        f"{row.delivered_per_second:,.0f}",
        *("-" if each is None else f"{each:,.2f}" if each < 100 else f"{each:,.0f}" for each in times),
        "-" if row.foreign_cores is None else f"{row.foreign_cores:.1f}",
    ]


def _markdown(title: str, rows: Sequence[SaturationRow]) -> str:
    headings = [*HEADINGS, *_MORE_HEADINGS]
    lines = [headings, ["---"] * len(headings), *map(cells_of, rows)]
    return f"**{title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)
