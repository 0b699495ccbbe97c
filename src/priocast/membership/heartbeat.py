"""Signs of life: to whom, and how often.

Everybody who can be reached is told regularly where this member stands. Other traffic is a sign of life as
good as any, so where there is some and nothing is new, most of them are left out. Whoever has never answered
is told less often: it may be in other groups only.
"""

import msgspec

from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.packets import Heartbeat

_CONTACTS_MAX = 4 * MEMBERS_MAX
_LEFT_OUT_MAX = 2
_UNANSWERED_MAX = 50
_UNANSWERED_EVERY = 16
_NEVER = -(1 << 62)


class _Contact:
    """A process that can be reached by its name, and what it was told last."""

    __slots__ = ("answered", "left_out", "spoke_at", "told", "unanswered")

    def __init__(self) -> None:
        self.answered = False
        self.unanswered = 0
        self.told: Heartbeat | None = None
        self.left_out = 0
        self.spoke_at = _NEVER


class HeartbeatSchedule:
    """Whom to tell that this member is alive; `due_at` is when."""

    def __init__(self, options: MembershipOptions, now: int) -> None:
        self.due_at = now
        self._interval_ns = options.heartbeat_ns
        self._contacts: dict[str, _Contact] = {}

    def meet(self, name: str, now: int) -> None:
        """A process of this name can be reached, perhaps a new life of it: tell it soon."""
        self._contacts.pop(name, None)
        self._contacts[name] = _Contact()
        self.due_at = now
        if len(self._contacts) > _CONTACTS_MAX:
            silent = (name for name, contact in self._contacts.items() if not contact.answered)
            del self._contacts[next(silent, next(iter(self._contacts)))]

    def hear_of(self, name: str, now: int) -> None:
        """Another process knows one of this name."""
        if name not in self._contacts:
            self.meet(name, now)

    def heard(self, name: str) -> None:
        """Something came from a process."""
        contact = self._contacts.get(name)
        if contact is not None:
            contact.answered = True

    def spoke(self, name: str, now: int) -> None:
        """Frames were sent to a process."""
        contact = self._contacts.get(name)
        if contact is not None:
            contact.spoke_at = now

    def say(self, alive: Heartbeat, now: int) -> list[str]:
        """Whom to tell this now."""
        self.due_at = now + self._interval_ns
        news = msgspec.structs.replace(alive, received=())
        return [name for name, contact in self._contacts.items() if self._is_told(contact, news, now)]

    def _is_told(self, contact: _Contact, news: Heartbeat, now: int) -> bool:
        if not contact.answered:
            contact.unanswered += 1
            if contact.unanswered > _UNANSWERED_MAX and contact.unanswered % _UNANSWERED_EVERY:
                return False
        elif now - contact.spoke_at < self._interval_ns and contact.told == news:
            contact.left_out += 1
            if contact.left_out <= _LEFT_OUT_MAX:
                return False
        contact.told, contact.left_out = news, 0
        return True
