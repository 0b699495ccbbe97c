"""Agreement on sets: what is in a set, and who takes over from a silent leader.

What it does when all members are correct is in `scripts/` and in the property suite; consensus has its
own tests.
"""

from functools import partial

import pytest
from hypothesis import given, settings

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.message import Batch, Reference, reference_to
from priocast.core.protocol import (
    CancelTimer,
    LinkBlocked,
    MoreToDo,
    OrderingOptions,
    Packet,
    SendAll,
    SendEach,
    SetTimer,
    TimerFired,
)
from priocast.core.starvation import Starvation
from priocast.protocols.agreement import sets as agreement_sets
from priocast.protocols.agreement.consensus import DECISION_TIMEOUT_NS
from priocast.protocols.agreement.consensus_packets import (
    ConsensusAccept,
    ConsensusAccepted,
    ConsensusPrepare,
    SetDecision,
)
from priocast.protocols.agreement.sets import AgreementSets
from priocast.protocols.flow.data import PacedData
from protocols.orders import AGEING, FLUSH, TWINS, patiently
from protocols.schedules import Case, cases, check
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

ONE = (reference_to(batch_of(1, sender=C)),)

_member = partial(member_of, AgreementSets)


def _hear_data(member: AgreementSets, *batches: Batch) -> None:
    """Receive messages, each in a packet of its own."""
    for batch in batches:
        hear(member, batch.sender, PacedData((batch,)))


def _proposed(member: AgreementSets) -> list[str]:
    """The set that a member proposes in a turn."""
    outputs = turn(member)
    (accept,) = [output.packet for output in outputs if isinstance(output, SendEach)]
    assert isinstance(accept, ConsensusAccept)
    return [str(reference) for reference in accept.references]


class TestASet:
    def test_it_is_ordered_by_urgency_then_sender_then_arrival(self) -> None:
        leader = _member(A)
        _hear_data(leader, batch_of(1, 5, sender=C), batch_of(1, 5, sender=B), batch_of(1, 9, sender=C))
        assert _proposed(leader) == ["c#1/9/0+1", "b#1/5/0+1", "c#1/5/0+1"]

    def test_a_plain_set_is_ordered_by_sender_then_arrival(self) -> None:
        leader = AgreementSets(A, VIEW, OrderingOptions(prioritised=False))
        _hear_data(leader, batch_of(1, 5, sender=C), batch_of(1, 5, sender=B), batch_of(1, 9, sender=C))
        assert _proposed(leader) == ["b#1/5/0+1", "c#1/5/0+1", "c#1/9/0+1"]

    def test_consecutive_batches_share_a_reference(self) -> None:
        leader = _member(A)
        _hear_data(leader, batch_of(2, sender=C), batch_of(1, 7, sender=B), batch_of(3, first=2, sender=C))
        assert _proposed(leader) == ["b#1/7/0+1", "c#1/0/0+5"]
        other = _member(A)
        _hear_data(other, batch_of(4_000, sender=C), batch_of(4_000, first=4_000, sender=C))
        assert _proposed(other) == ["c#1/0/0+4000", "c#1/0/4000+4000"], "a reference has a limit"

    def test_the_starvation_policy_chooses_what_fits_into_a_set(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agreement_sets, "REFERENCES_MAX", 2)
        leader = _member(A)
        _hear_data(leader, batch_of(1, 1, sender=B), batch_of(1, 2, sender=B), batch_of(1, 3, sender=C))
        assert _proposed(leader) == ["c#1/3/0+1", "b#1/2/0+1"]

    @pytest.mark.parametrize("policy", [AGEING, FLUSH], ids=str)
    def test_what_has_waited_long_enough_fits_before_what_is_urgent(
        self, policy: Starvation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agreement_sets, "REFERENCES_MAX", 1)
        for waited_ms, first in ((7, "b#1/9/0+1"), (10, "c#1/1/0+1")):
            leader = _member(A, starvation=policy)
            hear(leader, C, PacedData((batch_of(1, 1, sender=C),)))
            hear(leader, B, PacedData((batch_of(1, 9, sender=B),)), now=waited_ms * MILLISECOND)
            assert _proposed(leader) == [first]

    def test_what_is_resent_from_a_plain_view_stays_in_order(self) -> None:
        leader = _member(A)
        first, second = batch_of(1, 9, sender=C).in_line(), batch_of(1, 3, sender=C).in_line()
        _hear_data(leader, first, second, batch_of(1, 255, sender=C))
        assert _proposed(leader) == ["c#1/9/0+1", "c#1/3/0+1", "c#1/255/0+1"]

    def test_what_was_decided_before_it_arrived_is_not_proposed(self) -> None:
        leader = _member(A)
        hear(leader, B, SetDecision(0, 0, ONE))
        _hear_data(leader, batch_of(1, sender=C))
        assert placed(leader) == ["c#1/0/0+1"]
        assert leader.idle
        assert turn(leader) == []


