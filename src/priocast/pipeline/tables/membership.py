"""The members of each view over time: the views of each run, and the views of each process."""

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import functions as sf

from priocast.core.view_reason import ViewReason
from priocast.pipeline.membership import GroupView, remaining_processes
from priocast.pipeline.process_history import RecordedProcess, RecordedStop, TraceHistory
from priocast.pipeline.sources import StoredRun
from priocast.pipeline.tables.run_time import start_times
from priocast.pipeline.trace_tables import TraceTables
from priocast.trace.schema import ViewName, ViewOrder

_S = 1_000_000_000
_MS = 1_000_000


@dataclass(frozen=True)
class Origin:
    """Members of a view that came from the same previous view; from none, if they joined."""

    view: str
    processes: tuple[str, ...]


@dataclass(frozen=True)
class ViewRecord:
    """One view: when its members received it, where they came from, how many messages were delivered in it.

    `gap_ms` is the longest time that a member that came from another view was without a message: from its
    last delivery there to its first one here, by its own clock.
    """

    run: str
    view: str
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder
    reason: ViewReason
    first_received_s: float
    last_received_s: float
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
    """One process over time: its views, when it received a state, and how it ended.

    `ending` is the reason for which it stopped, empty if it ended without a record, None if it remained.
    """

    run: str
    process: str
    attendances: tuple[Attendance, ...]
    restored_s: tuple[float, ...]
    end_s: float
    ending: str | None


def view_records(trace: TraceTables) -> list[ViewRecord]:
    """Every view of every run, by number."""
    counts = _messages_in_views(trace)
    records = []
    for run in trace.runs:
        history = trace.histories[run.name]
        started = start_times(run, history)
        for name, view in trace.views_of[run.name].items():
            records.append(_record(run, view, history, started, counts.get((run.name, name), 0)))
    return records


def lanes(trace: TraceTables) -> list[Lane]:
    """The processes of every run, by name."""
    found = []
    for run in trace.runs:
        history = trace.histories[run.name]
        started = start_times(run, history)
        processes = history.processes.values()
        end_ns = max(process.last_ns - started[process.id] for process in processes)
        remained = remaining_processes(trace.views_of[run.name])
        found += [
            _lane(run, process, started[process.id], end_ns if process.id in remained else None)
            for process in processes
        ]
    return found


def _messages_in_views(trace: TraceTables) -> dict[tuple[str, ViewName], int]:
    counted = (
        trace.messages.where("deliveries > 0")
        .groupBy("run", "view_hash")
        .agg(sf.count(sf.lit(1)).alias("messages"))
        .join(trace.views.select("run", "view_hash", "view", "coordinator"), ["run", "view_hash"])
    )
    return {
        (row["run"], ViewName(row["view"], row["coordinator"])): row["messages"] for row in counted.collect()
    }


def _record(
    run: StoredRun, view: GroupView, history: TraceHistory, started: dict[str, int], messages: int
) -> ViewRecord:
    received_s, gaps_ms = [], []
    came_from: dict[str, list[str]] = defaultdict(list)
    for process in history.processes.values():
        before = ""
        for event in process.views:
            if event.view == view.name:
                received_s.append((event.time_ns - started[process.id]) / _S)
                came_from[before].append(process.id)
            before = str(event.view)
        gaps_ms += _gaps_ms(process, view.name)
    return ViewRecord(
        run=run.name,
        view=str(view.name),
        members=view.members,
        orderer=view.orderer,
        order=view.order,
        reason=view.reason,
        first_received_s=min(received_s),
        last_received_s=max(received_s),
        origins=tuple(Origin(before, tuple(of)) for before, of in sorted(came_from.items())),
        messages=messages,
        gap_ms=max(gaps_ms, default=None),
    )


def _gaps_ms(process: RecordedProcess, name: ViewName) -> list[float]:
    """How long a process that came to a view from another was without a message."""
    delivered = process.delivered
    return [
        (delivered[name].first_ns - delivered[before.view].last_ns) / _MS
        for before, event in process.transitions()
        if event.view == name and name in delivered and before.view in delivered
    ]


def _ending(stop: RecordedStop) -> str:
    return str(stop.reason) if stop.voluntary else f"evicted: {stop.reason}"


def _lane(run: StoredRun, process: RecordedProcess, started_ns: int, remained_until: int | None) -> Lane:
    last_ns = process.stop.time_ns if process.stop else process.last_ns
    end_ns = last_ns - started_ns if remained_until is None else remained_until
    ending = _ending(process.stop) if process.stop else ""
    starts = [event.time_ns - started_ns for event in process.views]
    return Lane(
        run=run.name,
        process=process.id,
        attendances=tuple(
            Attendance(str(event.view), start / _S, end / _S)
            for event, start, end in zip(process.views, starts, [*starts[1:], end_ns], strict=True)
        ),
        restored_s=tuple((state.time_ns - started_ns) / _S for state in process.states),
        end_s=end_ns / _S,
        ending=ending if remained_until is None else None,
    )
