"""Integrity: a message is delivered at most once, only if it was broadcast, and as it was broadcast."""

from priocast.core.guarantees import INTEGRITY
from priocast.core.message import Message
from priocast.simulation.checkers.checker import Checker, Key, Report, keys_of, name_of
from priocast.simulation.workload import payload_of
from priocast.trace.schema import Row


class Integrity(Checker):
    """Remembers what was broadcast, and what each member delivered."""

    PROPERTY = INTEGRITY

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._broadcast: set[Key] = set()
        self._delivered: dict[str, set[Key]] = {}

    def on_broadcast(self, row: Row) -> None:
        for key in keys_of(row):
            if key in self._broadcast or row.member != row.sender:
                text = f"{row.member} broadcasts {name_of(key)}, a name that is taken or not its own"
                self.violated(text, row.time_ns, messages=[key], members=[row.member])
            self._broadcast.add(key)

    def on_delivered(self, row: Row) -> None:
        delivered = self._delivered.setdefault(row.member, set())
        for position, key in enumerate(keys_of(row), row.position):
            wrong = None
            if key not in self._broadcast:
                wrong = "which was never broadcast"
            elif key in delivered:
                wrong = "a second time"
            if wrong:
                text = f"{row.member} delivers {name_of(key)}, {wrong}"
                self.violated(text, row.time_ns, position=position, messages=[key], members=[row.member])
            delivered.add(key)

    def on_message(self, member: str, message: Message, position: int, now: int) -> None:
        """The application has the message in hand."""
        if message.payload != payload_of(message.id, message.priority, len(message.payload)):
            key = (message.sender.name, message.sender.incarnation, message.level, message.number)
            text = f"{member} delivers {name_of(key)} with a payload or priority that is not its own"
            self.violated(text, now, position=position, messages=[key], members=[member])
