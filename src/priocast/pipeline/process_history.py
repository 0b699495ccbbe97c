"""The history of each process: the views that it received, and what it did in each.

A run has millions of messages and a new view now and then. The events of the group are therefore collected on
the driver and examined as plain values; messages never are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.core.view_reason import ViewReason
from priocast.pipeline.sources import StoredRun, process_id
from priocast.trace.recorded_run import process_of, view_of
from priocast.trace.schema import DELIVERED, STATE, STOPPED, VIEW, GroupEventRow, ViewName, ViewOrder


@dataclass(frozen=True)
class ReceivedView:
    """A process received a view."""

    view: ViewName
    step: int
    time_ns: int
    members: tuple[str, ...]
    orderer: str
    first_position: int
    reason: ViewReason
    order: ViewOrder


@dataclass(frozen=True)
class ReceivedState:
    """A process received the group's state as of a position."""

    step: int
    time_ns: int
    position: int


@dataclass(frozen=True)
class RecordedStop:
    """A process recorded that it is no longer in the group; `reason` is that of the view without it."""

    time_ns: int
    voluntary: bool
    reason: ViewReason


@dataclass(frozen=True)
class DeliverySpan:
    """The first and the last delivery of a process in a view: by its steps, by position, by its clock."""

    count: int
    step_first: int
    step_last: int
    position_first: int
    position_last: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True)
class RecordedProcess:
    """One process (one incarnation of a member): its views in the order in which it received them.

    `delivered` has the views in which it delivered anything. `worked_until` has, for each view, the last step
    at which its protocol sent, received or was given messages; `ordered_until`, the position after the last
    one in the packets that it sent or received.
    """

    id: str
    views: tuple[ReceivedView, ...]
    delivered: Mapping[ViewName, DeliverySpan]
    worked_until: Mapping[ViewName, int]
    ordered_until: Mapping[ViewName, int]
    states: tuple[ReceivedState, ...]
    stop: RecordedStop | None
    first_ns: int
    last_ns: int

    @property
    def owes_from(self) -> int:
        """The first position that is not covered by a state that it received."""
        return max((state.position for state in self.states), default=0)

    def transitions(self) -> Iterator[tuple[ReceivedView, ReceivedView]]:
        """Each view that it continued from, with the next one."""
        return zip(self.views, self.views[1:], strict=False)


@dataclass(frozen=True)
class TraceHistory:
    """One run: its processes, whose messages were delivered in which view, and to whom any were addressed.

    `recipient_lists` are the distinct values of `to`, of messages that were not for all members.
    `broadcasters` are the senders of all recorded messages, with their incarnations.
    """

    processes: Mapping[str, RecordedProcess]
    senders: frozenset[tuple[ViewName, str]]
    recipient_lists: frozenset[str]
    broadcasters: frozenset[tuple[str, int]] = frozenset()


def read_histories(batches: DataFrame, runs: Sequence[StoredRun]) -> dict[str, TraceHistory]:
    """The history of each run."""
    rows: dict[str, dict[str, list[Row]]] = {run.name: defaultdict(list) for run in runs}
    for row in summarise_batches(batches).collect():
        rows[row["run"]][row["process"]].append(row)
    selective = any(row["selective"] for of_run in rows.values() for of in of_run.values() for row in of)
    recipient_lists: dict[str, set[str]] = defaultdict(set)
    if selective:
        for row in find_recipient_lists(batches).collect():
            recipient_lists[row["run"]].add(row["to"])
    return {run.name: _history(run, rows[run.name], recipient_lists[run.name]) for run in runs}


def group_histories(runs: Sequence[StoredRun]) -> dict[str, TraceHistory]:
    """The views and the end of each process of each run, without what it did with messages."""
    return {run.name: _history(run, {}, ()) for run in runs}


