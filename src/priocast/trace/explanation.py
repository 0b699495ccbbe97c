"""Why a message has its position: what was in each queue when it arrived, what it overtook there, and why.

Everything is judged by each process's own steps, so no two clocks are compared.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.identity import MessageId, ProcessId
from priocast.trace.queues import QueueEntry, QueueKind, RecordedQueue, queues_of, sending_queues
from priocast.trace.recorded_run import RecordedRun, RecordedView, is_reference, messages_of, view_of
from priocast.trace.schema import BROADCAST, DELIVERED, MessageRow

_ID = re.compile(r"(?P<name>.+)#(?P<incarnation>\d+)/(?P<level>\d+)/(?P<number>\d+)")
_EXAMPLES_MAX = 5


class QueueWait(msgspec.Struct, frozen=True, kw_only=True):
    """One message in one queue.

    `gone` had left the queue before the message arrived, in that order. `before` is what was in the queue
    then, and `after` the same with the message, both in the order in which they left.
    """

    kind: QueueKind
    process: str
    entry: QueueEntry
    gone: tuple[QueueEntry, ...]
    before: tuple[QueueEntry, ...]
    after: tuple[QueueEntry, ...]

    @property
    def overtaken(self) -> tuple[QueueEntry, ...]:
        """The less urgent messages that were in the queue and left after it."""
        if not self.entry.has_left:
            return ()
        behind = self.after[self.after.index(self.entry) + 1 :]
        return tuple(entry for entry in behind if entry.urgency < self.entry.urgency)

    @property
    def not_overtaken(self) -> tuple[QueueEntry, ...]:
        """The less urgent messages that were in the queue and nevertheless left before it."""
        ahead = self.after[: self.after.index(self.entry)]
        return tuple(entry for entry in ahead if entry.urgency < self.entry.urgency)

    @property
    def locked(self) -> tuple[QueueEntry, ...]:
        """The messages behind the last one that is at least as urgent: with locks, they wait for it.

        A trace does not contain which messages had a position when it arrived. A message without one inherits
        the lock. A message that was locked only until a more urgent one was ordered behind it is left out.
        """
        start = max(
            (n for n, each in enumerate(self.before, 1) if each.urgency >= self.entry.urgency), default=0
        )
        return self.before[start:]

    @property
    def waited_ns(self) -> int | None:
        """How long it was in the queue."""
        left_ns = self.entry.left_ns
        return None if left_ns is None else left_ns - self.entry.entered_ns


class ConsumptionCut(msgspec.Struct, frozen=True):
    """The last position that any process had consumed when the message arrived there, and which process."""

    position: int
    process: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one message; `position` is its position in the order of its view, if it has one.

    If messages are reordered while they wait to be consumed, `cut` says how far they had been consumed (None:
    nothing was), and `insertion_point` is the first message that it overtook in a member's queue. `consumers`
    says, for each message that it did not overtake, which processes had consumed that when this one arrived.
    """

    message: MessageId
    priority: int
    view: RecordedView
    position: int | None
    waits: tuple[QueueWait, ...]
    cut: ConsumptionCut | None
    insertion_point: MessageId | None
    consumers: dict[str, tuple[str, ...]]

    @property
    def overtaken(self) -> list[QueueEntry]:
        """What it overtook in any queue, once each."""
        found = {entry.message: entry for wait in self.waits for entry in wait.overtaken}
        return list(found.values())


