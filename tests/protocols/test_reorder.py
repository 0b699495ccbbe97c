"""The cut form of re-ordering, by itself: what an application sees while it waits.

What it does step by step is in the scripts `cut-*`; that it is right is shown by exploration.
"""

from functools import partial

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import pack
from priocast.core.protocol import Consume, MoreToDo, Packet, SendAll, SetTimer, TimerFired
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.cut_packets import (
    CutAcknowledgment,
    CutAcknowledgments,
    CutDecision,
    CutDecisions,
)
from priocast.protocols.reorder.cuts import Reorder
from protocols.single_member import hear, member_of, say, turn

_member = partial(member_of, Reorder)


def _hear_each(reorder: Reorder, sender: ProcessId, *packets: Packet) -> None:
    for packet in packets:
        hear(reorder, sender, packet)


def data(sender: ProcessId, number: int, level: int, *payloads: bytes, first: int = 0) -> NumberedData:
    return NumberedData(number, (pack(sender, level, first, list(payloads)),))


def decided(number: int, final: int, *cut: tuple[int, int, int]) -> CutDecisions:
    return CutDecisions((CutDecision(number, (final,), cut),))


class TestTheApplication:
    def test_a_decision_whose_cut_respects_what_was_consumed_is_accepted(self) -> None:
        """Also after one that was rejected."""
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"x"), decided(0, 5))
        reorder.step(Consume(1), 0)
        _hear_each(reorder, C, data(C, 0, 200, b"y"))
        with pytest.raises(PeerFault):
            _hear_each(reorder, C, decided(0, 5))
        _hear_each(reorder, C, decided(0, 5, (7, 5, 1)))
        head = reorder.head()
        assert head is not None and head.message(0).payload == b"y"

    def test_a_blocked_head_has_a_stall_reason_and_is_measured(self) -> None:
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"x"), decided(0, 5))
        assert reorder.head() is not None and reorder.inspect(0).stall_reason == ""
        hear(reorder, C, data(C, 0, 200, b"y"), now=1_000)
        assert reorder.head() is None
        assert (
            "waits until the positions of more urgent messages are decided" in reorder.inspect(0).stall_reason
        )
        hear(reorder, C, decided(0, 5), now=4_000)
        assert reorder.inspect(0).stall_reason == ""
        assert (reorder.stalls.count, reorder.stalls.total_ns) == (1, 3_000)

    def test_the_rest_of_a_partly_consumed_batch_can_be_overtaken(self) -> None:
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"1", b"2", b"3"), decided(0, 5))
        reorder.step(Consume(1), 0)
        _hear_each(reorder, C, data(C, 0, 200, b"y"), decided(0, 5, (7, 5, 2)))
        taken = []
        while (head := reorder.head()) is not None:
            taken.append(head.message(head.taken).payload)
            reorder.step(Consume(1), 0)
        assert taken == [b"2", b"y", b"3"]
        assert reorder.position_next == 4

    def test_an_acknowledgment_names_the_last_message_of_each_lower_level(self) -> None:
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"1", b"2"), decided(0, 5))
        _hear_each(reorder, B, data(B, 1, 9, b"3"), decided(1, 8))
        for _ in range(2):
            reorder.step(Consume(1), 0)
        _hear_each(reorder, C, data(C, 0, 9, b"y"))
        turn(reorder)
        _hear_each(reorder, C, data(C, 1, 200, b"z"))
        (output,) = turn(reorder)
        assert not isinstance(output, SendAll)
        assert output.packet == CutAcknowledgments((CutAcknowledgment(2, 1, (3,), ((9, 8, 1), (7, 5, 1))),))  # type: ignore[union-attr]


