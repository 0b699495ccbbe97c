"""View synchrony: processes agree on the views, and deliver each message in the view that it belongs to.

- A process is a member of every view that it receives, and the numbers of its views increase.
- All processes that receive a view receive the same: its members (the coordinator is the first), its first
  position, its orderer, how it is ordered, and the reason for it.
- A process delivers a message that was ordered in a view after it received this view and before it receives
  the next, at a position between the first ones of the two.
- The sender of a message is a member of the view in which it is delivered.

In a primary group, the views also form one chain:

- no two views have the same number, and a process that continues from a view continues to the next one;
- a quorum of a view (more than half of its members, or half including its first) took part in the next one:
  they are in it, or its reason says that they left or were evicted.

Whether members that continue together delivered the same messages is a matter of Agreement.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.core.guarantees import VIEW_SYNCHRONY
from priocast.core.violation import Violation
from priocast.pipeline.membership import GroupView, name_of
from priocast.pipeline.process_history import ReceivedView, RecordedProcess, TraceHistory
from priocast.pipeline.small_tables import small_table
from priocast.pipeline.sources import StoredRun, message_id, process_id, view_id
from priocast.pipeline.trace_tables import TraceTables, Views
from priocast.pipeline.violations import union, violations
from priocast.trace.schema import ViewName

_NEVER = 2**63 - 1
_INTERVALS_SCHEMA = """run string, process string, view long, coordinator string, view_step long,
    next_step long, first_position long, next_position long"""
_OUTSIDERS_SCHEMA = "run string, view long, coordinator string, outsider string"

_Interval = tuple[str, str, int, str, int, int, int, int]


def find(trace: TraceTables) -> DataFrame:
    """Every inconsistent view, and every delivery that is not in its view."""
    records: list[Violation] = []
    intervals: list[_Interval] = []
    outsiders = []
    for run in trace.runs:
        history, views = trace.histories[run.name], trace.views_of[run.name]
        records += check_views(run, history, views)
        intervals += suspicious_intervals(run.name, history, views)
        outsiders += [
            (run.name, *view, sender)
            for view, sender in history.senders
            if view in views and sender not in views[view].members
        ]
    tables = []
    if intervals:
        tables.append(outside_view(trace, intervals))
    if outsiders:
        tables.append(from_outsiders(trace, outsiders))
    return union(trace, tables, records)


def check_views(run: StoredRun, history: TraceHistory, views: Views) -> Iterator[Violation]:
    """The violations in the views themselves, and in their sequence."""
    for process in history.processes.values():
        for event in process.views:
            yield from _unlike_others(run.name, process, event, views[event.view])
        for event, after in process.transitions():
            if after.view.number <= event.view.number:
                summary = f"{process.id} received it after view {event.view}"
                yield _violation(run.name, after.view, after.first_position, [process.id], summary)
    if run.primary:
        yield from _same_number(run.name, history, views)
        yield from _skipped(run.name, history, views)
        yield from _without_quorum(run.name, views)


def _unlike_others(
    run: str, process: RecordedProcess, event: ReceivedView, view: GroupView
) -> Iterator[Violation]:
    if process.id not in event.members:
        summary = f"{process.id} received a view that it is not a member of"
        yield _violation(run, view.name, event.first_position, [process.id], summary)
    if event.members[0] != view.name.coordinator:
        summary = f"{process.id} received {event.members[0]} as its first member"
        yield _violation(run, view.name, event.first_position, [process.id], summary)
    compared: tuple[tuple[str, object, object], ...] = (
        ("members", event.members, view.members),
        ("first position", event.first_position, view.first_position),
        ("orderer", event.orderer, view.orderer),
        ("order", event.order, view.order),
        ("reason", event.reason, view.reason),
    )
    for what, received, by_most in compared:
        if received != by_most:
            summary = (
                f"{process.id} received the {what} {_written(received)}, but most received "
                f"{_written(by_most)}"
            )
            yield _violation(run, view.name, event.first_position, [process.id], summary)


def _written(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value) or "none"


def _same_number(run: str, history: TraceHistory, views: Views) -> Iterator[Violation]:
    first: dict[int, ViewName] = {}
    for name, view in views.items():
        other = first.setdefault(name.number, name)
        if other != name:
            received = [
                process.id
                for process in history.processes.values()
                if any(event.view == name for event in process.views)
            ]
            yield _violation(run, name, view.first_position, received, f"there is also a view {other}")


def _skipped(run: str, history: TraceHistory, views: Views) -> Iterator[Violation]:
    for process in history.processes.values():
        for event, after in process.transitions():
            between = [str(name) for name in views if event.view.number < name.number < after.view.number]
            if between:
                summary = f"{process.id} continued to it from view {event.view}, without {', '.join(between)}"
                yield _violation(run, after.view, after.first_position, [process.id], summary)


def _without_quorum(run: str, views: Views) -> Iterator[Violation]:
    numbered: dict[int, list[GroupView]] = defaultdict(list)
    for view in views.values():
        numbered[view.name.number].append(view)
    before: list[GroupView] = []
    for number in sorted(numbered):
        for view in numbered[number] if before else ():
            previous = max(before, key=lambda other: len(set(other.members) & set(view.members)))
            if not _is_quorum(previous, view):
                continued = [process for process in previous.members if process in view.members]
                summary = (
                    f"only {', '.join(continued) or 'nobody'} of the {len(previous.members)} members of view "
                    f"{previous.name} continued to it, which is no quorum"
                )
                yield _violation(run, view.name, view.first_position, continued, summary)
        before = numbered[number]


def _is_quorum(previous: GroupView, view: GroupView) -> bool:
    """Whether a quorum of the previous view is in the next, or left or was evicted in between."""
    evicted = [eviction.member for eviction in view.reason.evicted]
    took_part = [
        process
        for process in previous.members
        if process in view.members or name_of(process) in (*view.reason.left, *evicted)
    ]
    half = len(previous.members) / 2
    return len(took_part) > half or (len(took_part) == half and previous.members[0] in took_part)


def suspicious_intervals(run: str, history: TraceHistory, views: Views) -> Iterator[_Interval]:
    """When a process was in a view, for each view in which it delivered outside of that interval."""
    for process in history.processes.values():
        indexes: dict[ViewName, int] = {}
        for index, event in enumerate(process.views):
            indexes.setdefault(event.view, index)
        for name, span in process.delivered.items():
            if name not in views or process.id not in views[name].members:
                continue  # an outsider: Integrity
            step, next_step, position, next_position = _interval(process, indexes.get(name))
            in_time = step < span.step_first and span.step_last < next_step
            in_range = position <= span.position_first and span.position_last < next_position
            if not (in_time and in_range):
                yield run, process.id, *name, step, next_step, position, next_position


def _interval(process: RecordedProcess, index: int | None) -> tuple[int, int, int, int]:
    if index is None:
        return _NEVER, _NEVER, 0, _NEVER
    event = process.views[index]
    if index + 1 == len(process.views):
        return event.step, _NEVER, event.first_position, _NEVER
    after = process.views[index + 1]
    return event.step, after.step, event.first_position, after.first_position


def outside_view(trace: TraceTables, intervals: Iterable[_Interval]) -> DataFrame:
    """Deliveries before the process received their view, after the next one, or at a position of another."""
    known = small_table(trace.spark, intervals, _INTERVALS_SCHEMA)
    step, position = sf.col("step"), sf.col("position")
    last = position + sf.col("count") - 1
    how = (
        sf.when(step < sf.col("view_step"), sf.lit("before it received the view"))
        .when(step > sf.col("next_step"), sf.lit("after it received the next view"))
        .when(position < sf.col("first_position"), sf.lit("before the first position of the view"))
        .when(last >= sf.col("next_position"), sf.lit("after the first position of the next view"))
    )
    found = (
        trace.delivered_batches.join(sf.broadcast(known), ["run", "process", "view", "coordinator"])
        .withColumn("how", how)
        .where(sf.col("how").isNotNull())
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=position,
        messages=sf.array(message_id()),
        members=sf.array("process"),
        summary=sf.format_string("%s delivered it %s", "process", "how"),
    )


def from_outsiders(trace: TraceTables, outsiders: Iterable[tuple[str, int, str, str]]) -> DataFrame:
    """Senders whose messages were delivered in a view that they are not in, each with the first message."""
    known = small_table(trace.spark, outsiders, _OUTSIDERS_SCHEMA)
    found = (
        trace.delivered_batches.withColumn("outsider", process_id("sender", "sender_incarnation"))
        .join(sf.broadcast(known), ["run", "view", "coordinator", "outsider"])
        .withColumnRenamed("first", "number")
        .groupBy("run", "view", "coordinator", "outsider")
        .agg(sf.min(sf.struct("position", message_id().alias("message"))).alias("first"))
    )
    return violations(
        found,
        position=sf.col("first.position"),
        messages=sf.array("first.message"),
        members=sf.array("outsider"),
        summary=sf.format_string(
            "%s is not a member of view %s, but its messages were delivered there", "outsider", view_id()
        ),
    )


def _violation(run: str, view: ViewName, position: int, members: Iterable[str], summary: str) -> Violation:
    return Violation(
        guarantee=VIEW_SYNCHRONY,
        summary=summary,
        run=run,
        view=str(view),
        position=position,
        members=tuple(sorted(members)),
    )
