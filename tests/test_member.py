"""One process's stack: application and frames on the outside, protocol and links on the inside.

What it rejects is in `test_member_rejections.py`, how members form a group in `test_member_lifecycle.py`.
"""

from typing import Any

import pytest

from priocast.core.errors import UnknownProtocol
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Input,
    LinkBlocked,
    LinkCleared,
    OrderingOptions,
    Output,
    Packet,
    Received,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.links.fifo_link import WINDOW_FRAMES
from priocast.links.frame import Frame, LinkOptions
from priocast.member import Member
from priocast.membership.departure import Departed
from priocast.membership.options import MembershipOptions
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from support.notebook import Notebook
from support.stacks import MILLISECOND, WIDE, Neighbourhood, epoch_of, founded

A, B, C = ProcessId("a"), ProcessId("b"), ProcessId("c")


class Tick(Packet, frozen=True, tag="tick"):
    """The only packet of the metronome."""

    TO_ALL = True


class Metronome(OrderingProtocol):
    """Orders nothing, but uses timers and one kind of packet, and keeps every input."""

    NAME = "metronome"
    PACKETS = (Tick,)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard: list[Input] = []

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

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

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        raise NotImplementedError


@pytest.fixture
def metronomes(monkeypatch: pytest.MonkeyPatch) -> Neighbourhood:
    """A group of two metronomes that never suspect each other."""
    monkeypatch.setitem(PROTOCOLS, "metronome", Metronome)
    return founded("ab", order="metronome", failure_ms=60_000.0, slow_ms=60_000.0)


def _heard(member: Member) -> list[Input]:
    """The inputs of the metronome since the last call."""
    protocol = epoch_of(member).protocol
    assert isinstance(protocol, Metronome)
    heard, protocol.heard = protocol.heard, []
    return heard


def _say(member: Member, *words: bytes, now: int) -> None:
    member.broadcast_many(list(words), 0)
    member.turn(now)
    _heard(member)


def _transmitted(member: Member, peer: ProcessId) -> list[Frame]:
    link = epoch_of(member).links[peer]
    frames, link.frames = link.frames, []
    return frames


def test_an_unknown_protocol_is_rejected() -> None:
    with pytest.raises(UnknownProtocol, match="there is no protocol 'raft'"):
        Member(A, "raft", OrderingOptions(), MembershipOptions(founders=1), WIDE)


class TestApplication:
    def test_a_group_of_one_gets_its_own_messages_without_any_frame(self) -> None:
        group = founded("a")
        member, now = group.members["a"], group.now
        member.broadcast(b"low", 0)
        member.broadcast(b"high", 255)
        assert member.head(now) is None
        member.turn(now)
        assert list(member.frames(now)) == []
        group.run(1)
        assert group.applications["a"].payloads == [b"high", b"low"]
        assert member.idle

    def test_room_counts_what_is_not_yet_in_a_batch(self) -> None:
        member = founded("ab", queue_max=16).members["b"]
        assert member.room(255) == 16
        member.broadcast_many([b"x"] * 10, 0)
        assert member.room(255) == 6
        assert member.room(0) == 3
        assert member.backlog == 10

    def test_room_counts_bytes(self) -> None:
        member = founded("ab", queue_bytes_max=100).members["b"]
        member.broadcast(bytes(100), 255)
        assert member.room(255) == 0

    def test_room_is_limited_before_the_first_view(self) -> None:
        member = Neighbourhood("a", founders=2, queue_max=16, queue_bytes_max=100).members["a"]
        member.broadcast_many([b"x"] * 10, 0)
        assert (member.room(0), member.backlog, member.idle) == (6, 10, False)
        member.broadcast(bytes(90), 0)
        assert member.room(255) == 0

    def test_a_sender_waits_until_its_messages_have_positions(self) -> None:
        group = founded("ab", queue_max=2, submit_max=1)
        member = group.members["b"]
        member.broadcast_many([b"1", b"2"], 0)
        member.turn(group.now)
        assert (member.backlog, member.room(0)) == (1, 1)
        member.broadcast(b"3", 0)
        member.turn(group.now)
        assert member.room(0) == 0

    def test_when_a_member_is_idle_and_when_it_may_leave(self) -> None:
        group = founded("abc")
        group.applications["c"].takes_messages = False
        sequencer, sender = group.members["a"], group.members["b"]
        assert sequencer.idle
        sender.broadcast_many([b"%d" % number for number in range(20)], 255)
        assert not sender.idle
        assert not sender.may_leave(group.now)
        sender.turn(group.now)
        assert not sender.idle
        assert not sender.may_leave(group.now)
        group.run(20)
        assert (sequencer.backlog, sequencer.idle, sequencer.may_leave(group.now)) == (4, False, True)
        assert not sender.may_leave(group.now)
        group.applications["c"].takes_messages = True
        group.run_until(lambda: len(group.applications["c"].payloads) == 20)
        group.run(50)
        assert sequencer.idle
        assert sender.idle
        assert sender.may_leave(group.now)


