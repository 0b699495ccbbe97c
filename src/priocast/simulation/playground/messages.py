"""Follows every message of a run, from its broadcast to its deliveries, and counts whom it overtook."""

from collections import Counter, defaultdict, deque

import msgspec

from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import DepartureEvent, Key, ViewEvent, keys_of, name_of
from priocast.trace.schema import MessageRow

_DELIVERED_KEPT = 40
_EVENTS_KEPT = 30
_NEWS_MAX = 500


class FollowedMessage(msgspec.Struct):
    """A message: its sender with a number, its priority, when it was broadcast, and whom it overtook.

    `overtook` counts the less urgent messages that had been broadcast before and were not delivered anywhere
    when this one was delivered first.
    """

    name: str
    priority: int
    broadcast_ns: int
    delivered_ns: int = -1
    overtook: int = 0


class MessageFollower(Checker):
    """What a page shows of the messages.

    `delivered` are the last ones of each process and `delivered_count` counts them all. `undelivered` are
    those of a process that its own application has not received. `overtaking` is the last of the most urgent
    messages that overtook others.
    """

    def __init__(self, report: ReportViolation) -> None:
        super().__init__(report)
        self.delivered: dict[str, deque[FollowedMessage]] = defaultdict(lambda: deque(maxlen=_DELIVERED_KEPT))
        self.delivered_count: Counter[str] = Counter()
        self.undelivered: dict[str, dict[Key, FollowedMessage]] = defaultdict(dict)
        self.events: deque[tuple[int, str]] = deque(maxlen=_EVENTS_KEPT)
        self.overtaking: FollowedMessage | None = None
        self._news: deque[FollowedMessage] = deque(maxlen=_NEWS_MAX)
        self._messages: dict[Key, FollowedMessage] = {}
        self._in_flight: dict[Key, FollowedMessage] = {}
        self._numbers: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._views: set[tuple[int, str]] = set()

    def on_broadcast(self, row: MessageRow) -> None:
        for index, key in enumerate(keys_of(row)):
            priority = row.priorities[index] if row.priorities else row.level
            self._numbers[row.sender] += 1
            message = FollowedMessage(f"{row.sender}{self._numbers[row.sender]}", priority, row.time_ns)
            self._messages[key] = self._in_flight[key] = self.undelivered[row.sender][key] = message

    def on_delivered(self, row: MessageRow) -> None:
        self.delivered_count[row.member] += row.count
        for key in keys_of(row):
            message = self._messages[key]
            if key in self._in_flight:
                self._on_first_delivery(key, message, row.time_ns)
            self.delivered[row.member].append(message)
            if row.member == row.sender:
                self.undelivered[row.member].pop(key, None)

    def _on_first_delivery(self, key: Key, message: FollowedMessage, now: int) -> None:
        for other, earlier in self._in_flight.items():  # in the order of their broadcasts
            if other == key:
                break
            is_lost = f"{other[0]}#{other[1]}" in self._ended
            message.overtook += earlier.priority < message.priority and not is_lost
        del self._in_flight[key]
        message.delivered_ns = now
        self._news.append(message)
        if message.overtook and (not self.overtaking or message.priority >= self.overtaking.priority):
            self.overtaking = message

    def on_view(self, event: ViewEvent) -> None:
        if event.view not in self._views:
            self._views.add(event.view)
            members = " ".join(map(name_of, event.members))
            self.tell(event.time_ns, f"view {event.view[0]}: {members} ({event.reason})")

    def on_departure(self, event: DepartureEvent) -> None:
        self.forget(event.process)

    def tell(self, time_ns: int, text: str) -> None:
        """Something happened that a page mentions."""
        self.events.append((time_ns, text))

    def forget(self, process: str) -> None:
        """An incarnation has ended: what only it knew is lost, or the next one broadcasts it again."""
        self._ended.add(process)
        self.undelivered[name_of(process)].clear()

    def take_news(self) -> list[FollowedMessage]:
        """The first deliveries since the last call."""
        news = list(self._news)
        self._news.clear()
        return news
