"""The replicated state as a function of the stream: commands, slots, views, and snapshots of it."""

from typing import Any

import msgspec

from priocast.core.events import DeliveredBatch
from priocast.core.identity import ProcessId
from priocast.core.priority import ROUTINE
from priocast.core.view import View
from priocast.replication.commands import Command, CommandId, NextSlot, Settle, encode_envelope
from priocast.replication.happenings import CommandFinished, CommandSettled, Happened
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.sessions import Outcome
from priocast.replication.state_machine import Applied
from replication.notes import Notes

A, B, C = (ProcessId(name) for name in "abc")


class Roll(Notes):
    """Notes that also record the views."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[Applied] = []

    def apply(self, command: bytes, at: Applied) -> Any:
        self.at.append(at)
        return super().apply(command, at)

    def on_view(self, view: View) -> None:
        self.lines.append("view " + "".join(member.name for member in view.members))


class Fed:
    """A replicated state that is fed with envelopes, at consecutive positions."""

    def __init__(self, *members: ProcessId) -> None:
        self.machine = Roll()
        self.state = ReplicatedState(self.machine)
        self.position = 0
        if members:
            self.state.on_view(View(1, members), awaits_state=False)

    def give(self, envelope: msgspec.Struct, sender: ProcessId = A) -> Happened | None:
        batch = DeliveredBatch(
            sender, ROUTINE, self.position, self.position, [encode_envelope(envelope)], b""
        )
        self.position += 1
        return self.state.on_message(batch, 0)

    def command(self, number: int, body: bytes, time_ns: int = 0, floor: int = 0) -> Happened | None:
        return self.give(Command(CommandId("a#1", number), floor, time_ns, body))


def test_a_command_is_applied_once_and_its_repetition_has_the_same_outcome() -> None:
    fed = Fed(A)
    first = fed.command(0, b"x")
    assert first == CommandFinished(CommandId("a#1", 0), Outcome("applied", b"2"))
    assert fed.command(0, b"x") == first
    assert fed.machine.lines == ["view a", "x"]


def test_the_time_of_the_order_never_goes_back() -> None:
    fed = Fed(A)
    for number, time_ns in enumerate([50, 30, 70]):
        fed.command(number, b"x", time_ns)
    assert [at.time_ns for at in fed.machine.at] == [50, 50, 70]
    assert len({at.seed for at in fed.machine.at}) == 3


def test_slots_are_executed_one_by_one_and_each_once() -> None:
    fed = Fed(A, B)
    command = CommandId("a#1", 0)
    assert fed.command(0, b"long 3") is None
    assert fed.give(NextSlot(command, 2, 0)) is None, "that is not the next one"
    assert fed.command(0, b"long 3") is None, "a repetition does not begin again"
    assert fed.give(NextSlot(command, 1, 0)) is None
    assert fed.give(NextSlot(command, 1, 0)) is None, "it was executed"
    finished = fed.give(NextSlot(command, 2, 0))
    assert finished == CommandFinished(command, Outcome("applied", b"4"))
    assert fed.machine.lines == ["view ab", "long 3", "long 2", "long 1"]
    assert [at.slot for at in fed.machine.at] == [0, 1, 2]
    assert not fed.state.slotted


def test_the_submitter_asks_for_the_next_slot_and_the_coordinator_if_it_is_gone() -> None:
    fed = Fed(B, A)
    fed.command(0, b"long 3")
    assert [len(fed.state.slots_due(name)) for name in "ab"] == [1, 0]
    fed.state.on_view(View(2, (B, C)), awaits_state=False)
    assert [len(fed.state.slots_due(name)) for name in "abc"] == [1, 1, 0]


def test_a_settlement_tells_what_became_of_a_command() -> None:
    fed = Fed(A)
    request = CommandId("b#1", 0)
    fed.command(0, b"x")
    known = fed.give(Settle(CommandId("a#1", 0), request))
    assert known == CommandSettled(request, Outcome("applied", b"2"))
    assert fed.give(Settle(CommandId("a#1", 1), request)) == CommandSettled(request, Outcome("void"))
    assert fed.command(1, b"y") == CommandFinished(CommandId("a#1", 1), Outcome("void"))
    assert fed.machine.lines == ["view a", "x"]


def test_a_state_that_was_loaded_goes_on_like_the_one_that_was_saved() -> None:
    fed, other = Fed(A, B), Fed()
    fed.command(0, b"long 2", 90)
    other.state.on_view(View(1, (A, B)), awaits_state=True)
    other.state.load(fed.state.save())
    other.position = fed.position
    for each in (fed, other):
        each.give(NextSlot(CommandId("a#1", 0), 1, 0))
        each.command(0, b"long 2")
        each.command(1, b"x", 10)
    assert fed.machine.lines == other.machine.lines == ["view ab", "long 2", "long 1", "x"]
    assert fed.state.save() == other.state.save()
    assert other.machine.at[-1].time_ns == 90


def test_views_that_the_loaded_state_does_not_contain_are_entered_and_no_other() -> None:
    """A snapshot and a view may have the same position: the snapshot may be from before or after the view."""
    views = [View(number, (A, B)) for number in (1, 2, 3)]
    for contained in (1, 2, 3):
        donor, joiner = Fed(), Fed()
        for view in views[:contained]:
            donor.state.on_view(view, awaits_state=False)
        saved = donor.state.save()
        for view in views[contained:]:
            donor.state.on_view(view, awaits_state=False)
        joiner.state.on_view(views[1], awaits_state=True)
        joiner.state.on_view(views[2], awaits_state=False)
        assert joiner.machine.lines == [], "it does not know yet from where on"
        joiner.state.load(saved)
        assert joiner.machine.lines == donor.machine.lines == ["view ab"] * 3
        assert joiner.state.save() == donor.state.save()


def test_a_view_that_comes_after_a_state_of_it_is_not_entered_again() -> None:
    donor, joiner = Fed(A), Fed()
    donor.state.on_view(View(2, (A, B)), awaits_state=False)
    joiner.state.on_view(View(1, (A,)), awaits_state=True)
    joiner.state.load(donor.state.save())
    joiner.state.on_view(View(2, (A, B)), awaits_state=False)
    assert joiner.machine.lines == donor.machine.lines