class TestTheSender:
    def test_messages_of_a_prioritised_member_wait_for_the_decision_on_those_before(self) -> None:
        reorder = _member(A)
        say(reorder, pack(A, 7, 0, [b"x"]))
        first = sent_data(reorder)
        assert [batch.level for batch in first.batches] == [7]
        say(reorder, pack(A, 9, 0, [b"y"]))
        say(reorder, pack(A, 200, 0, [b"z"]))
        hear(reorder, A, first)
        assert not [output for output in turn(reorder) if isinstance(output, SendAll)]
        for member, proposal in ((A, 1), (B, 2), (C, 3)):
            hear(reorder, member, CutAcknowledgments((CutAcknowledgment(0, 0, (proposal,), ()),)))
        (decision,) = turn(reorder)
        assert isinstance(decision, SendAll) and isinstance(decision.packet, CutDecisions)
        hear(reorder, A, decision.packet)
        assert [batch.level for batch in sent_data(reorder).batches] == [200, 9], "they share an exchange"

    def test_the_next_round_waits_for_exchanges_of_others_that_were_undecided(self) -> None:
        """But not for those that begin later."""
        reorder = _in_exchange(level=7)
        hear(reorder, B, data(B, 0, 7, b"b"))
        _decide_own(reorder, now=1_000)
        say(reorder, pack(A, 7, 1, [b"y"]))
        assert not turn(reorder, now=2_000)
        hear(reorder, C, data(C, 0, 7, b"c"))
        hear(reorder, B, decided(0, 8))
        assert sent_data(reorder, now=2_000).number == 1

    def test_a_more_urgent_message_waits_for_its_own_exchange_only(self) -> None:
        reorder = _in_exchange(level=7)
        hear(reorder, B, data(B, 0, 7, b"b"))
        _decide_own(reorder, now=1_000)
        say(reorder, pack(A, 8, 0, [b"y"]))
        assert sent_data(reorder, now=2_000).number == 1

    def test_the_next_round_waits_until_the_application_has_what_it_can_consume(self) -> None:
        reorder = _in_exchange(level=7)
        _decide_own(reorder, now=1_000)
        say(reorder, pack(A, 7, 1, [b"y"]))
        assert turn(reorder, now=1_500) == [SetTimer("pause", 2_000)]
        assert turn(reorder, now=1_999) == []
        assert reorder.step(Consume(1), 1_999) == [MoreToDo()]
        assert sent_data(reorder, now=1_999).number == 1

    @pytest.mark.parametrize("ends_by", ["time", "another exchange", "urgency"])
    def test_an_application_that_consumes_nothing_does_not_hold_up_the_next_round(self, ends_by: str) -> None:
        reorder = _in_exchange(level=7)
        _decide_own(reorder, now=1_000)
        say(reorder, pack(A, 7, 1, [b"y"]))
        assert turn(reorder, now=1_500) == [SetTimer("pause", 2_000)]
        now = 1_600
        match ends_by:
            case "time":
                now = 2_000
                assert reorder.step(TimerFired("pause"), now) == []
            case "another exchange":
                hear(reorder, B, data(B, 0, 3, b"b"))
            case "urgency":
                say(reorder, pack(A, 8, 0, [b"z"]))
        assert sent_data(reorder, now=now).number == 1

    def test_messages_of_a_plain_member_are_sent_at_once(self) -> None:
        reorder = _member(A, prioritised=False)
        for number in range(2):
            say(reorder, pack(A, 7, number, [b"x"]))
            assert sent_data(reorder).number == number


def _in_exchange(level: int) -> Reorder:
    """Member a at time 0, which has sent a message and received it itself."""
    reorder = _member(A)
    say(reorder, pack(A, level, 0, [b"x"]))
    hear(reorder, A, sent_data(reorder))
    return reorder


def _decide_own(reorder: Reorder, now: int) -> None:
    """All acknowledge the first data of member a, which sends and receives its decision."""
    for member, proposal in ((A, 1), (B, 2), (C, 3)):
        hear(reorder, member, CutAcknowledgments((CutAcknowledgment(0, 0, (proposal,), ()),)))
    decisions = [
        output.packet
        for output in turn(reorder, now=now)
        if isinstance(output, SendAll) and isinstance(output.packet, CutDecisions)
    ]
    for decision in decisions:
        hear(reorder, A, decision)
    assert decisions and turn(reorder, now=now) == []


def sent_data(reorder: Reorder, now: int = 0) -> NumberedData:
    """The one packet of data that a member sends in its turn."""
    packets = [output.packet for output in turn(reorder, now=now) if isinstance(output, SendAll)]
    (data,) = [packet for packet in packets if isinstance(packet, NumberedData)]
    return data
