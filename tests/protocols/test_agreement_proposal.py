"""Agreement on a proposed order: what a round needs, and what is counted when.

What it does when all members are correct is in `scripts/` and in the property suite.
"""

from functools import partial

import pytest

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.message import reference_to
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, Packet, Send, SendAll
from priocast.core.starvation import Starvation
from priocast.protocols.agreement.proposal import AgreementProposal
from priocast.protocols.agreement.proposal_packets import (
    ApplyOrder,
    OrderVote,
    ProposedOrder,
    ReceivedCounts,
    StartConsensus,
)
from priocast.protocols.flow.packets import Consumed, Data
from protocols.orders import AGEING, FLUSH
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

PROPOSAL = ProposedOrder(1, 0, (reference_to(batch_of(1, sender=C)),))

_member = partial(member_of, AgreementProposal)


def _turn(member: AgreementProposal) -> list[Packet]:
    """What a member sends in a turn to all or to each, without receiving it itself."""
    outputs = turn(member)
    return [output.packet for output in outputs if not isinstance(output, MoreToDo)]  # type: ignore[union-attr]


def _starter(count: int, **options: int) -> AgreementProposal:
    """A starter that has received `count` messages of c and has started a round."""
    starter = _member(A, **options)
    hear(starter, C, Data((batch_of(count, sender=C),)))
    assert _turn(starter) == [StartConsensus(1, (0, 0, count))]
    return starter


def _replied(count: int, **options: int) -> AgreementProposal:
    """A starter to which a majority has replied that it has received the same."""
    starter = _starter(count, **options)
    for member in (A, B):
        hear(starter, member, ReceivedCounts(1, (0, 0, count)))
    return starter


def _second_round_replied(**options: int) -> AgreementProposal:
    """A starter that has ordered a message of c, and has the replies of the next round."""
    starter = _replied(1, **options)
    _turn(starter)
    for member in (A, B):
        hear(starter, member, OrderVote(1))
    assert _turn(starter) == [ApplyOrder(1)]
    hear(starter, C, Data((batch_of(1, first=1, sender=C),)))
    assert _turn(starter) == [StartConsensus(2, (0, 0, 2))]
    for member in (A, B):
        hear(starter, member, ReceivedCounts(2, (0, 0, 2)))
    return starter


class TestTheStarter:
    def test_nothing_is_asked_while_there_is_nothing_to_order(self) -> None:
        assert _turn(_member(A)) == []

    def test_it_waits_for_a_majority_of_replies(self) -> None:
        starter = _starter(2)
        hear(starter, A, ReceivedCounts(1, (0, 0, 2)))
        assert _turn(starter) == []
        hear(starter, A, ReceivedCounts(1, (0, 0, 2)))
        assert _turn(starter) == [], "the same member twice is no majority"
        hear(starter, C, ReceivedCounts(1, (0, 0, 2)))
        assert _turn(starter) == [ProposedOrder(1, 0, (reference_to(batch_of(2, sender=C)),))]
        assert _turn(starter) == []

    def test_what_those_who_replied_have_in_common_is_proposed_and_the_rest_later(self) -> None:
        starter = _starter(2)
        hear(starter, B, Data((batch_of(1, sender=B),)))
        hear(starter, A, ReceivedCounts(1, (0, 1, 2)))
        hear(starter, C, ReceivedCounts(1, (0, 0, 2)))
        assert _turn(starter) == [ProposedOrder(1, 0, (reference_to(batch_of(2, sender=C)),))]
        for member in (A, B):
            hear(starter, member, OrderVote(1))
        assert _turn(starter) == [ApplyOrder(1)]
        assert _turn(starter) == [StartConsensus(2, (0, 1, 2))]

    def test_it_waits_for_a_majority_of_votes_of_this_round(self) -> None:
        starter = _replied(1)
        assert isinstance(_turn(starter)[0], ProposedOrder)
        hear(starter, B, OrderVote(1))
        hear(starter, B, OrderVote(1))
        assert _turn(starter) == []
        hear(starter, C, OrderVote(2))
        assert _turn(starter) == []
        hear(starter, C, OrderVote(1))
        assert _turn(starter) == [ApplyOrder(1)]
        hear(starter, A, OrderVote(1))
        assert _turn(starter) == []

    def test_a_reply_of_another_round_is_ignored(self) -> None:
        starter = _starter(1)
        for member in (B, C):
            hear(starter, member, ReceivedCounts(2, (0, 0, 1)))
        assert _turn(starter) == []

    def test_what_is_ordered_is_not_ordered_again(self) -> None:
        starter = _second_round_replied()
        assert _turn(starter) == [ProposedOrder(2, 1, (reference_to(batch_of(1, first=1, sender=C)),))]

    def test_the_most_urgent_goes_first_as_far_as_there_is_room(self) -> None:
        starter = _member(A, window=3)
        low, high = batch_of(3, 5, sender=C), batch_of(2, 9, sender=B)
        hear(starter, C, Data((low,)))
        hear(starter, B, Data((high,)))
        _turn(starter)
        for member in (A, B):
            hear(starter, member, ReceivedCounts(1, (0, 2, 3)))
        references = (reference_to(high), reference_to(batch_of(1, 5, sender=C)))
        assert _turn(starter) == [ProposedOrder(1, 0, references, "a")]
        assert starter.backlog == 2

    @pytest.mark.parametrize("policy", [AGEING, FLUSH], ids=str)
    def test_what_has_waited_long_enough_since_its_arrival_precedes_urgent_messages(
        self, policy: Starvation
    ) -> None:
        low, high = batch_of(1, 1, sender=C), batch_of(1, 9, sender=B)
        for waited_ms, expected in ((7, (high, low)), (10, (low, high))):
            starter = _member(A, starvation=policy)
            hear(starter, C, Data((low,)))
            hear(starter, B, Data((high,)), now=waited_ms * MILLISECOND)
            _turn(starter)
            for member in (A, B):
                hear(starter, member, ReceivedCounts(1, (0, 1, 1)), now=waited_ms * MILLISECOND)
            assert _turn(starter) == [ProposedOrder(1, 0, tuple(map(reference_to, expected)))]

    def test_a_round_without_room_ends_and_urgent_messages_get_the_next_one(self) -> None:
        starter = _second_round_replied(window=1)
        assert _turn(starter) == []
        assert _turn(starter) == [], "there is nothing new, and no room for what there is"
        assert starter.inspect(0).bottleneck == A
        hear(starter, B, Data((batch_of(1, 255, sender=B),)))
        assert _turn(starter) == [StartConsensus(3, (0, 1, 2))]

    def test_there_is_no_bottleneck_during_a_vote(self) -> None:
        starter = _replied(2, window=1)
        assert _turn(starter) == [ProposedOrder(1, 0, (reference_to(batch_of(1, sender=C)),), "a")]
        assert starter.inspect(0).bottleneck is None
        for member in (A, B):
            hear(starter, member, OrderVote(1))
        assert _turn(starter) == [ApplyOrder(1)]
        assert starter.inspect(0).bottleneck == A

    def test_while_a_link_is_full_nothing_is_proposed(self) -> None:
        starter = _replied(1)
        starter.step(LinkBlocked(B), now=0)
        assert _turn(starter) == []

    def test_waiting_messages_are_counted_where_they_wait(self) -> None:
        starter, member = _replied(3, window=1), _member(B, submit_max=1)
        _turn(starter)
        assert starter.inspect(now=9).queues == [(0, 2, 9)]
        say(member, batch_of(3, 7, sender=B), now=4)
        turn(member, now=5)
        assert member.inspect(now=9).queues == [(7, 2, 5)]

    def test_it_is_idle_when_everything_is_ordered(self) -> None:
        starter = _member(A)
        assert starter.idle
        hear(starter, C, Data((batch_of(1, sender=C),)))
        assert (starter.idle, starter.settled) == (False, True)
        _turn(starter)
        for member in (A, B):
            hear(starter, member, ReceivedCounts(1, (0, 0, 1)))
        (proposal,) = _turn(starter)
        hear(starter, A, proposal)
        for member in (A, B):
            hear(starter, member, OrderVote(1))
        assert not starter.idle
        (application,) = _turn(starter)
        assert not starter.idle
        hear(starter, A, application)
        assert starter.idle


