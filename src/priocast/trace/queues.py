"""The queues in which messages waited, as a trace tells of them: what was in them when, and what left first.

A message waits in up to three kinds of queues:

- its *sender's*, from its broadcast until its sender first sends a packet that carries it;
- the *orderer's*, where one member gives out the places: from when it receives the message without a place
  until it sends it with one;
- each *member's*, where messages may still be re-ordered: from when it receives a packet that carries the
  message until its application consumes it.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

import msgspec

from priocast.core.identity import MessageId
from priocast.trace.recorded_run import (
    RecordedRun,
    ToldView,
    is_named,
    messages_of,
    process_of,
    sender_of,
    urgency_of,
)
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, Row

_NEVER = (2**62, 0)
_CONSUMING = "consuming"

#: A step, and the place among the messages of that step.
Moment = tuple[int, int]
_Sort = Callable[[Row], bool]


class Kind(Enum):
    """Whose queue it is."""

    SENDER = "sender"
    ORDERER = "orderer"
    MEMBER = "member"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One message in a queue: when it came and when it left, by the steps and the clock of the process."""

    message: MessageId
    urgency: int
    priority: int
    came: Moment
    came_ns: int
    left: Moment
    left_ns: int | None

    @property
    def has_left(self) -> bool:
        """Whether it ever left."""
        return self.left < _NEVER


class Queue(msgspec.Struct, frozen=True):
    """A queue of one process in one view; `entries` by the order of their coming."""

    kind: Kind
    process: str
    entries: tuple[Entry, ...]

    def find(self, message: MessageId) -> Entry | None:
        """The entry of a message, if it was here."""
        return next((entry for entry in self.entries if entry.message == message), None)

    def waiting_at(self, moment: Moment) -> list[Entry]:
        """What was in the queue then, in the order in which it left."""
        waiting = [entry for entry in self.entries if entry.came < moment < entry.left]
        return sorted(waiting, key=lambda entry: (entry.left, entry.came))

    def gone_by(self, moment: Moment) -> list[Entry]:
        """What had left the queue by then, in that order."""
        gone = [entry for entry in self.entries if entry.left < moment]
        return sorted(gone, key=lambda entry: entry.left)

    def overtakings(self) -> Iterator[tuple[MessageId, int]]:
        """For each message that left: how many less urgent ones it overtook here."""
        moments = sorted(
            [(entry.came, True, entry) for entry in self.entries]
            + [(entry.left, False, entry) for entry in self.entries if entry.has_left],
            key=lambda moment: moment[0],
        )
        waiting: dict[int, list[Moment]] = defaultdict(list)
        for _, comes, entry in moments:
            of_level = waiting[entry.urgency]
            if not comes:
                del of_level[bisect_left(of_level, entry.left)]
                continue
            if entry.has_left:
                yield (
                    entry.message,
                    sum(
                        len(others) - bisect_right(others, entry.left)
                        for urgency, others in waiting.items()
                        if urgency < entry.urgency
                    ),
                )
            insort(of_level, entry.left)


def sending_queues(run: RecordedRun, process: str | None = None) -> Iterator[Queue]:
    """The senders' queues, of all processes or of one; a message may wait there through several views."""
    chosen = {} if process is None else _chosen(process)
    rows = [row for event in (BROADCAST, SENT) for row in run.rows(event=event, **chosen)]
    return _queues(Kind.SENDER, rows, _is_offered, _is_taken)


def queues_of(run: RecordedRun, view: ToldView) -> Iterator[Queue]:
    """The queues of a view in which messages are ordered, or re-ordered."""
    named: dict[str, str | int] = {"view": view.name[0], "coordinator": view.name[1]}
    if view.orderer:
        rows = run.rows(**named, **_chosen(view.orderer))
        yield from _queues(Kind.ORDERER, rows, _is_unplaced, _is_placed)
    if view.order.priorities_act == _CONSUMING:
        yield from _queues(Kind.MEMBER, run.rows(**named), _is_received, _is_delivered)


def _chosen(process: str) -> dict[str, str | int]:
    name, _, incarnation = process.rpartition("#")
    return {"member": name, "incarnation": int(incarnation)}


def _queues(kind: Kind, rows: Iterable[Row], comes: _Sort, leaves: _Sort) -> Iterator[Queue]:
    """A queue for each process; of several comings and leavings of a message the first ones count."""
    came: dict[str, dict[MessageId, tuple[Moment, Row]]] = defaultdict(dict)
    left: dict[str, dict[MessageId, tuple[Moment, Row]]] = defaultdict(dict)
    for row in rows:
        for sort, noted in ((comes, came), (leaves, left)):
            if sort(row):
                for index, message in enumerate(messages_of(row)):
                    noted[process_of(row)].setdefault(message, ((row.step, index), row))
    for process, entries in came.items():
        yield Queue(
            kind,
            process,
            tuple(
                _entry(message, moment, row, left[process].get(message))
                for message, (moment, row) in entries.items()
            ),
        )


def _entry(message: MessageId, moment: Moment, row: Row, left: tuple[Moment, Row] | None) -> Entry:
    return Entry(
        message=message,
        urgency=urgency_of(row),
        priority=row.priorities[moment[1]] if row.priorities else row.level,
        came=moment,
        came_ns=row.time_ns,
        left=left[0] if left else _NEVER,
        left_ns=left[1].time_ns if left else None,
    )


def _is_offered(row: Row) -> bool:
    return row.event == BROADCAST


def _is_taken(row: Row) -> bool:
    return row.event == SENT and not is_named(row) and process_of(row) == sender_of(row)


def _is_unplaced(row: Row) -> bool:
    return row.event == RECEIVED and not is_named(row) and row.position < 0


def _is_placed(row: Row) -> bool:
    return row.event == SENT and row.position >= 0


def _is_received(row: Row) -> bool:
    """What is not for a member passes through its queue unseen."""
    is_for_it = not row.to or row.member in row.to.split(",")
    return row.event == RECEIVED and not is_named(row) and is_for_it


def _is_delivered(row: Row) -> bool:
    return row.event == DELIVERED
