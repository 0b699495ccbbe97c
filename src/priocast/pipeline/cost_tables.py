"""The cost paper's three tables with our values, each beside the paper's in brackets, as rows of text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from priocast.pipeline.cost_paper import PAPER, PaperRow, column_of
from priocast.pipeline.figures.cost import label_of
from priocast.pipeline.tables.cost import CostRow

_NONE = "-"
_STATISTICS = {"mean": "mean", "first": "1st quartile", "median": "median", "third": "3rd quartile"}


@dataclass(frozen=True)
class TextTable:
    """A table of text; the first columns say which group a row is about."""

    title: str
    headings: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table as Markdown, with its title in bold."""
        lines = [self.headings, ["---"] * len(self.headings), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def text_tables(rows: Sequence[CostRow]) -> list[TextTable]:
    """All tables."""
    return [_delivery_table(rows), _prioritisation_table(rows), *_memory_tables(rows), _load_table(rows)]


def summary_table(rows: Sequence[CostRow]) -> TextTable:
    """A line for each cell, narrow enough for a terminal; the load is that of others, in processors."""
    columns = _columns(rows)
    lines = []
    for (members, rate), of_group in _groups(rows).items():
        for column in columns:
            if (row := of_group.get(column)) is None:
                continue
            group = [str(members), str(rate), label_of(*column)]
            lines.append([*group, *_summary_cells(row), f"{row.collections:.1f}", f"{row.foreign_cores:.1f}"])
    headings = ["n", "msg/s", "", "mean", "paper", "median", "paper", "prior.", "paper", "gc", "load"]
    title = "delivery times in ms, prioritisation times in us"
    return TextTable(title, headings, lines)


def _summary_cells(row: CostRow) -> list[str]:
    paper, column = PAPER.get((row.members, row.rate)), column_of(row.order, row.variant)
    cells = []
    for field in ("mean", "median"):
        cells.append(_ms(getattr(row, f"{field}_ms")))
        cells.append(_their_delivery(field)(paper, column) if paper and column is not None else "")
    ours = "" if row.prioritisation_us is None else f"{row.prioritisation_us:.1f}"
    theirs = _their_prioritisation(paper, column) if paper and column is not None else ""
    return [*cells, ours, "" if theirs == _NONE else theirs]


def _delivery_table(rows: Sequence[CostRow]) -> TextTable:
    columns = _columns(rows)
    lines = []
    for (members, rate), of_group in _groups(rows).items():
        for field, name in _STATISTICS.items():
            cells = [
                _beside(of_group.get(column), _our_delivery(field), _their_delivery(field))
                for column in columns
            ]
            lines.append([str(members), str(rate), name, *cells])
    headings = ["members", "msg/s", "", *(label_of(*column) for column in columns)]
    return TextTable("Table 1: delivery times in ms, ours (the paper's)", headings, lines)


def _prioritisation_table(rows: Sequence[CostRow]) -> TextTable:
    def ours(row: CostRow) -> str:
        if row.prioritisation_us is None or row.prioritisation_median_us is None:
            return _NONE
        return f"{row.prioritisation_us:.1f}, median {row.prioritisation_median_us:.1f}"

    columns = [
        column
        for column in _columns(rows)
        if any(row.prioritisation_us is not None for row in rows if (row.order, row.variant) == column)
    ]
    title = "Table 2: prioritisation times in µs, our mean and median (the paper's mean)"
    return _by_group(title, rows, columns, ours, _their_prioritisation)


def _memory_tables(rows: Sequence[CostRow]) -> list[TextTable]:
    def theirs(paper: PaperRow, column: int) -> str:
        return f"{paper.collections[column]:.2f}"

    return [
        _by_group(
            "Table 3: garbage collections per member, ours (the paper's)",
            rows,
            _columns(rows),
            lambda row: f"{row.collections:.2f}",
            theirs,
        ),
        _by_group(
            "Resident memory per member in MiB: mean, and the most of any member",
            rows,
            _columns(rows),
            lambda row: f"{row.memory_mib:.1f}, {row.memory_max_mib:.1f}",
            _nothing,
        ),
    ]


def _load_table(rows: Sequence[CostRow]) -> TextTable:
    return _by_group(
        "Processor time per member and message in µs; and processors that other programs kept busy",
        rows,
        _columns(rows),
        lambda row: f"{row.cpu_us:.0f}; {row.foreign_cores:.2f}",
        _nothing,
    )


_Column = tuple[str, str]
_OfPaper = Callable[[PaperRow, int], str]


def _by_group(
    title: str,
    rows: Sequence[CostRow],
    columns: Sequence[_Column],
    ours: Callable[[CostRow], str],
    theirs: _OfPaper,
) -> TextTable:
    lines = [
        [str(members), str(rate), *(_beside(of_group.get(column), ours, theirs) for column in columns)]
        for (members, rate), of_group in _groups(rows).items()
    ]
    return TextTable(title, ["members", "msg/s", *(label_of(*column) for column in columns)], lines)


def _beside(row: CostRow | None, ours: Callable[[CostRow], str], theirs: _OfPaper) -> str:
    """Our value, and the paper's in brackets if it has one."""
    if row is None:
        return _NONE
    paper, column = PAPER.get((row.members, row.rate)), column_of(row.order, row.variant)
    of_paper = theirs(paper, column) if paper is not None and column is not None else ""
    return f"{ours(row)} ({of_paper})" if of_paper else ours(row)


def _nothing(_paper: PaperRow, _column: int) -> str:
    """The paper has no such values."""
    return ""


def _our_delivery(field: str) -> Callable[[CostRow], str]:
    return lambda row: _ms(getattr(row, f"{field}_ms"))


def _their_delivery(field: str) -> _OfPaper:
    return lambda paper, column: _ms(getattr(paper.delivery_ms[column], field))


def _their_prioritisation(paper: PaperRow, column: int) -> str:
    return f"{paper.prioritisation_us[column]:.1f}" if column < len(paper.prioritisation_us) else _NONE


def _columns(rows: Sequence[CostRow]) -> list[_Column]:
    """The orders and variants: those of the paper first, in its order."""
    found = {(row.order, row.variant) for row in rows}
    return sorted(found, key=lambda each: (column_of(*each) is None, column_of(*each) or 0, each))


def _groups(rows: Sequence[CostRow]) -> dict[tuple[int, int], dict[_Column, CostRow]]:
    groups: dict[tuple[int, int], dict[_Column, CostRow]] = {}
    for row in sorted(rows, key=lambda row: (row.members, row.rate)):
        groups.setdefault((row.members, row.rate), {})[row.order, row.variant] = row
    return groups


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.2f}" if milliseconds < 100 else f"{milliseconds:,.0f}"
