"""The rows of a trace that a live run is judged and measured by, one type for each event."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from priocast.pipeline.live.agreed_positions import StreamName
from priocast.trace.schema import BROADCAST, DELIVERED, STOPPED, VIEW, ViewName

EVENTS = (BROADCAST, DELIVERED, VIEW, STOPPED)
COLUMNS = (
    "member",
    "incarnation",
    "view",
    "coordinator",
    "step",
    "time_ns",
    "event",
    "sender",
    "sender_incarnation",
    "level",
    "first",
    "count",
    "priorities",
    "position",
    "members",
    "order",
)
"""Of the tables `messages` and `group_events`; a row has no value in the columns of the other table."""


class _OfBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a batch: `count` messages of a stream, from the number `first` on."""

    process: str
    time_ns: int
    stream: StreamName
    first: int
    count: int
    priorities: bytes

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def by_priority(self) -> Iterator[tuple[int, int]]:
        """Each priority among the messages, and how many have it."""
        if not self.priorities:
            yield self.stream.level, self.count
            return
        for priority in sorted(set(self.priorities)):
            yield priority, self.priorities.count(priority)


class BroadcastRow(_OfBatch, frozen=True, kw_only=True):
    """The process broadcast the batch."""


class DeliveredRow(_OfBatch, frozen=True, kw_only=True):
    """The process delivered the batch, or a part of it, in a view; the first message at `position`."""

    view: ViewName
    position: int

    def part(self, first: int, last: int) -> "DeliveredRow":
        """The part with the numbers from `first` to `last`."""
        start, end = first - self.first, last + 1 - self.first
        return msgspec.structs.replace(
            self,
            first=first,
            count=end - start,
            priorities=self.priorities[start:end],
            position=self.position + start,
        )


class ViewRow(msgspec.Struct, frozen=True, kw_only=True):
    """The process received a view."""

    process: str
    time_ns: int
    view: ViewName
    members: tuple[str, ...]
    order: str


class StoppedRow(msgspec.Struct, frozen=True, kw_only=True):
    """The process is no longer in the group."""

    process: str
    time_ns: int


LiveRow = BroadcastRow | DeliveredRow | ViewRow | StoppedRow


def in_order(rows: Iterable[Mapping[str, Any]]) -> Iterator[LiveRow]:
    """Rows of one run: those of a process by their step."""
    for row in sorted(rows, key=lambda row: (row["member"], row["incarnation"], row["step"])):
        yield _typed(row)


def _typed(row: Mapping[str, Any]) -> LiveRow:
    process, time_ns, event = f"{row['member']}#{row['incarnation']}", row["time_ns"], row["event"]
    view = ViewName(row["view"], row["coordinator"])
    if event == VIEW:
        members = tuple(row["members"])
        return ViewRow(process=process, time_ns=time_ns, view=view, members=members, order=row["order"])
    if event == STOPPED:
        return StoppedRow(process=process, time_ns=time_ns)
    stream = StreamName(f"{row['sender']}#{row['sender_incarnation']}", row["level"])
    first, count, priorities = row["first"], row["count"], bytes(row["priorities"])
    if event == BROADCAST:
        return BroadcastRow(
            process=process, time_ns=time_ns, stream=stream, first=first, count=count, priorities=priorities
        )
    return DeliveredRow(
        process=process,
        time_ns=time_ns,
        stream=stream,
        first=first,
        count=count,
        priorities=priorities,
        view=view,
        position=row["position"],
    )