class TestFrames:
    def test_a_turn_continues_while_the_protocol_has_more_to_do(self) -> None:
        group = founded("ab")
        member = group.members["b"]
        member.broadcast_many([bytes(BATCH_BYTES_CUT)] * 20, 0)
        member.turn(group.now)
        bodies = [frame for frame in _transmitted(member, A) if frame.body]
        assert [frame.sequence for frame in bodies] == list(range(1, 21))
        assert member.backlog == 0

    def test_a_new_connection_sends_frames_in_flight_again(self) -> None:
        group = founded("ab")
        member = group.members["b"]
        member.broadcast(b"x", 0)
        member.turn(group.now)
        frames = _transmitted(member, A)
        member.reachable("a", group.now)
        again = _transmitted(member, A)
        assert [frame.body for frame in again if frame.body] == [frame.body for frame in frames if frame.body]
        member.reachable("c", group.now)
        assert _transmitted(member, A) == []

    def test_frames_to_the_named_peer_come_first(self) -> None:
        group = founded("abc")
        member = group.members["a"]
        member.broadcast(b"x", 0)
        member.turn(group.now)
        assert [name for name, _ in member.frames(group.now, C)][:2] == ["c", "b"]

    def test_the_protocol_is_told_once_when_a_link_blocks_and_when_it_clears(
        self, metronomes: Neighbourhood
    ) -> None:
        member, now = metronomes.members["a"], metronomes.now
        for _ in range(WINDOW_FRAMES):
            _say(member, b"tick", now=now)
        member.broadcast(b"tick", 0)
        member.turn(now)
        assert LinkBlocked(B) in _heard(member)
        member.turn(now)
        assert _heard(member) == []
        member.receive(B, [Frame(epoch_of(member).channel, 0, 1, 0)], now)
        member.turn(now)
        assert _heard(member) == [LinkCleared(B)]

    @pytest.mark.parametrize("congested_batches", [8, 64])
    def test_what_goes_to_all_leaves_all_links_at_once_if_they_are_congested_in_time(
        self, congested_batches: int
    ) -> None:
        """One that acknowledges earlier than another gets no more, so a packet for all can be multicast."""
        bounds = {
            "window_bytes": 32 * BATCH_BYTES_CUT,
            "congested_bytes": congested_batches * BATCH_BYTES_CUT,
        }
        options = LinkOptions(**bounds, window_bytes_first=32 * BATCH_BYTES_CUT)
        group = founded("abc", link_options=options, window=1_000, submit_max=1_000)
        member = group.members["a"]
        channel, sent = epoch_of(member).channel, {B: 0, C: 0}
        together = []
        member.broadcast_many([bytes(BATCH_BYTES_CUT - 10)] * 100, 0)
        for acknowledged in range(100):
            member.turn(group.now)
            bodies = {peer: [frame for frame in _transmitted(member, peer) if frame.body] for peer in sent}
            for peer, frames in bodies.items():
                sent[peer] = max([sent[peer], *(frame.sequence for frame in frames)])
            together.append(sent[B] == sent[C])
            member.receive(B, [Frame(channel, 0, sent[B], 0)], group.now)
            member.receive(C, [Frame(channel, 0, min(acknowledged, sent[C]), 0)], group.now)
        assert sent[B] == sent[C] >= 50 and member.backlog == 0
        assert all(together) is (congested_batches == 8)

    def test_own_packets_come_back_within_the_turn(self, metronomes: Neighbourhood) -> None:
        member = metronomes.members["a"]
        member.broadcast(b"tick", 0)
        member.turn(metronomes.now)
        assert _heard(member)[1:] == [Received(A, Tick(), (0, 1))]


