"""View synchrony: processes agree on the views, and everything is delivered in the view that it belongs to.

- A process is a member of every view that it is told of, and its views have ever higher numbers.
- Whoever is told of a view is told the same: its members (the coordinator is the first), its first position,
  who orders and how, the reason for the view.
- A process delivers a message that was ordered in a view after it was told of this view and before it is told
  of the next, at a position between the first ones of the two.
- Who sends a message is a member of the view in which it is delivered.

In a primary group, besides, the views form one chain:

- no two views have one number, and whoever goes on from a view goes on to the next one that there is;
- of a view's members more than half, or just half and the first among them, took part in the next one: they
  are in it, or its reason says of them something else than that they failed (they left, or were put out).

That those who go on together delivered the same messages is Agreement.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from priocast.pipeline.checks.violation import Finding, together, violations
from priocast.pipeline.chronicle import Chronicle, Life, Told, ViewName
from priocast.pipeline.evidence import Evidence, Views
from priocast.pipeline.membership import GroupView, name_of
from priocast.pipeline.sources import Run, message_id, process_id, view_id
from priocast.trace.schema import DELIVERED

_NEVER = 2**63 - 1
_NOT_LET_GO = ("failed", "joined")
_TIMES_SCHEMA = """run string, process string, view long, coordinator string, told_step long, next_step long,
    first_position long, next_position long"""
_STRANGERS_SCHEMA = "run string, view long, coordinator string, stranger string"

_Times = tuple[str, str, int, str, int, int, int, int]


def find(evidence: Evidence) -> DataFrame:
    """Every view that should not be as it is, and every delivery that is not in its view."""
    findings: list[Finding] = []
    mistimed: list[_Times] = []
    strangers = []
    for run in evidence.runs:
        chronicle, views = evidence.chronicles[run.name], evidence.views_of[run.name]
        findings += judge_views(run, chronicle, views)
        mistimed += delivered_at_other_times(run.name, chronicle, views)
        strangers += [
            (run.name, *view, sender)
            for view, sender in chronicle.senders
            if view in views and sender not in views[view].members
        ]
    parts = []
    if mistimed:
        parts.append(out_of_view(evidence, mistimed))
    if strangers:
        parts.append(from_strangers(evidence, strangers))
    return together(evidence, parts, findings)


def judge_views(run: Run, chronicle: Chronicle, views: Views) -> Iterator[Finding]:
    """What is wrong with the views themselves, or with their sequence."""
    for life in chronicle.lives.values():
        for telling in life.told:
            yield from _not_as_others(run.name, life, telling, views[telling.view])
        for telling, after in life.onward():
            if after.view.number <= telling.view.number:
                detail = f"{life.process} was told of it after view {telling.view}"
                yield _finding(run.name, after.view, after.first_position, [life.process], detail)
    if run.primary:
        yield from _side_by_side(run.name, chronicle, views)
        yield from _left_out(run.name, chronicle, views)
        yield from _without_majority(run.name, views)


def _not_as_others(run: str, life: Life, telling: Told, view: GroupView) -> Iterator[Finding]:
    if life.process not in telling.members:
        detail = f"{life.process} was told of a view that it is not in"
        yield _finding(run, view.name, telling.first_position, [life.process], detail)
    if telling.members[0] != view.name.coordinator:
        detail = f"{life.process} was told that its first member is {telling.members[0]}"
        yield _finding(run, view.name, telling.first_position, [life.process], detail)
    asked = (
        ("members", ", ".join(telling.members), ", ".join(view.members)),
        ("first position", str(telling.first_position), str(view.first_position)),
        ("orderer", telling.orderer or "nobody", view.orderer or "nobody"),
        ("order", telling.order, str(view.order)),
        ("reason", repr(telling.reason), repr(view.reason)),
    )
    for what, said, most_said in asked:
        if said != most_said:
            detail = f"{life.process} was told of the {what} {said}, most of {most_said}"
            yield _finding(run, view.name, telling.first_position, [life.process], detail)


def _side_by_side(run: str, chronicle: Chronicle, views: Views) -> Iterator[Finding]:
    first: dict[int, ViewName] = {}
    for name, view in views.items():
        other = first.setdefault(name.number, name)
        if other != name:
            told = [life.process for life in chronicle.lives.values() if _was_told(life, name)]
            yield _finding(run, name, view.first_position, told, f"there is also a view {other}")


def _left_out(run: str, chronicle: Chronicle, views: Views) -> Iterator[Finding]:
    for life in chronicle.lives.values():
        for telling, after in life.onward():
            between = [str(name) for name in views if telling.view.number < name.number < after.view.number]
            if between:
                detail = (
                    f"{life.process} went on to it from view {telling.view}, without {', '.join(between)}"
                )
                yield _finding(run, after.view, after.first_position, [life.process], detail)


def _without_majority(run: str, views: Views) -> Iterator[Finding]:
    numbered: dict[int, list[GroupView]] = defaultdict(list)
    for view in views.values():
        numbered[view.name.number].append(view)
    before: list[GroupView] = []
    for number in sorted(numbered):
        for view in numbered[number] if before else ():
            previous = max(before, key=lambda other: len(set(other.members) & set(view.members)))
            if not _is_majority(previous, view):
                came = [process for process in previous.members if process in view.members]
                detail = (
                    f"{', '.join(came) or 'nobody'} of the {len(previous.members)} members of view "
                    f"{previous.name}: no majority"
                )
                yield _finding(run, view.name, view.first_position, came, detail)
        before = numbered[number]


def _is_majority(previous: GroupView, view: GroupView) -> bool:
    agreeing = [
        process for process in previous.members if process in view.members or _was_let_go(process, view)
    ]
    half = len(previous.members) / 2
    return len(agreeing) > half or (len(agreeing) == half and previous.members[0] in agreeing)


def _was_let_go(process: str, view: GroupView) -> bool:
    """Whether the reason for a view says of one that is not in it that it left or was put out."""
    said = [
        text.removeprefix(name_of(process))
        for text in view.reason.split("; ")
        if text.startswith(f"{name_of(process)} ")
    ]
    return any(word.strip() not in _NOT_LET_GO for word in said)


def delivered_at_other_times(run: str, chronicle: Chronicle, views: Views) -> Iterator[_Times]:
    """When members should have delivered what was ordered in a view, where they did not do so only then."""
    for life in chronicle.lives.values():
        told: dict[ViewName, int] = {}
        for place, telling in enumerate(life.told):
            told.setdefault(telling.view, place)
        for name, span in life.delivered.items():
            if name not in views or life.process not in views[name].members:
                continue  # an outsider: Integrity
            step, next_step, position, next_position = _times(life, told.get(name))
            in_time = step < span.step_first and span.step_last < next_step
            in_place = position <= span.position_first and span.position_last < next_position
            if not (in_time and in_place):
                yield run, life.process, *name, step, next_step, position, next_position


def _times(life: Life, place: int | None) -> tuple[int, int, int, int]:
    if place is None:
        return _NEVER, _NEVER, 0, _NEVER
    telling = life.told[place]
    if place + 1 == len(life.told):
        return telling.step, _NEVER, telling.first_position, _NEVER
    after = life.told[place + 1]
    return telling.step, after.step, telling.first_position, after.first_position


def out_of_view(evidence: Evidence, mistimed: Iterable[_Times]) -> DataFrame:
    """Deliveries before the process was told of their view, after the next one, or at a place of another."""
    times = evidence.spark.createDataFrame(list(mistimed), _TIMES_SCHEMA)
    step, position = sf.col("step"), sf.col("position")
    last = position + sf.col("count") - 1
    said = (
        sf.when(step < sf.col("told_step"), sf.lit("before it was told of the view"))
        .when(step > sf.col("next_step"), sf.lit("after it was told of the next view"))
        .when(position < sf.col("first_position"), sf.lit("before the first position of the view"))
        .when(last >= sf.col("next_position"), sf.lit("behind the first position of the next view"))
    )
    found = (
        evidence.events.where(sf.col("event") == DELIVERED)
        .join(sf.broadcast(times), ["run", "process", "view", "coordinator"])
        .withColumn("said", said)
        .where(sf.col("said").isNotNull())
        .withColumnRenamed("first", "number")
    )
    return violations(
        found,
        position=position,
        messages=sf.array(message_id()),
        members=sf.array("process"),
        detail=sf.format_string("%s delivered it %s", "process", "said"),
    )


def from_strangers(evidence: Evidence, strangers: Iterable[tuple[str, int, str, str]]) -> DataFrame:
    """Senders with messages that were delivered in a view that they are not in, each with the first one."""
    known = evidence.spark.createDataFrame(list(strangers), _STRANGERS_SCHEMA)
    found = (
        evidence.events.where(sf.col("event") == DELIVERED)
        .withColumn("stranger", process_id("sender", "sender_incarnation"))
        .join(sf.broadcast(known), ["run", "view", "coordinator", "stranger"])
        .withColumnRenamed("first", "number")
        .groupBy("run", "view", "coordinator", "stranger")
        .agg(sf.min(sf.struct("position", message_id().alias("message"))).alias("first"))
    )
    return violations(
        found,
        position=sf.col("first.position"),
        messages=sf.array("first.message"),
        members=sf.array("stranger"),
        detail=sf.format_string(
            "%s is not a member of view %s, and its messages were delivered there", "stranger", view_id()
        ),
    )


def _was_told(life: Life, name: ViewName) -> bool:
    return any(telling.view == name for telling in life.told)


def _finding(run: str, view: ViewName, position: int, members: Iterable[str], detail: str) -> Finding:
    return Finding(run, view.number, view.coordinator, position, (), tuple(sorted(members)), detail)