class TestDecisions:
    def test_the_leader_announces_what_a_majority_has_accepted(self) -> None:
        leader = _member(A, position=40)
        _hear_data(leader, batch_of(1, sender=C))
        _proposed(leader)
        assert hear(leader, A, ConsensusAccepted(0, 0, 0)) == []
        assert hear(leader, B, ConsensusAccepted(0, 0, 0)) == [SendAll(SetDecision(0, 40, ONE))]

    def test_they_are_applied_in_order_when_the_messages_have_arrived(self) -> None:
        member = _member(B, position=40)
        hear(member, A, SetDecision(1, 41, (reference_to(batch_of(1, 7, sender=A)),)))
        _hear_data(member, batch_of(1, 7, sender=A))
        assert placed(member) == []
        hear(member, C, SetDecision(0, 40, ONE))
        assert placed(member) == []
        assert not member.idle
        _hear_data(member, batch_of(1, sender=C))
        assert placed(member) == ["c#1/0/0+1", "a#1/7/0+1"]
        assert (member.idle, member.position_next) == (True, 42)

    def test_a_position_depends_on_the_message_and_on_the_first_decision(self) -> None:
        member = _member(B)
        for sender, packet_id, packet in (
            (C, (2, 4), PacedData((batch_of(1, sender=C),))),
            (A, (0, 3), SetDecision(0, 0, ONE)),
            (C, (2, 5), SetDecision(0, 0, ONE)),
        ):
            hear(member, sender, packet, packet_id)
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (3, 0, 4)

    def test_unordered_messages_go_back_to_their_sender(self) -> None:
        member = _member(C)
        say(member, batch_of(2, sender=C))
        turn(member)
        _hear_data(member, batch_of(2, sender=C))
        hear(member, A, ConsensusAccept(0, 0, ONE, 0))
        assert [str(batch) for batch in member.unordered()] == ["c#1/0/0+2"]


class TestTimeout:
    def test_a_timer_runs_while_something_waits_for_a_decision(self) -> None:
        member = _member(B)
        assert turn(member) == []
        hear(member, C, PacedData((batch_of(1, sender=C),)), now=5)
        (timer,) = turn(member, now=9)
        assert isinstance(timer, SetTimer)
        assert timer.at == 5 + DECISION_TIMEOUT_NS
        assert turn(member, now=10) == []
        hear(member, A, SetDecision(0, 0, ONE), now=11)
        assert turn(member, now=12) == [CancelTimer(timer.name)]
        assert turn(member, now=13) == []

    def test_a_member_takes_over_after_the_timeout(self) -> None:
        member = _member(B)
        _hear_data(member, batch_of(1, sender=C))
        (timer,) = turn(member)
        assert isinstance(timer, SetTimer)
        assert member.step(TimerFired(timer.name), timer.at) == [SendEach(ConsensusPrepare(1, 0))]
        (again,) = turn(member, now=timer.at)
        assert isinstance(again, SetTimer)
        assert again.at == timer.at + 3 * 2 * DECISION_TIMEOUT_NS, (
            "it is the leader now, and one ballot had no decision"
        )

    @pytest.mark.parametrize(
        "progress",
        [SetDecision(0, 0, (Reference(B, 0, 0, 1),)), ConsensusPrepare(1, 0)],
        ids=["decision", "leader"],
    )
    def test_a_decision_or_a_new_leader_restarts_the_timeout(self, progress: Packet) -> None:
        member = _member(C)
        _hear_data(member, batch_of(1, sender=B), batch_of(1, 7, sender=B))
        (timer,) = turn(member)
        assert isinstance(timer, SetTimer)
        hear(member, B, progress, now=50 * MILLISECOND)
        assert member.step(TimerFired(timer.name), 2 * DECISION_TIMEOUT_NS) == []
        (again,) = turn(member, now=2 * DECISION_TIMEOUT_NS)
        assert again == SetTimer(timer.name, 50 * MILLISECOND + 2 * DECISION_TIMEOUT_NS)

    def test_a_timer_that_nothing_waits_for_does_nothing(self) -> None:
        member = _member(B)
        _hear_data(member, batch_of(1, sender=C))
        (timer,) = turn(member)
        assert isinstance(timer, SetTimer)
        hear(member, A, SetDecision(0, 0, ONE))
        assert member.step(TimerFired(timer.name), timer.at) == []
        assert turn(member, now=timer.at) == []


class TestFrames:
    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(B, window=1_000)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]

    def test_while_a_link_is_full_no_data_is_sent_but_consensus_continues(self) -> None:
        leader = _member(A)
        say(leader, batch_of(1))
        leader.step(LinkBlocked(C), now=0)
        _hear_data(leader, batch_of(1, sender=B))
        assert _proposed(leader) == ["b#1/0/0+1"]
        assert leader.backlog == 1


def test_what_decides_the_order_is_sent_to_all() -> None:
    assert [packet for packet in AgreementSets.PACKETS if packet.TO_ALL] == [PacedData, SetDecision]
    assert not AgreementSets.PARTITIONABLE, "members know a position from different packets"
    assert AgreementSets.orderer(VIEW) is None


@pytest.mark.parametrize("twin", TWINS)
def test_every_guarantee_holds_if_only_one_reference_fits_into_a_set(
    twin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule does not fill a set: without this, nothing would ever wait for the next one."""
    monkeypatch.setattr(agreement_sets, "REFERENCES_MAX", 1)

    @settings(max_examples=patiently(50))
    @given(cases("agreement-sets", *TWINS[twin]))
    def holds(case: Case) -> None:
        check(case)

    holds()
