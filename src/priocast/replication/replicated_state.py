"""The replicated state without any I/O: the application's state machine and the bookkeeping around it.

It is a function of the ordered stream alone: messages and views go in, what happened to commands comes out.
The bookkeeping (sessions, long commands, the time of the order) is part of the state that a joining member
receives.
"""

from priocast.core.decoding import UNREADABLE, decode
from priocast.core.errors import InvalidInput
from priocast.core.events import DeliveredBatch
from priocast.core.view import View
from priocast.log.entries import GenerationEntry, LogEntry, MessageEntry, ViewEntry, decode_entry
from priocast.replication.commands import (
    ERROR_LENGTH_MAX,
    ChangeVoter,
    Command,
    CommandId,
    LogReport,
    LogTip,
    NextSlot,
    Settle,
    Stored,
    decode_envelope,
)
from priocast.replication.happenings import CommandFinished, CommandSettled, Happened
from priocast.replication.lineage import Lineage
from priocast.replication.log_transfer import StateRecorder, base_of, check_continues, tail_since
from priocast.replication.saved_state import (
    SLOTTED_MAX,
    LogTail,
    SavedState,
    SlottedCommand,
    decode_state,
    encode_state,
)
from priocast.replication.session_table import SessionTable
from priocast.replication.sessions import UNFINISHED, Outcome, name_of
from priocast.replication.state_machine import Applied, Continue, FollowsViews, StateMachine

_Change = NextSlot | Settle | ChangeVoter
"""What changes the state, besides commands and the progress of disks."""
_CHANGING = (NextSlot, Settle, ChangeVoter)

_ENVIRONMENT_ERRORS = (OSError, MemoryError, RecursionError)


