"""Who was in which view, and when: the views of each run, and the life of each process in them."""

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import functions as sf

from priocast.pipeline.chronicle import Chronicle, Life, ViewName
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.membership import GroupView, most, stayers
from priocast.pipeline.sources import Run
from priocast.pipeline.tables.run_time import beginnings
from priocast.trace.schema import ViewOrder

_S = 1_000_000_000
_MS = 1_000_000


@dataclass(frozen=True)
class Origin:
    """Members of a view that came from the same earlier one; from none, if they joined."""

    view: str
    processes: tuple[str, ...]


@dataclass(frozen=True)
class ViewRecord:
    """One view: when its members were told of it, where they came from, what was delivered in it.

    `gap_ms` is the longest time that one who came from another view was without a message: from its last
    delivery there to its first one here, by its own clock.
    """

    run: str
    view: str
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder
    reason: str
    first_told_s: float
    last_told_s: float
    origins: tuple[Origin, ...]
    messages: int
    gap_ms: float | None


@dataclass(frozen=True)
class Attendance:
    """The time that a process spent in a view."""

    view: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Lane:
    """The life of one process: its views, when it took over a state, and how it ended.

    `ending` is the reason that it gave, empty if it ended without a word, None if it stayed.
    """

    run: str
    process: str
    attendances: tuple[Attendance, ...]
    restored_s: tuple[float, ...]
    end_s: float
    ending: str | None


def view_records(evidence: Evidence) -> list[ViewRecord]:
    """Every view of every run, by number."""
    counts = _messages_in_views(evidence)
    records = []
    for run in evidence.runs:
        chronicle = evidence.chronicles[run.name]
        began = beginnings(run, chronicle)
        for name, view in evidence.views_of[run.name].items():
            records.append(_record(run, view, chronicle, began, counts.get((run.name, name), 0)))
    return records


def lanes(evidence: Evidence) -> list[Lane]:
    """The processes of every run, by name."""
    found = []
    for run in evidence.runs:
        lives = evidence.chronicles[run.name].lives
        began = beginnings(run, evidence.chronicles[run.name])
        end_ns = max(life.last_ns - began[process] for process, life in lives.items())
        stayed = stayers(evidence.views_of[run.name])
        for process, life in lives.items():
            found.append(_lane(run, life, began[process], end_ns if process in stayed else None))
    return found


def _messages_in_views(evidence: Evidence) -> dict[tuple[str, ViewName], int]:
    counted = (
        evidence.ledger.where("deliveries > 0")
        .groupBy("run", "view_print")
        .agg(sf.count(sf.lit(1)).alias("messages"))
        .join(evidence.views.select("run", "view_print", "view", "coordinator"), ["run", "view_print"])
    )
    return {
        (row["run"], ViewName(row["view"], row["coordinator"])): row["messages"] for row in counted.collect()
    }


def _record(
    run: Run, view: GroupView, chronicle: Chronicle, began: dict[str, int], messages: int
) -> ViewRecord:
    told_s, reasons, gaps_ms = [], [], []
    came: dict[str, list[str]] = defaultdict(list)
    for process, life in chronicle.lives.items():
        before = ""
        for telling in life.told:
            if telling.view == view.name:
                told_s.append((telling.time_ns - began[process]) / _S)
                reasons.append(telling.reason)
                came[before].append(process)
            before = str(telling.view)
        gaps_ms += _gaps_ms(life, view.name)
    return ViewRecord(
        run=run.name,
        view=str(view.name),
        members=view.members,
        orderer=view.orderer,
        order=view.order,
        reason=most(reasons),
        first_told_s=min(told_s),
        last_told_s=max(told_s),
        origins=tuple(Origin(before, tuple(of)) for before, of in sorted(came.items())),
        messages=messages,
        gap_ms=max(gaps_ms, default=None),
    )


def _gaps_ms(life: Life, name: ViewName) -> list[float]:
    """How long a process that came to a view from another was without a message."""
    return [
        (life.delivered[name].first_ns - life.delivered[before.view].last_ns) / _MS
        for before, telling in life.onward()
        if telling.view == name and name in life.delivered and before.view in life.delivered
    ]


def _lane(run: Run, life: Life, began_ns: int, stayed_until: int | None) -> Lane:
    last_ns = life.stopped.time_ns if life.stopped else life.last_ns
    end_ns = last_ns - began_ns if stayed_until is None else stayed_until
    ending = life.stopped.reason if life.stopped else ""
    starts = [telling.time_ns - began_ns for telling in life.told]
    return Lane(
        run=run.name,
        process=life.process,
        attendances=tuple(
            Attendance(str(telling.view), start / _S, end / _S)
            for telling, start, end in zip(life.told, starts, [*starts[1:], end_ns], strict=True)
        ),
        restored_s=tuple((restored.time_ns - began_ns) / _S for restored in life.restored),
        end_s=end_ns / _S,
        ending=ending if stayed_until is None else None,
    )