def find_message(run: RecordedRun, text: str) -> MessageId:
    """The message with this id, or an error that lists a few that exist."""
    match = _ID.fullmatch(text.strip())
    if match:
        sender = ProcessId(match["name"], int(match["incarnation"]))
        message = MessageId(sender, int(match["level"]), int(match["number"]))
        if run.rows_of(message):
            return message
    broadcasts = run.messages(event=BROADCAST)
    some = list(islice((message for row in broadcasts for message in messages_of(row)), 1000))
    listed = ", ".join(map(str, some[:: -(-len(some) // _EXAMPLES_MAX) or 1])) or "none"
    raise InvalidInput(
        f"the trace has no message {text!r}: a message id is SENDER#INCARNATION/LEVEL/NUMBER; "
        f"some messages of this trace: {listed}"
    )


def find_worst(run: RecordedRun) -> MessageId:
    """The message that overtook the most less urgent ones, in all queues together."""
    counts = Counter[MessageId]()
    queues: list[RecordedQueue] = [*sending_queues(run)]
    for view in run.views.values():
        queues += queues_of(run, view)
    for queue in queues:
        for message, overtaken in queue.overtakings():
            counts[message] += overtaken
    if not counts:
        raise InvalidInput("the trace has no message that was in a queue")
    return max(sorted(counts), key=counts.__getitem__)


def explain(run: RecordedRun, message: MessageId) -> Explanation:
    """What happened to a message, and why."""
    rows = run.rows_of(message)
    delivered = [row for row in rows if row.event == DELIVERED]
    view = _view(run, delivered or rows)
    queues = [*sending_queues(run, str(message.sender)), *queues_of(run, view)]
    waits = [_wait(queue, entry) for queue in queues if (entry := queue.find(message)) is not None]
    at_members = [wait for wait in waits if wait.kind is QueueKind.MEMBER]
    positions = _positions(run, view) if at_members else {}
    row = next((row for row in rows if not is_reference(row)), rows[0])
    here = [row for row in delivered if view_of(row) == view.name]
    return Explanation(
        message=message,
        priority=row.priorities[message.number - row.first] if row.priorities else row.level,
        view=view,
        position=here[0].position + message.number - here[0].first if here else None,
        waits=tuple(waits),
        cut=_cut(at_members, positions) if at_members else None,
        insertion_point=_insertion_point(at_members, positions),
        consumers=_consumers(at_members),
    )


def _view(run: RecordedRun, rows: Sequence[MessageRow]) -> RecordedView:
    """The view that most of the rows are in, and of several the last."""
    counts = Counter(view_of(row) for row in rows if view_of(row) in run.views)
    if not counts:
        raise InvalidInput(
            "the trace does not contain the view that the message was in: its first rows are missing"
        )
    return run.views[max(counts, key=lambda name: (counts[name], name))]


def _wait(queue: RecordedQueue, entry: QueueEntry) -> QueueWait:
    before = queue.waiting_at(entry.entered)
    after = sorted([*before, entry], key=lambda each: (each.left, each.entered))
    return QueueWait(
        kind=queue.kind,
        process=queue.process,
        entry=entry,
        gone=tuple(queue.left_before(entry.entered)),
        before=tuple(before),
        after=tuple(after),
    )


def _positions(run: RecordedRun, view: RecordedView) -> dict[MessageId, int]:
    """The positions of a view's messages, as the first process that delivered them recorded them."""
    positions: dict[MessageId, int] = {}
    number, coordinator = view.name
    for row in run.messages(event=DELIVERED, view=number, coordinator=coordinator):
        for position, message in enumerate(messages_of(row), row.position):
            positions.setdefault(message, position)
    return positions


def _cut(waits: Iterable[QueueWait], positions: dict[MessageId, int]) -> ConsumptionCut | None:
    """How far any process had consumed; of several, the first by name."""
    reached = [
        (max(positions[entry.message] for entry in wait.gone), wait.process) for wait in waits if wait.gone
    ]
    if not reached:
        return None
    last = max(position for position, _ in reached)
    return ConsumptionCut(last, min(process for position, process in reached if position == last))


def _insertion_point(waits: Iterable[QueueWait], positions: dict[MessageId, int]) -> MessageId | None:
    """The first message that it overtook; those that nobody consumed come last."""
    overtaken = [entry.message for wait in waits for entry in wait.overtaken]
    return min(overtaken, key=lambda message: positions.get(message, inf), default=None)


def _consumers(waits: Sequence[QueueWait]) -> dict[str, tuple[str, ...]]:
    ahead = {entry.message for wait in waits for entry in wait.not_overtaken}
    gone = {wait.process: {entry.message for entry in wait.gone} for wait in waits}
    return {
        str(message): tuple(sorted(process for process, consumed in gone.items() if message in consumed))
        for message in sorted(ahead)
    }
