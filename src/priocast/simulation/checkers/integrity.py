"""Integrity: a message is delivered at most once, only if it was broadcast, as it was, and by whom it is for.

The same holds for what a message is about, the wish that it fulfils: a wish may be broadcast again under
another name, when the life that broadcast it is over or when a client asks again. No application that has it
fulfilled in its state, be it by a message or with a state that it took over, gets it again.
"""

from priocast.core.guarantees import INTEGRITY
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.simulation.application import State
from priocast.simulation.checkers.checker import Checker, Key, Report, keys_of, name_of, process_of
from priocast.simulation.workload import CLIENT, name_in, payload_of
from priocast.trace.schema import MessageRow


class Integrity(Checker):
    """Remembers what was broadcast, and what each life delivered."""

    PROPERTY = INTEGRITY

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._broadcast: set[Key] = set()
        self._delivered: dict[str, set[Key]] = {}
        self._wish_of: dict[Key, str] = {}

    def on_broadcast(self, row: MessageRow) -> None:
        for key in keys_of(row):
            own = (row.member, row.incarnation) == (row.sender, row.sender_incarnation)
            if key in self._broadcast or not own:
                text = f"{process_of(row)} broadcasts {name_of(key)}, a name that is taken or not its own"
                self.violated(text, row.time_ns, messages=[key], members=[process_of(row)])
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
            elif row.to and row.member not in row.to.split(","):
                wrong = "which is not for it"
            if wrong:
                text = f"{process} delivers {name_of(key)}, {wrong}"
                self.violated(text, row.time_ns, position=position, messages=[key], members=[process])
            delivered.add(key)

    def on_message(self, me: ProcessId, message: Message, position: int, state: State, now: int) -> None:
        """The application has the message in hand."""
        key = (message.sender.name, message.sender.incarnation, message.level, message.number)
        wish = name_in(message.payload)
        owner = wish.partition(".")[0]
        expected = CLIENT if message.scope.client else message.sender.name
        wrong = None
        if owner != expected or message.payload != payload_of(wish, message.priority, len(message.payload)):
            wrong = "with a payload or priority that is not its own"
        elif self._wish_of.setdefault(key, wish) != wish:
            wrong = f"with the payload of {wish}, elsewhere it has {self._wish_of[key]}"
        elif wish in state.wishes:
            wrong = f"which fulfils {wish} a second time"
        if wrong:
            text = f"{me} delivers {name_of(key)} {wrong}"
            self.violated(text, now, position=position, messages=[key], members=[str(me)])
