"""The queues in which messages waited, reconstructed from a trace: what they contained when, what left first.

A message waits in up to three kinds of queues:

- its *sender's*, from its broadcast until its sender first sends a packet that carries it;
- the *orderer's*, if one member assigns the positions: from when it receives the message without a position
  until it sends it with one;
- each *member's*, if messages may still be reordered there: from when the member receives a packet that
  carries the message until its application consumes it.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

import msgspec

from priocast.core.identity import MessageId
from priocast.trace.recorded_run import (
    RecordedRun,
    RecordedView,
    is_reference,
    messages_of,
    process_of,
    sender_of,
    urgency_of,
)
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT, MessageRow

_NEVER = (2**62, 0)
_CONSUMING = "consuming"

#: A step, and the index among the messages of that step.
Moment = tuple[int, int]
_Predicate = Callable[[MessageRow], bool]


class QueueKind(Enum):
    """Whose queue it is."""

    SENDER = "sender"
    ORDERER = "orderer"
    MEMBER = "member"


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message in a queue: when it entered and when it left, by the steps and the clock of the process."""

    message: MessageId
    urgency: int
    priority: int
    entered: Moment
    entered_ns: int
    left: Moment
    left_ns: int | None

    @property
    def has_left(self) -> bool:
        """Whether it left the queue before the trace ended."""
        return self.left < _NEVER


class RecordedQueue(msgspec.Struct, frozen=True):
    """A queue of one process in one view; `entries` are in the order in which they entered."""

    kind: QueueKind
    process: str
    entries: tuple[QueueEntry, ...]

    def find(self, message: MessageId) -> QueueEntry | None:
        """The entry of a message, if it was in this queue."""
        return next((entry for entry in self.entries if entry.message == message), None)

    def waiting_at(self, moment: Moment) -> list[QueueEntry]:
        """What was in the queue at a moment, in the order in which it left."""
        waiting = [entry for entry in self.entries if entry.entered < moment < entry.left]
        return sorted(waiting, key=lambda entry: (entry.left, entry.entered))

    def left_before(self, moment: Moment) -> list[QueueEntry]:
        """What had left the queue before a moment, in the order in which it left."""
        gone = [entry for entry in self.entries if entry.left < moment]
        return sorted(gone, key=lambda entry: entry.left)

    def overtakings(self) -> Iterator[tuple[MessageId, int]]:
        """For each message that left: how many less urgent ones it overtook in this queue."""
        moments = sorted(
            [(entry.entered, True, entry) for entry in self.entries]
            + [(entry.left, False, entry) for entry in self.entries if entry.has_left],
            key=lambda moment: moment[0],
        )
        waiting: dict[int, list[Moment]] = defaultdict(list)
        for _, enters, entry in moments:
            of_level = waiting[entry.urgency]
            if not enters:
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


def sending_queues(run: RecordedRun, process: str | None = None) -> Iterator[RecordedQueue]:
    """The senders' queues, of all processes or of one; a message may wait there through several views."""
    chosen = {} if process is None else _chosen(process)
    rows = [row for event in (BROADCAST, SENT) for row in run.messages(event=event, **chosen)]
    return _queues(QueueKind.SENDER, rows, _enters_sender, _leaves_sender)


def queues_of(run: RecordedRun, view: RecordedView) -> Iterator[RecordedQueue]:
    """The queues of a view in which messages are ordered or reordered."""
    named: dict[str, str | int] = {"view": view.name.number, "coordinator": view.name.coordinator}
    if view.orderer:
        rows = run.messages(**named, **_chosen(view.orderer))
        yield from _queues(QueueKind.ORDERER, rows, _enters_orderer, _leaves_orderer)
    if view.order.priorities_act == _CONSUMING:
        yield from _queues(QueueKind.MEMBER, run.messages(**named), _enters_member, _leaves_member)


def _chosen(process: str) -> dict[str, str | int]:
    name, _, incarnation = process.rpartition("#")
    return {"member": name, "incarnation": int(incarnation)}


def _queues(
    kind: QueueKind, rows: Iterable[MessageRow], enters: _Predicate, leaves: _Predicate
) -> Iterator[RecordedQueue]:
    """A queue for each process; if a message enters or leaves several times, the first time counts."""
    entered: dict[str, dict[MessageId, tuple[Moment, MessageRow]]] = defaultdict(dict)
    left: dict[str, dict[MessageId, tuple[Moment, MessageRow]]] = defaultdict(dict)
    for row in rows:
        for is_so, noted in ((enters, entered), (leaves, left)):
            if is_so(row):
                for index, message in enumerate(messages_of(row)):
                    noted[process_of(row)].setdefault(message, ((row.step, index), row))
    for process, entries in entered.items():
        yield RecordedQueue(
            kind,
            process,
            tuple(
                _entry(message, moment, row, left[process].get(message))
                for message, (moment, row) in entries.items()
            ),
        )


def _entry(
    message: MessageId, moment: Moment, row: MessageRow, left: tuple[Moment, MessageRow] | None
) -> QueueEntry:
    return QueueEntry(
        message=message,
        urgency=urgency_of(row),
        priority=row.priorities[moment[1]] if row.priorities else row.level,
        entered=moment,
        entered_ns=row.time_ns,
        left=left[0] if left else _NEVER,
        left_ns=left[1].time_ns if left else None,
    )


def _enters_sender(row: MessageRow) -> bool:
    return row.event == BROADCAST


def _leaves_sender(row: MessageRow) -> bool:
    return row.event == SENT and not is_reference(row) and process_of(row) == sender_of(row)


def _enters_orderer(row: MessageRow) -> bool:
    return row.event == RECEIVED and not is_reference(row) and row.position < 0


def _leaves_orderer(row: MessageRow) -> bool:
    return row.event == SENT and row.position >= 0


def _enters_member(row: MessageRow) -> bool:
    """A message that is not for a member passes through its queue unseen."""
    is_for_it = not row.to or row.member in row.to.split(",")
    return row.event == RECEIVED and not is_reference(row) and is_for_it


def _leaves_member(row: MessageRow) -> bool:
    return row.event == DELIVERED
