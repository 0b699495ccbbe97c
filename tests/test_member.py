"""One process's stack: application and frames on the outside, protocol and links on the inside."""

from typing import Any

import msgspec
import pytest

from priocast.core.errors import ForeignFrame, UnknownProtocol
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch, Stretch
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Input,
    LinkBlocked,
    LinkCleared,
    OrderingOptions,
    Output,
    Packet,
    Protocol,
    Received,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.links.fifo_link import WINDOW_FRAMES, Frame, LinkOptions
from priocast.member import Member
from priocast.protocols import PROTOCOLS

A, B, C = ProcessId("a"), ProcessId("b"), ProcessId("c")
OPTIONS = LinkOptions(window_bytes_first=LinkOptions().window_bytes)


class Notebook:
    """An observer that writes everything down."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def view(self, view: View, position: int, now: int) -> None:
        self.lines.append(f"{now} view {view.number} from {position}")

    def broadcast(self, batch: Batch, now: int, backlog: int) -> None:
        self.lines.append(f"{now} broadcast {batch} backlog {backlog}")

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        self.lines.append(f"{now} sent {packet.name()} to {to or 'all'} backlog {backlog}")

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        self.lines.append(f"{now} received {packet.name()} from {peer} backlog {backlog}")

    def delivered(self, stretch: Stretch, count: int, now: int, backlog: int) -> None:
        self.lines.append(
            f"{now} delivered {count} of {stretch.batch} at {stretch.position} backlog {backlog}"
        )


class Tick(Packet, frozen=True, tag="tick"):
    """The only packet of the metronome."""


class Metronome(Protocol):
    """Orders nothing, but uses timers and one kind of packet, and keeps every input."""

    NAME = "metronome"
    PACKETS = (Tick,)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard: list[Input] = []

    @classmethod
    def orderer(cls, view: View) -> str:
        return view.coordinator.name

    @property
    def idle(self) -> bool:
        return True

    def step(self, event: Input, now: int) -> list[Output]:
        if not isinstance(event, Turn):
            self.heard.append(event)
        return super().step(event, now)

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        match event.batch.payloads():
            case [b"stop", name]:
                self._outputs.append(CancelTimer(name.decode()))
            case [b"tick"]:
                self.send_all(Tick())
            case [name, at]:
                self._outputs.append(SetTimer(name.decode(), int(at)))

    def on_received(self, event: Received, now: int) -> None:
        pass

    def on_turn(self, event: Turn, now: int) -> None:
        pass

    def on_timer(self, event: TimerFired, now: int) -> None:
        pass

    def on_consumed(self, count: int, now: int) -> None:
        raise NotImplementedError


def _member(me: ProcessId, *others: ProcessId, observer: Notebook | None = None, **options: int) -> Member:
    view = View(1, tuple(sorted((me, *others))))
    ordering = OrderingOptions(**options)  # type: ignore[arg-type]
    member = Member(me, view, "sequencer-ub", ordering, OPTIONS, observer)
    member.start(now=0)
    return member


@pytest.fixture
def metronome(monkeypatch: pytest.MonkeyPatch) -> Member:
    monkeypatch.setitem(PROTOCOLS, "metronome", Metronome)
    return Member(A, View(1, (A, B)), "metronome", OrderingOptions(), OPTIONS)


def _heard(member: Member) -> list[Input]:
    assert isinstance(member._protocol, Metronome)
    return member._protocol.heard


def _say(member: Member, *words: bytes, now: int = 0) -> None:
    member.broadcast_many(list(words), 0)
    member.turn(now)
    _heard(member).clear()


def _transmitted(member: Member, peer: ProcessId) -> list[Frame]:
    link = member.links[peer]
    frames, link.frames = link.frames, []
    return frames


def _delivered(member: Member, now: int = 0) -> list[bytes]:
    """Consume everything."""
    payloads = []
    while (head := member.head()) is not None:
        payloads.append(head.message(head.taken).payload)
        member.consume(1, now)
    return payloads


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(UnknownProtocol, match="there is no protocol 'raft'"):
        Member(A, View(1, (A,)), "raft", OrderingOptions(), OPTIONS)


class TestApplication:
    def test_a_group_of_one_gets_its_own_messages_without_any_frame(self) -> None:
        member = _member(A)
        member.broadcast(b"low", 0)
        member.broadcast(b"high", 255)
        assert member.head() is None
        member.turn(now=0)
        assert _delivered(member) == [b"high", b"low"]
        member.turn(now=0)
        assert member.idle
        assert member.deadline is None

    def test_room_counts_what_is_not_yet_in_a_batch(self) -> None:
        member = _member(B, A, queue_max=16)
        assert member.room(255) == 16
        member.broadcast_many([b"x"] * 10, 0)
        assert member.room(255) == 6
        assert member.room(0) == 3
        assert member.backlog == 10

    def test_room_counts_bytes(self) -> None:
        member = _member(B, A, queue_bytes_max=100)
        member.broadcast(bytes(100), 255)
        assert member.room(255) == 0

    def test_a_sender_is_held_back_until_its_messages_have_places(self) -> None:
        member = _member(B, A, queue_max=2, submit_max=1)
        member.broadcast_many([b"1", b"2"], 0)
        member.turn(now=0)
        assert (member.backlog, member.room(0)) == (1, 1)
        member.broadcast(b"3", 0)
        member.turn(now=0)
        assert member.room(0) == 0

    def test_a_member_is_idle_when_nobody_needs_it(self) -> None:
        member = _member(B, A)
        assert member.idle
        member.broadcast(b"x", 0)
        assert not member.idle
        member.turn(now=0)
        assert not member.idle
        member.receive(A, Frame(0, 1, 0), now=0)
        assert not member.idle  # received, but without a place


class TestFrames:
    def test_members_exchange_frames_until_all_have_everything(self) -> None:
        members = {process: _member(process, *{A, B, C} - {process}) for process in (A, B, C)}
        members[B].broadcast(b"from b", 0)
        members[C].broadcast(b"from c", 255)
        for _ in range(4):
            for member in members.values():
                member.turn(now=0)
            for source, member in members.items():
                for target in member.links:
                    for frame in _transmitted(member, target):
                        members[target].receive(source, frame, now=0)
        assert {tuple(_delivered(member)) for member in members.values()} == {(b"from c", b"from b")}

    def test_a_turn_goes_on_while_the_protocol_has_more_to_do(self) -> None:
        member = _member(B, A)
        member.broadcast_many([bytes(BATCH_BYTES_CUT)] * 20, 0)
        member.turn(now=0)
        assert [frame.sequence for frame in _transmitted(member, A)] == list(range(1, 21))
        assert member.backlog == 0

    @pytest.mark.parametrize("body", [b"\xc1", b"\x93\xa5other\x01\x02", b"\x92\xa6submit\x90"])
    def test_a_packet_that_cannot_be_read_is_a_foreign_frame(self, body: bytes) -> None:
        member = _member(A, B)
        with pytest.raises(ForeignFrame, match="b#1 sent a packet that cannot be read"):
            member.receive(B, Frame(1, 0, 0, body), now=0)

    def test_a_packet_of_another_protocol_cannot_be_read(self, metronome: Member) -> None:
        metronome.receive(B, Frame(1, 0, 0, msgspec.msgpack.encode(Tick())), now=0)
        with pytest.raises(ForeignFrame):
            _member(A, B).receive(B, Frame(1, 0, 0, msgspec.msgpack.encode(Tick())), now=0)

    def test_a_new_connection_sends_again_what_was_under_way(self) -> None:
        member = _member(B, A)
        member.broadcast(b"x", 0)
        member.turn(now=0)
        (frame,) = _transmitted(member, A)
        member.reconnected(A, now=1)
        assert _transmitted(member, A) == [frame]

    def test_the_protocol_hears_of_a_full_link_once_and_when_it_has_room_again(
        self, metronome: Member
    ) -> None:
        for _ in range(WINDOW_FRAMES):
            _say(metronome, b"tick")
        metronome.broadcast(b"tick", 0)
        metronome.turn(now=0)
        assert LinkBlocked(B) in _heard(metronome)
        _heard(metronome).clear()
        metronome.turn(now=0)
        assert _heard(metronome) == []
        metronome.receive(B, Frame(0, 1, 0), now=0)
        metronome.turn(now=0)
        assert _heard(metronome) == [LinkCleared(B)]

    def test_one_s_own_packets_come_back_within_the_turn(self, metronome: Member) -> None:
        metronome.broadcast(b"tick", 0)
        metronome.turn(now=7)
        assert _heard(metronome)[1:] == [Received(A, Tick())]


class TestTime:
    def test_the_deadline_is_the_earliest_of_links_and_timers(self, metronome: Member) -> None:
        assert metronome.deadline is None
        assert not metronome.has_timers
        _say(metronome, b"late", b"900000000")
        assert metronome.deadline == 900_000_000
        assert metronome.has_timers
        _say(metronome, b"early", b"5")
        assert metronome.deadline == 5
        _say(metronome, b"stop", b"early")
        _say(metronome, b"stop", b"never set")
        _say(metronome, b"tick")
        assert metronome.deadline == OPTIONS.retransmit_ns_first

    def test_timers_that_are_due_fire_once_and_by_name(self, metronome: Member) -> None:
        for name, at in ((b"y", b"5"), (b"x", b"5"), (b"z", b"6")):
            _say(metronome, name, at)
        metronome.tick(now=4)
        assert _heard(metronome) == []
        metronome.tick(now=5)
        metronome.tick(now=5)
        assert _heard(metronome) == [TimerFired("x"), TimerFired("y")]
        assert metronome.deadline == 6

    def test_a_timer_that_is_set_again_fires_at_its_new_time(self, metronome: Member) -> None:
        _say(metronome, b"x", b"5")
        _say(metronome, b"x", b"9")
        metronome.tick(now=5)
        assert _heard(metronome) == []
        assert metronome.deadline == 9

    def test_only_links_that_are_due_tick(self, metronome: Member) -> None:
        _say(metronome, b"tick")
        _transmitted(metronome, B)
        metronome.tick(now=OPTIONS.retransmit_ns_first - 1)
        assert _transmitted(metronome, B) == []
        metronome.tick(now=OPTIONS.retransmit_ns_first)
        assert [frame.sequence for frame in _transmitted(metronome, B)] == [1]


class TestObserver:
    def test_it_sees_everything_that_goes_in_and_out_of_the_sequencer(self) -> None:
        notebook = Notebook()
        member = _member(A, observer=notebook, window=1)
        member.broadcast_many([b"x", b"y"], 7)
        member.turn(now=1)
        member.consume(1, now=2)
        member.turn(now=3)
        assert notebook.lines == [
            "0 view 1 from 0",
            "1 broadcast a#1/7/0+2 backlog 0",
            "1 sent submit to a#1 backlog 0",
            "1 received submit from a#1 backlog 0",
            "1 sent ordered to all backlog 1",
            "1 received ordered from a#1 backlog 1",
            "2 delivered 1 of a#1/7/0+1 at 0 backlog 1",
            "2 sent consumed to a#1 backlog 1",
            "3 received consumed from a#1 backlog 1",
            "3 sent ordered to all backlog 0",
            "3 received ordered from a#1 backlog 0",
        ]

    def test_it_sees_what_comes_from_others(self) -> None:
        notebook, other = Notebook(), _member(B, A)
        member = _member(A, B, observer=notebook)
        other.broadcast(b"x", 7)
        other.turn(now=0)
        for frame in _transmitted(other, A):
            member.receive(B, frame, now=5)
        assert notebook.lines[1:] == ["5 received submit from b#1 backlog 0"]