class ReplicatedState:
    """A state machine, and which commands it has applied.

    `view` is the last view of the stream. `awaits_state`: this member is new, and has not received the state
    of the others. `slotted` holds the long commands that are not finished; `slots_changed` says that one of
    them, or the view, has changed since the replica looked. `skipped` counts messages that are not of a
    replica: of a client, or of a program that broadcasts to the group directly.

    `index` counts what has changed the state: messages, views and generations; `index_to_sync` is the index
    that the disks must reach for an answer now. A *generation* begins when members found a group together and
    agree on the state that they begin with; `reports` has what each of them brings, until they have agreed,
    and is None from then on. `lineage` is the past of the state. The `recorder` is told of everything that
    changes the state, before it does.
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
        self.lineage = Lineage()
        self.index = self.index_to_sync = 0
        self.reports: dict[str, LogReport] | None = None
        self.recorder: StateRecorder | None = None
        self._position_next = self._position_base = 0
        self._names: frozenset[str] = frozenset()
        self._views_before_state: list[View] = []
        self._view_number = -1

    # The stream

    def on_message(self, batch: DeliveredBatch, index: int) -> Happened | None:
        """The message of a batch with this index was delivered; return what became of it."""
        try:
            envelope = decode_envelope(batch.payloads[index])
        except UNREADABLE:
            self.skipped += 1
            return None
        if isinstance(envelope, Command):
            return self._on_command(envelope, batch, index) if self.reports is None else None
        if isinstance(envelope, _CHANGING):
            return self._on_change(envelope, batch, index) if self.reports is None else None
        if isinstance(envelope, Stored) and self.reports is None:
            self._on_stored(envelope, batch, index)
        return envelope

    def _on_change(self, change: _Change, batch: DeliveredBatch, index: int) -> Happened | None:
        """Something that changes the state was delivered, and not a command."""
        self._record_message(batch, index)
        if isinstance(change, NextSlot):
            return self._on_slot(change, batch, index)
        if isinstance(change, Settle):
            is_own = change.id.session == change.request.session
            return CommandSettled(change.request, self.sessions.settle(change.id, is_own))
        return CommandSettled(change.request, self._change_voter(change))

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

    def begin_generation(self, generation: int, voters: tuple[str, ...], history: bytes) -> None:
        """The members have agreed on this state: views and positions are of a new group from here on."""
        self.lineage.begin(generation, self.index, voters, history)
        self._record(GenerationEntry(generation, history, voters))
        self.reports = None
        self._view_number = -1
        self._position_base = self._position_next
        if self.view is not None:
            self._enter(self.view)

    def replay(self, entry: LogEntry) -> None:
        """Repeat what an entry of the log has recorded."""
        match entry:
            case MessageEntry():
                self.on_message(_batch_of(entry), 0)
            case ViewEntry():
                self.on_view(entry.view, awaits_state=False)
            case GenerationEntry():
                self.view = None
                self.begin_generation(entry.generation, entry.voters, entry.history)

    def _record(self, entry: LogEntry) -> None:
        """Something changes the state, and answers from now on wait for it to be on disks."""
        self.index += 1
        self.index_to_sync = self.index
        if self.recorder is not None:
            self.recorder.on_entry(entry, True)

    def _record_message(self, batch: DeliveredBatch, index: int, is_awaited: bool = True) -> None:
        """A message changes the state. No answer waits for one that is not awaited to be on disks."""
        self.index += 1
        if is_awaited:
            self.index_to_sync = self.index
        if self.recorder is not None:
            self.recorder.on_entry(_entry_of(batch, index, self._view_number), is_awaited)

    def _on_stored(self, stored: Stored, batch: DeliveredBatch, index: int) -> None:
        """A member's disk has reached an index: every log shall know. No answer depends on that."""
        if self.lineage.acknowledge(stored.member, LogTip(stored.generation, stored.index)):
            self._record_message(batch, index, is_awaited=False)

    def _change_voter(self, change: ChangeVoter) -> Outcome:
        problem = self.lineage.change_voter(change.member, change.is_voter, self._names, self.index)
        return Outcome("failed", problem.encode()) if problem else Outcome("applied")

    def _enter(self, view: View) -> None:
        """Tell the state machine of a view, unless the state contains it: it may be of a later view."""
        if view.number > self._view_number:
            self._record(ViewEntry(self._position_next, view))
            self._view_number = view.number
            if isinstance(self.machine, FollowsViews):
                self.machine.on_view(view)

    def _on_command(self, command: Command, batch: DeliveredBatch, index: int) -> CommandFinished | None:
        self._record_message(batch, index)
        known = self.sessions.on_command(command.id, command.floor, self._names)
        if known is not None:
            return None if known == UNFINISHED else CommandFinished(command.id, known)
        return self._execute(command.id, command.body, 0, command.time_ns, batch, index)

    def _on_slot(self, due: NextSlot, batch: DeliveredBatch, index: int) -> CommandFinished | None:
        slotted = self.slotted.get(due.id)
        if slotted is None or slotted.slot != due.slot:
            return None
        return self._execute(due.id, slotted.body, due.slot, due.time_ns, batch, index)

    def _execute(
        self, command: CommandId, body: bytes, slot: int, time_ns: int, batch: DeliveredBatch, index: int
    ) -> CommandFinished | None:
        self.time_ns = max(self.time_ns, time_ns)
        position = self._position_base + batch.position + index
        self._position_next = position + 1
        priority = batch.priorities[index] if batch.priorities else batch.level
        at = Applied(position, command, batch.sender, priority, self.time_ns, slot)
        try:
            result = self.machine.apply(body, at)
        except _ENVIRONMENT_ERRORS:
            raise
        except Exception as error:
            outcome = _failed(f"{type(error).__name__}: {error}")
        else:
            if isinstance(result, bytes):
                outcome = Outcome("applied", result)
            elif self._continues(result, at):
                return None
            else:
                outcome = _failed(f"Overloaded: {SLOTTED_MAX} long commands are unfinished")
        if slot:
            del self.slotted[command]
        self.sessions.add(command, outcome)
        return CommandFinished(command, outcome)

    def _continues(self, result: Continue, at: Applied) -> bool:
        """A command has another slot, if there is room for it among the long ones."""
        if not isinstance(result, Continue):
            raise InvalidInput(f"apply must return bytes or Continue(...), not {type(result).__name__}")
        if at.id not in self.slotted and len(self.slotted) >= SLOTTED_MAX:
            return False
        self.slotted[at.id] = SlottedCommand(at.slot + 1, result.body, at.priority)
        self.sessions.add(at.id, UNFINISHED)
        self.slots_changed = True
        return True

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

    def save_agreed(self, bases: list[bytes]) -> bytes:
        """The state that this member begins with, for others that found the group and have these bases."""
        tails = [tail_since(base, self.lineage, self.index, self.recorder) for base in bases]
        found = [tail for tail in tails if tail is not None]
        if found and len(found) == len(bases):
            return encode_state(min(found, key=lambda tail: tail.first))
        return self._save(None)

    def _save(self, reports: list[LogReport] | None) -> bytes:
        return encode_state(
            SavedState(
                self._view_number + 1,
                (self._position_base, self._position_next),
                self.lineage,
                self.index,
                tuple(sorted(self._names)),
                reports,
                self.time_ns,
                self.sessions.sessions,
                list(self.slotted.items()),
                self.machine.snapshot(),
            )
        )

    @property
    def base(self) -> bytes:
        """What this replica has of the state, for the members that it asks for the rest."""
        return base_of(self.lineage, self.index)

    def save_since(self, base: bytes) -> bytes:
        """What a member lacks that has `base`: the entries since then if they are there, else all."""
        if self.reports is None and (tail := tail_since(base, self.lineage, self.index, self.recorder)):
            return encode_state(tail)
        return self.save()

    def load(self, data: bytes) -> None:
        """Take over the state of another replica, and enter the views that it does not contain."""
        saved = decode_state(data)
        if isinstance(saved, LogTail):
            self._catch_up(saved)
        elif saved.reports is not None:
            self._join_founders(saved.reports)
            return
        else:
            self._replace(saved, data)
        self.awaits_state = False
        self.slots_changed = True
        views, self._views_before_state = self._views_before_state, []
        for view in views:
            self._enter(view)

    def _catch_up(self, tail: LogTail) -> None:
        """Apply the entries that this replica lacks."""
        view, names = self.view, self._names
        self.awaits_state = False
        self.reports = None
        for body in tail.entries[self.index - tail.first :]:
            self.replay(decode(decode_entry, body, "another replica", "an entry"))
        if view is not None:
            self.view, self._names = view, names

    def _replace(self, saved: SavedState, data: bytes) -> None:
        """The state is that of another replica from now on."""
        check_continues(self.lineage, saved.lineage, saved.index)
        if self.recorder is not None:
            self.recorder.on_state(saved.index, data)
        self.machine.restore(saved.machine)
        self.sessions = SessionTable(saved.sessions)
        self.slotted = dict(saved.slotted)
        self.time_ns = saved.time_ns
        self._view_number = saved.views_before - 1
        self._position_base, self._position_next = saved.positions
        self.lineage = saved.lineage
        self.index = self.index_to_sync = saved.index
        self._names = self._names or frozenset(saved.names)
        self.reports = None

    def _join_founders(self, reports: list[LogReport]) -> None:
        """The others have not agreed yet on what they begin with: this member keeps what it has."""
        self.reports = {report.member: report for report in reports}
        self.awaits_state = False
        self._views_before_state = []


def _failed(text: str) -> Outcome:
    return Outcome("failed", text[:ERROR_LENGTH_MAX].encode(errors="replace"))


def _entry_of(batch: DeliveredBatch, index: int, view_number: int) -> MessageEntry:
    return MessageEntry(
        batch.position + index,
        max(view_number, 0),
        batch.sender,
        batch.level,
        batch.first + index,
        batch.priority_of(index),
        batch.payloads[index],
    )


def _batch_of(entry: MessageEntry) -> DeliveredBatch:
    """The message of an entry as it was delivered."""
    priorities = bytes([entry.priority])
    return DeliveredBatch(
        entry.sender, entry.level, entry.number, entry.position, [entry.payload], priorities
    )
