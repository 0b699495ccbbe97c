"""What each process was told of the group, and when: the views, and what it did in each.

A run has messages by the million and a new view now and then. What is known of views is therefore brought to
one place and thought about in plain values; messages never are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from priocast.pipeline.sources import process_id
from priocast.trace.schema import DELIVERED, STATE, STOPPED, VIEW

_TOLD = (VIEW, STATE, STOPPED)


class ViewName(NamedTuple):
    """The name of a view, as `ViewId` has it."""

    number: int
    coordinator: str

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


@dataclass(frozen=True)
class Told:
    """A process was told of a view; `order` says how it is ordered, as the trace has it."""

    view: ViewName
    step: int
    time_ns: int
    members: tuple[str, ...]
    orderer: str
    first_position: int
    reason: str
    order: str


@dataclass(frozen=True)
class Restored:
    """A process took over the group's state as it was before a position."""

    step: int
    time_ns: int
    position: int


@dataclass(frozen=True)
class Stop:
    """A process said that it is out of the group."""

    time_ns: int
    reason: str


@dataclass(frozen=True)
class Span:
    """The first and the last that a process delivered in a view: by its steps, by position, by its clock."""

    count: int
    step_first: int
    step_last: int
    position_first: int
    position_last: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True)
class Life:
    """One process: the views in the order in which it was told of them, and what it did in each.

    `delivered` has the views in which it delivered anything; `worked_until` is the last step at which its
    protocol, in a view, sent or received messages or was given some.
    """

    process: str
    told: tuple[Told, ...]
    delivered: Mapping[ViewName, Span]
    worked_until: Mapping[ViewName, int]
    restored: tuple[Restored, ...]
    stopped: Stop | None
    first_ns: int
    last_ns: int

    @property
    def owes_from(self) -> int:
        """The first position that its state, if it took one over, does not hold."""
        return max((restored.position for restored in self.restored), default=0)

    def onward(self) -> Iterator[tuple[Told, Told]]:
        """Each view that it went on from, with the next one."""
        return zip(self.told, self.told[1:], strict=False)


@dataclass(frozen=True)
class Chronicle:
    """One run: its processes by name, who had messages delivered in which view, and to whom any were sent.

    `addressed` has the different lists of addressees, for messages that were not for all.
    """

    lives: Mapping[str, Life]
    senders: frozenset[tuple[ViewName, str]]
    addressed: frozenset[str]


def read_chronicles(events: DataFrame, runs: Iterable[str]) -> dict[str, Chronicle]:
    """The chronicle of each run."""
    rows: dict[str, dict[str, list[Row]]] = {run: defaultdict(list) for run in runs}
    for row in sum_up(events).collect():
        rows[row["run"]][row["process"]].append(row)
    selective = any(row["selective"] for of_run in rows.values() for of in of_run.values() for row in of)
    addressed: dict[str, set[str]] = defaultdict(set)
    if selective:
        for row in addressees(events).collect():
            addressed[row["run"]].add(row["to"])
    return {run: _chronicle(of_run, addressed[run]) for run, of_run in rows.items()}


def sum_up(events: DataFrame) -> DataFrame:
    """Each row that tells of a view, a state or an end; the others summed by process, view, kind, sender."""
    event = sf.col("event")
    tells = event.isin(*_TOLD)
    sender = sf.when(sf.col("sender") != "", process_id("sender", "sender_incarnation"))
    return events.groupBy(
        "run",
        "process",
        "view",
        "coordinator",
        "event",
        sf.when(tells, sf.col("step")).alias("at"),
        sf.when(tells, sf.col("peer")).alias("members"),
        sf.when(tells, sf.col("packet")).alias("reason"),
        sf.when(tells, sf.col("order")).alias("order"),
        sf.when(tells | (event == DELIVERED), sender).alias("sender"),
    ).agg(
        sf.sum("count").alias("messages"),
        sf.min("step").alias("step_first"),
        sf.max("step").alias("step_last"),
        sf.min("position").alias("position_first"),
        sf.max(sf.col("position") + sf.greatest("count", sf.lit(1)) - 1).alias("position_last"),
        sf.min("time_ns").alias("first_ns"),
        sf.max("time_ns").alias("last_ns"),
        sf.max(sf.col("to") != "").alias("selective"),
    )


def addressees(events: DataFrame) -> DataFrame:
    """The different lists of addressees in each run."""
    return events.where(sf.col("to") != "").select("run", "to").distinct()


def _chronicle(rows: Mapping[str, list[Row]], addressed: Iterable[str]) -> Chronicle:
    senders = {(_name(row), row["sender"]) for of in rows.values() for row in of if row["event"] == DELIVERED}
    lives = {process: _life(process, of) for process, of in sorted(rows.items())}
    return Chronicle(lives, frozenset(senders), frozenset(addressed))


def _life(process: str, rows: list[Row]) -> Life:
    of_kind: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["step_first"])):
        of_kind[row["event"]].append(row)
    delivered: dict[ViewName, list[Row]] = defaultdict(list)
    for row in of_kind[DELIVERED]:
        delivered[_name(row)].append(row)
    worked_until: dict[ViewName, int] = {}
    for row in rows:
        if row["event"] not in (*_TOLD, DELIVERED):
            name = _name(row)
            worked_until[name] = max(worked_until.get(name, 0), row["step_last"])
    return Life(
        process=process,
        told=tuple(map(_told, of_kind[VIEW])),
        delivered={name: _span(of) for name, of in delivered.items()},
        worked_until=worked_until,
        restored=tuple(Restored(row["at"], row["first_ns"], row["position_first"]) for row in of_kind[STATE]),
        stopped=next((Stop(row["first_ns"], row["reason"]) for row in of_kind[STOPPED]), None),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
    )


def _told(row: Row) -> Told:
    return Told(
        view=_name(row),
        step=row["at"],
        time_ns=row["first_ns"],
        members=tuple(row["members"].split(",")),
        orderer=row["sender"] or "",
        first_position=row["position_first"],
        reason=row["reason"],
        order=row["order"],
    )


def _span(rows: list[Row]) -> Span:
    return Span(
        count=sum(row["messages"] for row in rows),
        step_first=min(row["step_first"] for row in rows),
        step_last=max(row["step_last"] for row in rows),
        position_first=min(row["position_first"] for row in rows),
        position_last=max(row["position_last"] for row in rows),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
    )


def _name(row: Row) -> ViewName:
    return ViewName(row["view"], row["coordinator"])
