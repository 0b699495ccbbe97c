"""Integrity: a message is delivered at most once, only if it was broadcast, unchanged, and by its recipients.

The same holds for the planned broadcast that a message carries. It may be broadcast again under another
message id, by a later incarnation of its process or by another member for a client. An application that has
applied it, or has taken it over with a state, must not get it again.
"""

from priocast.core.guarantees import INTEGRITY
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.rows import (
    Key,
    is_addressed_to,
    keys_of,
    message_name,
    process_of,
    sender_of,
    view_of,
)
from priocast.simulation.workload import CLIENT, name_in, owner_of, payload_of
from priocast.trace.schema import MessageRow


class Integrity(Checker):
    """Remembers what was broadcast, and what each incarnation delivered."""

    GUARANTEE = INTEGRITY

    def __init__(self, report: ReportViolation) -> None:
        super().__init__(report)
        self._broadcast: set[Key] = set()
        self._delivered: dict[str, set[Key]] = {}
        self._planned_of: dict[Key, str] = {}

    def on_broadcast(self, row: MessageRow) -> None:
        process = process_of(row)
        for key in keys_of(row):
            if key in self._broadcast or process != sender_of(row):
                summary = f"{process} broadcasts {message_name(key)}, an id that is taken or not its own"
                self.violated(summary, row.time_ns, messages=[key], members=[process])
            self._broadcast.add(key)

    def on_delivered(self, row: MessageRow) -> None:
        process = process_of(row)
        delivered = self._delivered.setdefault(process, set())
        for position, key in enumerate(keys_of(row), row.position):
            wrong = None
            if key not in self._broadcast:
                wrong = "which was never broadcast"
            elif key in delivered:
                wrong = "a second time"
            elif not is_addressed_to(row.to, row.member):
                wrong = "which is not addressed to it"
            if wrong:
                self.violated(
                    f"{process} delivers {message_name(key)}, {wrong}",
                    row.time_ns,
                    view=view_of(row),
                    position=position,
                    messages=[key],
                    members=[process],
                )
            delivered.add(key)

    def on_message(
        self, me: ProcessId, message: Message, position: int, state: ApplicationState, now: int
    ) -> None:
        """An application is about to apply a message to this state."""
        key = (message.sender.name, message.sender.incarnation, message.level, message.number)
        planned = name_in(message.payload)
        expected = CLIENT if message.scope.client else message.sender.name
        wrong = None
        if owner_of(planned) != expected or message.payload != payload_of(
            planned, message.priority, len(message.payload)
        ):
            wrong = "with a payload or priority that is not its own"
        elif self._planned_of.setdefault(key, planned) != planned:
            wrong = f"with the payload of {planned}, elsewhere it has {self._planned_of[key]}"
        elif planned in state.applied:
            wrong = f"which applies {planned} a second time"
        if wrong:
            summary = f"{me} delivers {message_name(key)} {wrong}"
            self.violated(summary, now, position=position, messages=[key], members=[str(me)])