def summarise_batches(batches: DataFrame) -> DataFrame:
    """The rows of batches by process, view, event and sender."""
    process, sender = ("member", "incarnation"), ("sender", "sender_incarnation")
    of = batches.groupBy("run", *process, "view", "coordinator", "event", *sender).agg(
        sf.sum("count").alias("messages"),
        sf.min("step").alias("step_first"),
        sf.max("step").alias("step_last"),
        sf.min("position").alias("position_first"),
        sf.max(sf.when(sf.col("position") >= 0, sf.col("position") + sf.col("count") - 1)).alias(
            "position_last"
        ),
        sf.min("time_ns").alias("first_ns"),
        sf.max("time_ns").alias("last_ns"),
        sf.max(sf.col("to") != "").alias("selective"),
    )
    return of.withColumn("process", process_id(*process))


def find_recipient_lists(batches: DataFrame) -> DataFrame:
    """The distinct lists of recipients in each run."""
    return batches.where(sf.col("to") != "").select("run", "to").distinct()


def _history(run: StoredRun, rows: Mapping[str, list[Row]], recipient_lists: Iterable[str]) -> TraceHistory:
    group_events: dict[str, list[GroupEventRow]] = defaultdict(list)
    for event in run.group_events:
        group_events[process_of(event)].append(event)
    recorded = [row for of in rows.values() for row in of]
    broadcasters = {(row["sender"], row["sender_incarnation"]) for row in recorded}
    senders = {
        (_view(row), f"{row['sender']}#{row['sender_incarnation']}")
        for row in recorded
        if row["event"] == DELIVERED
    }
    processes = {
        process: _process(process, group_events.get(process, []), rows.get(process, []))
        for process in sorted({*rows, *group_events})
    }
    return TraceHistory(processes, frozenset(senders), frozenset(recipient_lists), frozenset(broadcasters))


def _process(process: str, group_events: list[GroupEventRow], rows: list[Row]) -> RecordedProcess:
    delivered: dict[ViewName, list[Row]] = defaultdict(list)
    worked_until: dict[ViewName, int] = {}
    ordered_until: dict[ViewName, int] = {}
    for row in rows:
        view = _view(row)
        if row["event"] == DELIVERED:
            delivered[view].append(row)
        else:
            worked_until[view] = max(worked_until.get(view, 0), row["step_last"])
            if row["position_last"] is not None:
                ordered_until[view] = max(ordered_until.get(view, 0), row["position_last"] + 1)
    times = [event.time_ns for event in group_events]
    stops = [event for event in group_events if event.event == STOPPED]
    return RecordedProcess(
        id=process,
        views=tuple(_view_event(event) for event in group_events if event.event == VIEW),
        delivered={view: _span(of) for view, of in delivered.items()},
        worked_until=worked_until,
        ordered_until=ordered_until,
        states=tuple(
            ReceivedState(event.step, event.time_ns, event.position)
            for event in group_events
            if event.event == STATE
        ),
        stop=RecordedStop(stops[0].time_ns, stops[0].voluntary, stops[0].reason) if stops else None,
        first_ns=min([*times, *(row["first_ns"] for row in rows)]),
        last_ns=max([*times, *(row["last_ns"] for row in rows)]),
    )


def _view_event(row: GroupEventRow) -> ReceivedView:
    return ReceivedView(
        view=view_of(row),
        step=row.step,
        time_ns=row.time_ns,
        members=row.members,
        orderer=row.orderer,
        first_position=row.position,
        reason=row.reason,
        order=row.view_order,
    )


def _span(rows: list[Row]) -> DeliverySpan:
    return DeliverySpan(
        count=sum(row["messages"] for row in rows),
        step_first=min(row["step_first"] for row in rows),
        step_last=max(row["step_last"] for row in rows),
        position_first=min(row["position_first"] for row in rows),
        position_last=max(row["position_last"] for row in rows),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
    )


def _view(row: Row) -> ViewName:
    return ViewName(row["view"], row["coordinator"])
