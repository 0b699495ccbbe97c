"""The replicated state without any I/O: the application's state machine and the bookkeeping around it.

It is a function of the ordered stream alone: messages and views go in, what happened to commands comes out.
The bookkeeping (sessions, long commands, the time of the order) is part of the state that a joining member
receives.
"""

from typing import Protocol

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, InvalidInput
from priocast.core.message import Message
from priocast.core.view import View
from priocast.log.entries import GenerationEntry, LogEntry, MessageEntry, ViewEntry
from priocast.replication.commands import (
    ERROR_LENGTH_MAX,
    Answer,
    Barrier,
    Command,
    CommandId,
    LogReport,
    NextSlot,
    Question,
    Refill,
    Settle,
    Stored,
    decode_envelope,
)
from priocast.replication.saved_state import (
    SLOTTED_MAX,
    SavedState,
    SlottedCommand,
    decode_state,
    encode_state,
)
from priocast.replication.sessions import UNFINISHED, Outcome, SessionTable, name_of
from priocast.replication.state_machine import Applied, Continue, FollowsViews, StateMachine

_ENVIRONMENT_ERRORS = (OSError, MemoryError, RecursionError)


class CommandFinished(msgspec.Struct, frozen=True, gc=False):
    """A command has its final outcome, or a repetition of it was skipped."""

    id: CommandId
    outcome: Outcome


