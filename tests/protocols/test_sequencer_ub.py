"""The fixed sequencer: what it refuses from others, and how it cuts its work into frames.

What it does when everybody behaves is in `scripts/` and in the property suite.
"""

import msgspec
import pytest

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.protocol import (
    Broadcast,
    Consume,
    LinkBlocked,
    MoreToDo,
    OrderingOptions,
    Output,
    Packet,
    Received,
    Send,
    SendAll,
    Turn,
)
from priocast.core.view import View
from priocast.protocols.sequencer_ub import Consumed, Ordered, SequencerUb, Submit

VIEW = View(1, (A, B, C))


def _member(me: ProcessId, **options: int) -> SequencerUb:
    return SequencerUb(me, VIEW, OrderingOptions(**options))  # type: ignore[arg-type]


def _hear(member: SequencerUb, sender: ProcessId, packet: Packet) -> list[Output]:
    return member.step(Received(sender, packet), now=0)


def _ordered_by(member: SequencerUb) -> list[Batch]:
    """What the sequencer orders in a turn."""
    outputs = member.step(Turn(), now=0)
    return [
        batch
        for output in outputs
        if isinstance(output, SendAll) and isinstance(output.packet, Ordered)
        for batch in output.packet.batches
    ]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "packet", [Submit((batch_of(1, sender=C),)), Consumed(0, 5)], ids=["submit", "report"]
    )
    def test_who_takes_another_member_for_the_sequencer(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 takes b#1 for the sequencer, which is a#1"):
            _hear(_member(B), C, packet)

    def test_a_forged_sender(self) -> None:
        with pytest.raises(PeerFault, match="c#1 submits a message of b#1"):
            _hear(_member(A), C, Submit((batch_of(1, sender=B),)))

    @pytest.mark.parametrize("priorities", [b"\1", b"\1\2\3"])
    def test_priorities_for_some_messages_only(self, priorities: bytes) -> None:
        batch = msgspec.structs.replace(batch_of(2, sender=C), priorities=priorities)
        with pytest.raises(PeerFault, match=f"with {len(priorities)} priorities"):
            _hear(_member(A), C, Submit((batch,)))

    @pytest.mark.parametrize("first", [0, 1, 3])
    def test_a_number_that_came_before_or_leaves_a_gap(self, first: int) -> None:
        sequencer = _member(A)
        _hear(sequencer, C, Submit((batch_of(2, sender=C),)))
        with pytest.raises(PeerFault, match="where number 2 of that level is next"):
            _hear(sequencer, C, Submit((batch_of(1, sender=C, first=first),)))

    def test_more_than_there_is_credit_for(self) -> None:
        sequencer = _member(A, submit_max=4, window=1)
        _hear(sequencer, C, Submit((batch_of(4, sender=C),)))
        assert [batch.count for batch in _ordered_by(sequencer)] == [1]
        _hear(sequencer, C, Submit((batch_of(1, sender=C, first=4),)))
        with pytest.raises(PeerFault, match="more than the 4 messages that it has credit for"):
            _hear(sequencer, C, Submit((batch_of(1, sender=C, first=5),)))

    def test_an_order_that_is_not_the_sequencers(self) -> None:
        with pytest.raises(PeerFault, match="c#1 orders position 0; expected 0 from a#1"):
            _hear(_member(B), C, Ordered(0, (batch_of(1),)))

    @pytest.mark.parametrize("position", [0, 2, 4])
    def test_a_gap_or_a_repetition_in_the_order(self, position: int) -> None:
        member = _member(B)
        _hear(member, A, Ordered(0, (batch_of(2), batch_of(1, sender=C))))
        with pytest.raises(PeerFault, match=f"orders position {position}; expected 3"):
            _hear(member, A, Ordered(position, (batch_of(1, first=2),)))

    def test_a_place_for_a_message_that_its_sender_never_submitted(self) -> None:
        # Found by reading: this was a KeyError, as if the fault were ours.
        with pytest.raises(PeerFault, match="never sent"):
            _hear(_member(B), A, Ordered(0, (batch_of(1, sender=B),)))

    @pytest.mark.parametrize("total", [0, 1, 4])
    def test_consumption_that_cannot_be(self, total: int) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, Submit((batch_of(3, sender=B),)))
        assert _ordered_by(sequencer)
        _hear(sequencer, B, Consumed(2, 16))
        with pytest.raises(PeerFault, match=f"b#1 reports {total} messages consumed, which cannot be"):
            _hear(sequencer, B, Consumed(total, 16))

    def test_consumption_before_anything_is_ordered(self) -> None:
        # Found by reading: any number was believed, and the window was open that far.
        with pytest.raises(PeerFault, match="b#1 reports 5 messages consumed, which cannot be"):
            _hear(_member(A), B, Consumed(5, 16))


class TestReports:
    def test_one_report_per_quarter_of_the_window(self) -> None:
        member = _member(B, window=8)
        _hear(member, A, Ordered(0, (batch_of(8),)))
        reports = [member.step(Consume(1), now=0) for _ in range(8)]
        sent = {taken + 1: outputs for taken, outputs in enumerate(reports) if outputs}
        assert sent == {taken: [Send(A, Consumed(taken, 8))] for taken in (2, 4, 6, 8)}

    def test_a_window_larger_than_all_windows_is_not_believed(self) -> None:
        sequencer = _member(A, window=1, submit_max=100_000)
        for first in range(0, 80_000, 4_000):
            _hear(sequencer, B, Submit((batch_of(4_000, first=first, sender=B),)))
        assert sum(batch.count for batch in _ordered_by(sequencer)) == 1
        for member in (A, B, C):
            _hear(sequencer, member, Consumed(1, 10**9))
        ordered = 1
        while batches := _ordered_by(sequencer):
            ordered += sum(batch.count for batch in batches)
        assert ordered == 1 + 65_536 - 3 * 4_096  # the lowest class leaves three reserves


class TestFrames:
    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(B, submit_max=10_000)
        for number in range(20):
            member.step(Broadcast(batch_of(1, first=number, sender=B, size=BATCH_BYTES_CUT)), now=0)
        frames = []
        while (outputs := member.step(Turn(), now=0))[-1:] == [MoreToDo()]:
            assert len(outputs) == 9
            frames += outputs[:-1]
        frames += outputs
        assert len(frames) == 20
        assert {output.to for output in frames if isinstance(output, Send)} == {A}

    def test_the_sequencer_asks_for_another_turn_as_well(self) -> None:
        sequencer = _member(A, window=1_000)
        for number in range(9):
            _hear(sequencer, B, Submit((batch_of(1, first=number, sender=B, size=BATCH_BYTES_CUT),)))
        outputs = sequencer.step(Turn(), now=0)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        assert len(_ordered_by(sequencer)) == 1

    def test_a_full_link_to_one_member_stops_the_order_for_all(self) -> None:
        sequencer = _member(A)
        _hear(sequencer, B, Submit((batch_of(1, sender=B),)))
        sequencer.step(LinkBlocked(C), now=0)
        assert not _ordered_by(sequencer)
        assert sequencer.backlog == 1


def test_a_member_is_idle_when_all_it_broadcast_has_its_place() -> None:
    member = _member(B)
    assert member.idle
    member.step(Broadcast(batch_of(1, sender=B)), now=0)
    assert not member.idle
    member.step(Turn(), now=0)
    assert not member.idle
    _hear(member, A, Ordered(0, (batch_of(1, sender=B),)))
    assert member.idle
