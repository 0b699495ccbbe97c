"""The schedule of heartbeats: to whom a member sends them, and how often.

Every process that can be reached gets this member's heartbeat regularly. Other traffic shows just as well
that the member is alive, so most heartbeats are skipped where there is traffic and nothing is new. A
process that has never answered gets fewer of them: it may be in other groups only.
"""

from collections.abc import Sequence

import msgspec

from priocast.core.identity import ProcessId
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.packets import Heartbeat

_CONTACTS_MAX = 4 * MEMBERS_MAX
_SKIPPED_MAX = 2
_UNANSWERED_MAX = 50
_UNANSWERED_EVERY = 16
_NEVER = -(1 << 62)


class _Contact:
    """A process that can be reached by its name, and the last heartbeat that it was sent."""

    __slots__ = ("answered", "last", "skipped", "unanswered")

    def __init__(self) -> None:
        self.answered = False
        self.unanswered = 0
        self.last: Heartbeat | None = None
        self.skipped = 0


class HeartbeatSchedule:
    """To whom to send the next heartbeat; `due_at` is when.

    `sent_at` is when frames were sent last to each of these processes: they show that this member is alive.
    """

    def __init__(self, options: MembershipOptions, now: int) -> None:
        self.due_at = now
        self.sent_at: dict[str, int] = {}
        self._interval_ns = options.heartbeat_ns
        self._contacts: dict[str, _Contact] = {}
        self._news: Heartbeat | None = None

    def meet(self, name: str, now: int) -> None:
        """A process of this name can be reached, perhaps a new incarnation: send it a heartbeat soon."""
        self._contacts.pop(name, None)
        self._contacts[name] = _Contact()
        self.sent_at[name] = _NEVER
        self.due_at = now
        if len(self._contacts) > _CONTACTS_MAX:
            silent = (name for name, contact in self._contacts.items() if not contact.answered)
            dropped = next(silent, next(iter(self._contacts)))
            del self._contacts[dropped], self.sent_at[dropped]

    def hear_of(self, processes: Sequence[ProcessId], me: ProcessId, now: int) -> None:
        """Another process knows these processes, one of which may be this member."""
        for process in processes:
            if process.name not in self._contacts and process.name != me.name:
                self.meet(process.name, now)

    def on_answer(self, name: str) -> None:
        """A heartbeat came from a process."""
        contact = self._contacts.get(name)
        if contact is not None:
            contact.answered = True

    def is_due(self, hears: tuple[ProcessId, ...], now: int) -> bool:
        """Whether to send a heartbeat now, because it is time, or this member hears other processes."""
        return now >= self.due_at or self._news is None or self._news.hears != hears

    def recipients(self, heartbeat: Heartbeat, now: int) -> list[str]:
        """To whom to send this heartbeat now."""
        self.due_at = now + self._interval_ns
        news = msgspec.structs.replace(heartbeat, received=())
        if news == self._news:
            news = self._news
        self._news = news
        return [name for name in self._contacts if self._is_recipient(name, news, now)]

    def _is_recipient(self, name: str, news: Heartbeat, now: int) -> bool:
        contact = self._contacts[name]
        if not contact.answered:
            contact.unanswered += 1
            if contact.unanswered > _UNANSWERED_MAX and contact.unanswered % _UNANSWERED_EVERY:
                return False
        elif now - self.sent_at[name] < self._interval_ns and contact.last is news:
            contact.skipped += 1
            if contact.skipped <= _SKIPPED_MAX:
                return False
        contact.last, contact.skipped = news, 0
        return True
