"""Why a message is where it is in the order: what it met in each queue, what it overtook there, and why.

Everything is judged by each process's own steps, as its trace has them, so no two clocks are compared.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.identity import MessageId, ProcessId
from priocast.trace.queues import Entry, Kind, Queue, queues_of, sending_queues
from priocast.trace.recorded_run import RecordedRun, ToldView, is_named, messages_of, view_of
from priocast.trace.schema import BROADCAST, DELIVERED, Row

_ID = re.compile(r"(?P<name>.+)#(?P<incarnation>\d+)/(?P<level>\d+)/(?P<number>\d+)")
_NAMED_MAX = 5


class Waited(msgspec.Struct, frozen=True, kw_only=True):
    """One message in one queue.

    `gone` had left the queue before it came, in that order. `before` is what it met there, and `after` the
    same with it, both in the order in which they left.
    """

    kind: Kind
    process: str
    entry: Entry
    gone: tuple[Entry, ...]
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]

    @property
    def overtaken(self) -> tuple[Entry, ...]:
        """The less urgent ones that it met, and that left after it."""
        if not self.entry.has_left:
            return ()
        behind = self.after[self.after.index(self.entry) + 1 :]
        return tuple(entry for entry in behind if entry.urgency < self.entry.urgency)

    @property
    def let_pass(self) -> tuple[Entry, ...]:
        """The less urgent ones that it met, and that left before it all the same."""
        ahead = self.after[: self.after.index(self.entry)]
        return tuple(entry for entry in ahead if entry.urgency < self.entry.urgency)

    @property
    def locked(self) -> tuple[Entry, ...]:
        """Those behind the last one that is at least as urgent: with locks, they wait until it is inserted.

        A trace does not tell which messages had a place when it came. One that had none inherits the lock
        with it. One that was locked only until a more urgent one had its place behind it is left out.
        """
        start = max(
            (n for n, each in enumerate(self.before, 1) if each.urgency >= self.entry.urgency), default=0
        )
        return self.before[start:]

    @property
    def held_ns(self) -> int | None:
        """How long it was in the queue."""
        left_ns = self.entry.left_ns
        return None if left_ns is None else left_ns - self.entry.came_ns


class Cut(msgspec.Struct, frozen=True):
    """The last position that anybody had consumed when the message came there, and who; none: nobody had."""

    position: int
    process: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message; `position` is its place in the order of its view, if it has one.

    `cut` is there where messages are re-ordered as they wait to be consumed, and `point`, the first message
    that it overtook in a member's queue. `consumers` says who had consumed a message when this one came, of
    those that it let pass.
    """

    message: MessageId
    priority: int
    view: ToldView
    position: int | None
    waits: tuple[Waited, ...]
    cut: Cut | None
    point: MessageId | None
    consumers: dict[str, tuple[str, ...]]

    @property
    def overtaken(self) -> list[Entry]:
        """What it overtook anywhere, once each, by where it was met."""
        found = {entry.message: entry for waited in self.waits for entry in waited.overtaken}
        return list(found.values())


def find_message(run: RecordedRun, text: str) -> MessageId:
    """The message that a person named, or an error that lists some that there are."""
    match = _ID.fullmatch(text.strip())
    if match:
        sender = ProcessId(match["name"], int(match["incarnation"]))
        message = MessageId(sender, int(match["level"]), int(match["number"]))
        if run.rows_of(message):
            return message
    some = list(islice((message for row in run.rows(event=BROADCAST) for message in messages_of(row)), 1000))
    listed = ", ".join(map(str, some[:: -(-len(some) // _NAMED_MAX) or 1])) or "none"
    raise InvalidInput(
        f"there is no message {text!r} in the trace: a message is named by its sender's name and life, its "
        f"level and its number there; some that there are: {listed}"
    )


def find_worst(run: RecordedRun) -> MessageId:
    """The message that overtook the most less urgent ones, counted in all queues together."""
    counts = Counter[MessageId]()
    queues: list[Queue] = [*sending_queues(run)]
    for view in run.views.values():
        queues += queues_of(run, view)
    for queue in queues:
        for message, overtaken in queue.overtakings():
            counts[message] += overtaken
    if not counts:
        raise InvalidInput("no message of the trace was in any queue")
    return max(sorted(counts), key=counts.__getitem__)


def explain(run: RecordedRun, message: MessageId) -> Explanation:
    """What became of a message, and why."""
    rows = run.rows_of(message)
    delivered = [row for row in rows if row.event == DELIVERED]
    view = _view(run, delivered or rows)
    queues = [*sending_queues(run, str(message.sender)), *queues_of(run, view)]
    waits = [_waited(queue, entry) for queue in queues if (entry := queue.find(message)) is not None]
    at_members = [waited for waited in waits if waited.kind is Kind.MEMBER]
    places = _places(run, view) if at_members else {}
    row = next((row for row in rows if not is_named(row)), rows[0])
    here = [row for row in delivered if view_of(row) == view.name]
    return Explanation(
        message=message,
        priority=row.priorities[message.number - row.first] if row.priorities else row.level,
        view=view,
        position=here[0].position + message.number - here[0].first if here else None,
        waits=tuple(waits),
        cut=_cut(at_members, places) if at_members else None,
        point=_point(at_members, places),
        consumers=_consumers(at_members),
    )


def _view(run: RecordedRun, rows: Sequence[Row]) -> ToldView:
    """The view in which most of the rows are, and of several the last."""
    counts = Counter(view_of(row) for row in rows if view_of(row) in run.views)
    if not counts:
        raise InvalidInput(
            "nobody was told of the view that the message was in: the trace has lost its beginning"
        )
    return run.views[max(counts, key=lambda name: (counts[name], name))]


def _waited(queue: Queue, entry: Entry) -> Waited:
    before = queue.waiting_at(entry.came)
    after = sorted([*before, entry], key=lambda each: (each.left, each.came))
    return Waited(
        kind=queue.kind,
        process=queue.process,
        entry=entry,
        gone=tuple(queue.gone_by(entry.came)),
        before=tuple(before),
        after=tuple(after),
    )


def _places(run: RecordedRun, view: ToldView) -> dict[MessageId, int]:
    """The positions of a view's messages, as the first one has them who delivered them."""
    places: dict[MessageId, int] = {}
    for row in run.rows(event=DELIVERED, view=view.name[0], coordinator=view.name[1]):
        for position, message in enumerate(messages_of(row), row.position):
            places.setdefault(message, position)
    return places


def _cut(waits: Iterable[Waited], places: dict[MessageId, int]) -> Cut | None:
    """How far anybody had consumed; of several, the first by name."""
    reached = [
        (max(places[entry.message] for entry in waited.gone), waited.process)
        for waited in waits
        if waited.gone
    ]
    if not reached:
        return None
    position = max(place for place, _ in reached)
    return Cut(position, min(process for place, process in reached if place == position))


def _point(waits: Iterable[Waited], places: dict[MessageId, int]) -> MessageId | None:
    """The first of what it overtook; what nobody has consumed comes after all else."""
    overtaken = [entry.message for waited in waits for entry in waited.overtaken]
    return min(overtaken, key=lambda message: places.get(message, inf), default=None)


def _consumers(waits: Sequence[Waited]) -> dict[str, tuple[str, ...]]:
    passed = {entry.message for waited in waits for entry in waited.let_pass}
    gone = {waited.process: {entry.message for entry in waited.gone} for waited in waits}
    return {
        str(message): tuple(sorted(process for process, consumed in gone.items() if message in consumed))
        for message in sorted(passed)
    }
