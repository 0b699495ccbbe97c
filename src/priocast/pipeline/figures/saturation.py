"""Saturation curves: what is delivered, and how long it takes, over the load that is offered.

And over the number of members, and over the size of a message: the most that a group delivers, and the times
at the lowest load. An order looks the same in all figures.
"""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from priocast.pipeline.figures.style import (
    INK,
    height_with_legend,
    looks_of_runs,
    new_figure,
    styled,
    use_log_counts,
    use_log_milliseconds,
)
from priocast.pipeline.tables.saturation import SaturationRow

#: Orders look the same in all figures; the pipeline does not know the protocols, so they are listed here.
ORDERS = (
    *("sequencer-ub", "sequencer-bb", "sequencer-uub", "moving-ub", "moving-bb", "moving-uub"),
    *("token-ring", "causal-history", "all-ack", "deterministic-merge", "agreement-skeen"),
    *("agreement-sets", "agreement-proposal", "reorder", "reorder-locks", "adaptive"),
)
_LEGEND_COLUMNS = 4
_HEIGHT = 3.6
Value = Callable[[SaturationRow], float]
Curves = Mapping[str, Sequence[tuple[float, float]]]
Panel = tuple[str, Value]
_TIMES: tuple[Panel, ...] = (
    ("delivery time, p50 (ms)", lambda row: row.p50_ms),
    ("delivery time, p99 (ms)", lambda row: row.p99_ms),
)
_RATE: Panel = ("delivered per second", lambda row: row.delivered_per_second)


@styled
def draw_saturation(rows: Sequence[SaturationRow]) -> Figure:
    """Groups that differ by order, variant and load: rate, p50 and p99; a row of panels for each variant."""
    variants = _variants(rows)
    figure, panels = _new_figure(rows)
    offered = sorted({row.load for row in rows})
    for place, axes in enumerate(panels):
        of_variant = [row for row in rows if row.variant == variants[place // 3]]
        title, value = (_RATE, *_TIMES)[place % 3]
        _draw(axes, _curves(of_variant, lambda row: row.load, value))
        if place % 3 == 0:
            axes.plot(offered, offered, color=INK, linestyle=":", linewidth=1, label="as offered")
        _finish(axes, title, of_variant[0].variant if len(variants) > 1 else "", counts=place % 3 == 0)
        use_log_counts(axes, "x")
    _label(panels[-3:], "offered per second")
    _add_legend(figure, panels)
    return figure


@styled
def draw_over_members(rows: Sequence[SaturationRow]) -> Figure:
    """Groups that differ also by their size: the highest rate, and times at the lowest load."""
    return _draw_over("members", "members", rows)


@styled
def draw_over_payload(rows: Sequence[SaturationRow]) -> Figure:
    """Groups that differ also by the size of messages: the highest rate, and times at the lowest load."""
    return _draw_over("payload_bytes", "bytes of a message", rows)


def _draw_over(field: str, label: str, rows: Sequence[SaturationRow]) -> Figure:
    variants = _variants(rows)
    figure, panels = _new_figure(rows)
    highest, lowest = highest_rates(rows, field), lowest_loads(rows, field)
    ticks = sorted({getattr(row, field) for row in rows})
    for place, axes in enumerate(panels):
        variant = variants[place // 3]
        chosen = highest if place % 3 == 0 else lowest
        title, value = (("highest rate delivered", _RATE[1]), *_TIMES)[place % 3]
        _draw(
            axes,
            _curves(
                [row for row in chosen if row.variant == variant], lambda row: getattr(row, field), value
            ),
        )
        _finish(axes, title, variant if len(variants) > 1 else "", counts=place % 3 == 0)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size(size)))
    _label(panels[-3:], label)
    _add_legend(figure, panels)
    return figure


def _size(value: float) -> str:
    return f"{value / 1_024:g} Ki" if value >= 1_024 and value % 1_024 == 0 else f"{value:,g}"


def highest_rates(rows: Sequence[SaturationRow], field: str) -> list[SaturationRow]:
    """Of each order, variant and size the cell that delivers most."""
    return [max(cells, key=_RATE[1]) for cells in _by_size(rows, field)]


def lowest_loads(rows: Sequence[SaturationRow], field: str) -> list[SaturationRow]:
    """Of each order, variant and size the cell with the lowest load that all sizes have, or its lowest."""
    loads: dict[int, set[int]] = {}
    for row in rows:
        loads.setdefault(getattr(row, field), set()).add(row.load)
    shared = set.intersection(*loads.values())
    return [
        min((row for row in cells if row.load in shared), key=_load, default=min(cells, key=_load))
        for cells in _by_size(rows, field)
    ]


def _by_size(rows: Sequence[SaturationRow], field: str) -> list[list[SaturationRow]]:
    found: dict[tuple[str, str, int], list[SaturationRow]] = {}
    for row in rows:
        found.setdefault((row.order, row.variant, getattr(row, field)), []).append(row)
    return [found[key] for key in sorted(found)]


def _load(row: SaturationRow) -> int:
    return row.load


def _variants(rows: Sequence[SaturationRow]) -> list[str]:
    return sorted({row.variant for row in rows}, reverse=True)


def _new_figure(rows: Sequence[SaturationRow]) -> tuple[Figure, Sequence[Axes]]:
    """Three panels for each variant; the rates, and the times, of both have the same axis."""
    variants = len(_variants(rows))
    height = height_with_legend(_HEIGHT, ["as offered", *{row.order for row in rows}])
    figure, panels = new_figure(height / variants**0.2, 3 * variants, share_y=False)
    for column in range(3):
        for axes in panels[column + 3 :: 3]:
            axes.sharey(panels[column])
    panels[2].sharey(panels[1])
    return figure, panels


def _curves(rows: Sequence[SaturationRow], at: Value, value: Value) -> Curves:
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if value(row) > 0:
            found.setdefault(row.order, []).append((at(row), value(row)))
    return {order: sorted(points) for order, points in found.items()}


def _draw(axes: Axes, curves: Curves) -> None:
    looks = looks_of_runs([*ORDERS, *sorted(set(curves) - set(ORDERS))])
    for order in (each for each in looks if each in curves):
        points = zip(*curves[order], strict=True)
        axes.plot(*points, **looks[order], markersize=3.8, linewidth=1.3, label=order)  # type: ignore[arg-type]


def _finish(axes: Axes, title: str, variant: str, *, counts: bool) -> None:
    axes.set_title(f"{variant}: {title}" if variant else title, fontsize=10)
    use = use_log_counts if counts else use_log_milliseconds
    use(axes, "y")


def _label(panels: Sequence[Axes], text: str) -> None:
    for axes in panels:
        axes.set_xlabel(text)


def _add_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    found: dict[str, Artist] = {}
    for axes in panels[::3]:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(found.values()), list(found), loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False
    )