class TestADestination:
    def test_it_replies_when_it_has_all_that_the_starter_had(self) -> None:
        member = _member(B)
        hear(member, C, Data((batch_of(1, sender=C),)))
        assert hear(member, A, StartConsensus(1, (1, 0, 2))) == []
        assert hear(member, A, Data((batch_of(1),))) == []
        heard = hear(member, C, Data((batch_of(3, first=1, sender=C),)))
        assert heard == [Send(A, ReceivedCounts(1, (1, 0, 4)))]
        assert hear(member, C, Data((batch_of(1, first=4, sender=C),))) == [], "once is enough"

    def test_it_replies_to_the_last_question_only(self) -> None:
        member = _member(B)
        hear(member, A, StartConsensus(1, (0, 0, 1)))
        hear(member, A, StartConsensus(2, (0, 0, 1)))
        assert hear(member, C, Data((batch_of(1, sender=C),))) == [Send(A, ReceivedCounts(2, (0, 0, 1)))]

    def test_it_votes_and_orders_when_the_round_is_applied(self) -> None:
        member = _member(B, position=40)
        hear(member, C, Data((batch_of(1, sender=C),)))
        assert hear(member, A, ProposedOrder(1, 40, PROPOSAL.references)) == [Send(A, OrderVote(1))]
        assert placed(member) == []
        hear(member, A, ApplyOrder(1))
        assert placed(member) == ["c#1/0/0+1"]
        assert member.position_next == 41

    def test_a_position_depends_on_the_message_and_on_the_application(self) -> None:
        member = _member(B)
        for sender, packet_id, packet in (
            (C, (2, 1), Data((batch_of(2, sender=C), batch_of(1, 7, sender=C)))),
            (C, (2, 2), Data((batch_of(1, first=2, sender=C),))),
            (A, (0, 5), ProposedOrder(1, 0, (reference_to(batch_of(1, 7, sender=C)),))),
            (A, (0, 6), ApplyOrder(1)),
        ):
            hear(member, sender, packet, packet_id=packet_id)
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (6, 0, 1)

    def test_unordered_messages_go_back_to_their_sender(self) -> None:
        member = _member(C, submit_max=2)
        say(member, batch_of(3, sender=C))
        (data,) = _turn(member)
        hear(member, C, data)
        hear(member, A, PROPOSAL)
        assert [str(batch) for batch in member.unordered()] == ["c#1/0/0+2", "c#1/0/2+1"]
        assert member.unconsumed() == []

    def test_it_reports_consumption_to_the_starter(self) -> None:
        member = _member(B, window=4)
        hear(member, C, Data((batch_of(1, sender=C),)))
        hear(member, A, PROPOSAL)
        hear(member, A, ApplyOrder(1))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]

    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(B)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        assert len(_turn(member)) == 1


def test_what_decides_the_order_is_sent_to_all() -> None:
    to_all = [packet for packet in AgreementProposal.PACKETS if packet.TO_ALL]
    assert to_all == [Data, ProposedOrder, ApplyOrder]
    assert AgreementProposal.orderer(VIEW) == A