class TestTime:
    def test_the_deadline_is_the_earliest_of_links_and_timers_and_heartbeats(
        self, metronomes: Neighbourhood
    ) -> None:
        member, now = metronomes.members["a"], metronomes.now
        heartbeat = member.deadline
        assert now < heartbeat <= now + 20 * MILLISECOND
        assert not epoch_of(member).timers
        _say(member, b"late", b"%d" % (now + 900 * MILLISECOND), now=now)
        assert member.deadline == heartbeat
        assert epoch_of(member).timers
        _say(member, b"early", b"%d" % (now + 5), now=now)
        assert member.deadline == now + 5
        _say(member, b"stop", b"early", now=now)
        _say(member, b"stop", b"never set", now=now)
        assert member.deadline == heartbeat

    def test_timers_that_are_due_fire_once_and_by_name(self, metronomes: Neighbourhood) -> None:
        member, now = metronomes.members["a"], metronomes.now
        for name, at in ((b"y", 5), (b"x", 5), (b"z", 6)):
            _say(member, name, b"%d" % (now + at), now=now)
        member.tick(now + 4)
        assert _heard(member) == []
        member.tick(now + 5)
        member.tick(now + 5)
        assert _heard(member) == [TimerFired("y"), TimerFired("x")]
        assert member.deadline == now + 6

    def test_a_timer_that_is_set_again_fires_at_its_new_time(self, metronomes: Neighbourhood) -> None:
        member, now = metronomes.members["a"], metronomes.now
        _say(member, b"x", b"%d" % (now + 5), now=now)
        _say(member, b"x", b"%d" % (now + 9), now=now)
        member.tick(now + 5)
        assert _heard(member) == []
        assert member.deadline == now + 9

    def test_a_timer_of_a_view_does_not_fire_in_the_next_one(self, metronomes: Neighbourhood) -> None:
        member = metronomes.members["a"]
        _say(member, b"x", b"%d" % (metronomes.now + 40 * MILLISECOND), now=metronomes.now)
        metronomes.start("c")
        metronomes.wait_view("abc")
        metronomes.run(80)
        assert TimerFired("x") not in _heard(member)
        assert not epoch_of(member).timers

    def test_only_links_that_are_due_tick(self, metronomes: Neighbourhood) -> None:
        member, now = metronomes.members["a"], metronomes.now
        _say(member, b"tick", now=now)
        _transmitted(member, B)
        member.tick(now + WIDE.retransmit_ns_first - 1)
        assert [frame.sequence for frame in _transmitted(member, B) if frame.body] == []
        member.tick(now + WIDE.retransmit_ns_first)
        assert [frame.sequence for frame in _transmitted(member, B) if frame.body] == [1]


class TestObserver:
    def test_the_observer_sees_everything_that_goes_in_and_out(self) -> None:
        notebook = Notebook()
        group = Neighbourhood("", founders=1, window=1)
        member = group.start("a", observer=notebook)
        group.wait_view("a")
        assert notebook.cut() == ["installed view 1", "view 1 by sequencer-ub from 0: the group was founded"]
        member.broadcast_many([b"x", b"y"], 7)
        member.turn(group.now)
        assert member.head(group.now) is not None
        member.consume(1, group.now)
        member.turn(group.now)
        assert notebook.cut() == [
            "broadcast a#1/7/0+2 backlog 0",
            "sent submit to a#1 backlog 0",
            "received submit from a#1 backlog 0",
            "sent ordered to all backlog 1",
            "received ordered from a#1 backlog 1",
            "delivered 1 of a#1/7/0+1 at 0 backlog 1",
            "sent consumed to a#1 backlog 1",
            "received consumed from a#1 backlog 1",
            "sent ordered to all backlog 0",
            "received ordered from a#1 backlog 0",
        ]

    def test_the_observer_sees_packets_of_others_and_views(self) -> None:
        notebook = Notebook("consumed")
        group = founded("ab", state=True)
        group.members["b"].broadcast(b"x", 7)
        group.run(10)
        member = group.start("c", observer=notebook)
        group.wait_view("abc")
        group.members["b"].broadcast(b"y", 7)
        group.run_until(lambda: len(group.applications["c"].pages) == 2)
        member.leave(group.now)
        group.run_until(lambda: member.departed)
        assert notebook.cut() == [
            "installed view 2",
            "view 2 by sequencer-ub from 1: c joined",
            "restored 1 bytes at 1 in view 2",
            "received ordered from a#1 backlog 0",
            "delivered 1 of b#1/7/1+1 at 1 backlog 0",
            "stopped: c left",
        ]


def test_a_member_departs_once_and_for_one_reason() -> None:
    notebook = Notebook()
    group = founded("ab")
    member = group.start("c", observer=notebook)
    group.wait_view("abc")
    member.leave(group.now)
    group.run_until(lambda: member.departed)
    member.end(group.now)
    assert member.departed == Departed(True, ViewReason(left=("c",)))
    assert [line for line in notebook.lines if line.startswith("stopped")] == ["stopped: c left"]


def test_a_member_can_end_without_the_agreement_of_others() -> None:
    group = founded("ab")
    member = group.members["b"]
    group.cut("a", "b")
    member.leave(group.now)
    member.end(group.now)
    assert member.departed == Departed(True, ViewReason(left=("b",)))