class CommandSettled(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Settle`: what became of a command."""

    request: CommandId
    outcome: Outcome


Happened = CommandFinished | CommandSettled | Barrier | Question | Answer | LogReport | Refill | Stored


class StateRecorder(Protocol):
    """Keeps what changes a replicated state."""

    def on_entry(self, entry: LogEntry) -> None:
        """This changes the state now."""

    def on_state(self, index: int, data: bytes) -> None:
        """The state is replaced by one of another replica: that before the entry with this index."""


class ReplicatedState:
    """A state machine, and which commands it has applied.

    `view` is the last view of the stream. `awaits_state`: this member is new, and has not received the state
    of the others. `slotted` holds the long commands that are not finished; `slots_changed` says that one of
    them, or the view, has changed since the replica looked. `skipped` counts messages that are not of a
    replica: of a client, or of a program that broadcasts to the group directly.

    `index` counts what has changed the state: messages, views and generations. A *generation* begins when
    members found a group together and agree on the state that they begin with; `reports` has what each of
    them brings, until they have agreed, and is None from then on. `voters` are the members whose disks count.
    The `recorder` is told of everything that changes the state, before it does.
    """

    def __init__(self, machine: StateMachine) -> None:
        self.machine = machine
        self.sessions = SessionTable()
        self.slotted: dict[CommandId, SlottedCommand] = {}
        self.view: View | None = None
        self.time_ns = 0
        self.skipped = 0
        self.awaits_state = False
        self.slots_changed = False
        self.generation = 0
        self.index = 0
        self.voters: tuple[str, ...] = ()
        self.reports: dict[str, LogReport] | None = None
        self.recorder: StateRecorder | None = None
        self._position_next = self._position_base = 0
        self._names: frozenset[str] = frozenset()
        self._views_before_state: list[View] = []
        self._view_number = -1

    # The stream

    def on_message(self, message: Message, position: int) -> Happened | None:
        """A message was delivered; return what became of it."""
        try:
            envelope = decode(decode_envelope, message.payload, message.sender, "a command")
        except ForeignFrame:
            self.skipped += 1
            return None
        if isinstance(envelope, Command | NextSlot | Settle):
            if self.reports is not None:
                return None
            self.index += 1
            if self.recorder is not None:
                self.recorder.on_entry(_entry_of(message, position, self._view_number))
        match envelope:
            case Command():
                return self._on_command(envelope, message, position)
            case NextSlot():
                return self._on_slot(envelope, message, position)
            case Settle():
                is_own = envelope.id.session == envelope.request.session
                return CommandSettled(envelope.request, self.sessions.settle(envelope.id, is_own))
        return envelope

    def on_view(self, view: View, awaits_state: bool) -> None:
        """A view begins. `awaits_state`: this member is new, and receives the state of the others later."""
        self.view = view
        self._names = frozenset(member.name for member in view.members)
        self.slots_changed = True
        self.awaits_state |= awaits_state
        if self.awaits_state:
            self._views_before_state.append(view)
        elif self.reports is None:
            self._enter(view)

    def begin_generation(self, generation: int, voters: tuple[str, ...]) -> None:
        """The members have agreed on this state: views and positions are of a new group from here on."""
        self._record(GenerationEntry(generation, voters))
        self.generation, self.voters, self.reports = generation, voters, None
        self._view_number = -1
        self._position_base = self._position_next
        if self.view is not None:
            self._enter(self.view)

    def replay(self, entry: LogEntry) -> None:
        """Repeat what an entry of the log has recorded."""
        match entry:
            case MessageEntry():
                message = Message(entry.sender, entry.level, entry.number, entry.priority, entry.payload)
                self.on_message(message, entry.position)
            case ViewEntry():
                self.on_view(entry.view, awaits_state=False)
            case GenerationEntry():
                self.view = None
                self.begin_generation(entry.generation, entry.voters)

    def _record(self, entry: LogEntry) -> None:
        self.index += 1
        if self.recorder is not None:
            self.recorder.on_entry(entry)

    def _enter(self, view: View) -> None:
        """Tell the state machine of a view, unless the state contains it: it may be of a later view."""
        if view.number > self._view_number:
            self._record(ViewEntry(self._position_next, view))
            self._view_number = view.number
            if isinstance(self.machine, FollowsViews):
                self.machine.on_view(view)

    def _on_command(self, command: Command, message: Message, position: int) -> CommandFinished | None:
        known = self.sessions.on_command(command.id, command.floor, self._names)
        if known is not None:
            return None if known == UNFINISHED else CommandFinished(command.id, known)
        return self._execute(command.id, command.body, 0, command.time_ns, message, position)

    def _on_slot(self, due: NextSlot, message: Message, position: int) -> CommandFinished | None:
        slotted = self.slotted.get(due.id)
        if slotted is None or slotted.slot != due.slot:
            return None
        return self._execute(due.id, slotted.body, due.slot, due.time_ns, message, position)

    def _execute(
        self, command: CommandId, body: bytes, slot: int, time_ns: int, message: Message, position: int
    ) -> CommandFinished | None:
        self.time_ns = max(self.time_ns, time_ns)
        position += self._position_base
        self._position_next = position + 1
        at = Applied(position, command, message.sender, message.priority, self.time_ns, slot)
        outcome = self._outcome_of(body, at)
        if isinstance(outcome, Continue):
            self.slotted[command] = SlottedCommand(slot + 1, outcome.body, message.priority)
            self.sessions.add(command, UNFINISHED)
            self.slots_changed = True
            return None
        self.slotted.pop(command, None)
        self.sessions.add(command, outcome)
        return CommandFinished(command, outcome)

    def _outcome_of(self, body: bytes, at: Applied) -> Outcome | Continue:
        try:
            result = self.machine.apply(body, at)
        except _ENVIRONMENT_ERRORS:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX]
            return Outcome("failed", text.encode(errors="replace"))
        if not isinstance(result, bytes | Continue):
            raise InvalidInput(f"apply must return bytes or Continue(...), not {type(result).__name__}")
        if isinstance(result, Continue) and at.id not in self.slotted and len(self.slotted) >= SLOTTED_MAX:
            return Outcome("failed", f"Overloaded: {SLOTTED_MAX} long commands are unfinished".encode())
        return result if isinstance(result, Continue) else Outcome("applied", result)

    def slots_due(self, me: str) -> list[tuple[CommandId, SlottedCommand]]:
        """The long commands whose next slot this process asks for.

        It asks for those that it submitted, and the coordinator for those whose submitter is not in the view.
        """
        if not self.slotted or self.view is None:
            return []
        others = self.view.coordinator.name == me
        return [
            (command, slotted)
            for command, slotted in self.slotted.items()
            if name_of(command.session) == me or (others and name_of(command.session) not in self._names)
        ]

    # State transfer

    def save(self) -> bytes:
        """The state after everything that was delivered so far, for a member that joins."""
        return self._save(None if self.reports is None else list(self.reports.values()))

    def save_agreed(self) -> bytes:
        """The state that this member begins with, for the others that found the group."""
        return self._save(None)

    def _save(self, reports: list[LogReport] | None) -> bytes:
        return encode_state(
            SavedState(
                self._view_number + 1,
                (self._position_base, self._position_next),
                self.generation,
                self.index,
                self.voters,
                tuple(sorted(self._names)),
                reports,
                self.time_ns,
                self.sessions.sessions,
                list(self.slotted.items()),
                self.machine.snapshot(),
            )
        )

    def load(self, data: bytes) -> None:
        """Replace the state by that of another replica, and enter the views that it does not contain."""
        saved = decode_state(data)
        if saved.reports is not None:
            self._join_founders(saved.reports)
            return
        if self.recorder is not None:
            self.recorder.on_state(saved.index, data)
        self.machine.restore(saved.machine)
        self.sessions = SessionTable(saved.sessions)
        self.slotted = dict(saved.slotted)
        self.time_ns = saved.time_ns
        self._view_number = saved.views_before - 1
        self._position_base, self._position_next = saved.positions
        self.generation, self.index, self.voters = saved.generation, saved.index, saved.voters
        self._names = self._names or frozenset(saved.names)
        self.reports = None
        self.awaits_state = False
        self.slots_changed = True
        views, self._views_before_state = self._views_before_state, []
        for view in views:
            self._enter(view)

    def _join_founders(self, reports: list[LogReport]) -> None:
        """The others have not agreed yet on what they begin with: this member keeps what it has."""
        self.reports = {report.member: report for report in reports}
        self.awaits_state = False
        self._views_before_state = []


def _entry_of(message: Message, position: int, view_number: int) -> MessageEntry:
    return MessageEntry(
        position,
        max(view_number, 0),
        message.sender,
        message.level,
        message.number,
        message.priority,
        message.payload,
    )
