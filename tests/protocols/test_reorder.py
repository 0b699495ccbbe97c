"""The cut form of re-ordering, by itself: what it rejects, and what an application sees while it waits.

What it does step by step is in the scripts `cut-*`; that it is right is shown by exploration.
"""

from functools import partial

import pytest

from core.builders import A, B, C
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import pack
from priocast.core.protocol import Consume, Packet, SendAll
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.cuts import (
    CutAcknowledgment,
    CutAcknowledgments,
    CutAcknowledgmentsToAll,
    CutDecision,
    CutDecisions,
    Reorder,
)
from protocols.single_member import hear, member_of, turn

_member = partial(member_of, Reorder)


def _hear_each(reorder: Reorder, sender: ProcessId, *packets: Packet) -> None:
    for packet in packets:
        hear(reorder, sender, packet)


def data(sender: ProcessId, number: int, level: int, *payloads: bytes, first: int = 0) -> NumberedData:
    return NumberedData(number, (pack(sender, level, first, list(payloads)),))


def decided(number: int, final: int, *cut: tuple[int, int, int]) -> CutDecisions:
    return CutDecisions((CutDecision(number, (final,), cut),))


class TestRejections:
    @pytest.mark.parametrize("number", [1, 7])
    def test_data_out_of_order(self, number: int) -> None:
        with pytest.raises(PeerFault, match=f"b#1 sends data {number}; expected 0"):
            _hear_each(_member(A), B, data(B, number, 7, b"x"))

    def test_an_acknowledgment_of_what_was_never_sent(self) -> None:
        with pytest.raises(PeerFault, match="which a#1 never sent"):
            _hear_each(_member(A), B, CutAcknowledgments((CutAcknowledgment(0, 0, (1,), ()),)))

    def test_another_mode(self) -> None:
        with pytest.raises(PeerFault, match="decides distributed"):
            _hear_each(_member(A), B, CutAcknowledgmentsToAll((CutAcknowledgment(0, 0, (1,), ()),)))
        with pytest.raises(PeerFault, match="decides at the sender"):
            _hear_each(_member(A, distributed=True), B, decided(0, 3))

    def test_a_decision_that_nothing_waits_for(self) -> None:
        with pytest.raises(PeerFault, match="decides on data 0, which does not wait for a decision"):
            _hear_each(_member(A), B, decided(0, 3))

    def test_a_number_that_is_lower_than_a_proposal(self) -> None:
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"x"), data(B, 1, 7, b"y", first=1))
        with pytest.raises(PeerFault, match="data 1 a lower number than a#1 proposed"):
            _hear_each(reorder, B, decided(1, 5))

    @pytest.mark.parametrize("cut", [(), ((7, 2, 9),), ((7, 5, 0),), ((8, 5, 1),)])
    def test_a_cut_that_lets_overtake_what_was_consumed(self, cut: tuple[tuple[int, int, int], ...]) -> None:
        reorder = _member(A)
        _hear_each(reorder, B, data(B, 0, 7, b"x"), decided(0, 5))
        reorder.step(Consume(1), 0)
        _hear_each(reorder, C, data(C, 0, 200, b"y"))
        with pytest.raises(PeerFault, match="lets data 0 overtake what a#1 had consumed"):
            _hear_each(reorder, C, decided(0, 5, *cut))
        _hear_each(reorder, C, decided(0, 5, (7, 5, 1)))
        assert reorder.head() is not None


class TestTheApplication:
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
