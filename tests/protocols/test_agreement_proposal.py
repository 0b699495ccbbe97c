"""Agreement on a proposed order: what is refused, what a round needs, and what is counted when.

What it does when everybody behaves is in `scripts/` and in the property suite.
"""

from functools import partial

import pytest

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.message import reference_to
from priocast.core.protocol import Consume, LinkBlocked, MoreToDo, Packet, Send, SendAll
from priocast.core.starvation import Starvation
from priocast.protocols.agreement.proposal import (
    AgreementProposal,
    Apply,
    Data,
    Holding,
    Propose,
    StartRound,
    Vote,
)
from priocast.protocols.flow.grants import Consumed
from protocols.orders import AGEING, FLUSH
from protocols.single_member import VIEW, hear, member_of, placed, say, say_frames, turn

PROPOSAL = Propose(1, 0, (reference_to(batch_of(1, sender=C)),))

_member = partial(member_of, AgreementProposal)


def _turn(member: AgreementProposal) -> list[Packet]:
    """What a member says in a turn to all, or to each; it does not hear that itself."""
    outputs = turn(member)
    return [output.packet for output in outputs if not isinstance(output, MoreToDo)]  # type: ignore[union-attr]


def _starter(count: int, **options: int) -> AgreementProposal:
    """A starter that has so many messages of c, and has started a round."""
    starter = _member(A, **options)
    hear(starter, C, Data((batch_of(count, sender=C),)))
    assert _turn(starter) == [StartRound(1, (0, 0, count))]
    return starter


def _answered(count: int, **options: int) -> AgreementProposal:
    """A starter to which a majority has answered that it has all that it asked for."""
    starter = _starter(count, **options)
    for member in (A, B):
        hear(starter, member, Holding(1, (0, 0, count)))
    return starter


def _answered_again(**options: int) -> AgreementProposal:
    """A starter that has ordered a message of c, and has an answer to what it asked about the next one."""
    starter = _answered(1, **options)
    _turn(starter)
    for member in (A, B):
        hear(starter, member, Vote(1))
    assert _turn(starter) == [Apply(1)]
    hear(starter, C, Data((batch_of(1, first=1, sender=C),)))
    assert _turn(starter) == [StartRound(2, (0, 0, 2))]
    for member in (A, B):
        hear(starter, member, Holding(2, (0, 0, 2)))
    return starter


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "packet", [Holding(1, (0, 0, 0)), Vote(1), Consumed(0, 5)], ids=lambda packet: packet.name()
    )
    def test_who_takes_another_member_for_the_starter(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 takes b#1 for the starter, which is a#1"):
            hear(_member(B), C, packet)

    @pytest.mark.parametrize(
        "packet", [StartRound(1, (0, 0, 0)), PROPOSAL, Apply(1)], ids=lambda packet: packet.name()
    )
    def test_a_second_starter(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="c#1 acts as the starter, which is a#1"):
            hear(_member(B), C, packet)

    @pytest.mark.parametrize("counts", [(), (1, 1), (1, 1, 1, 1)])
    def test_counts_of_other_members_than_the_view_s(self, counts: tuple[int, ...]) -> None:
        with pytest.raises(PeerFault, match=f"counts the messages of {len(counts)} members"):
            hear(_member(B), A, StartRound(1, counts))
        with pytest.raises(PeerFault, match=f"counts the messages of {len(counts)} members"):
            hear(_starter(1), B, Holding(1, counts))

    def test_a_forged_sender(self) -> None:
        with pytest.raises(PeerFault, match="c#1 submits a message of b#1"):
            hear(_member(A), C, Data((batch_of(1, sender=B),)))

    def test_a_second_proposal_in_a_round_or_before_the_last_is_applied(self) -> None:
        for number in (1, 2):
            member = _member(B)
            hear(member, A, PROPOSAL)
            again = Propose(number, 1, (reference_to(batch_of(1, first=1, sender=C)),))
            with pytest.raises(PeerFault, match=f"a#1 proposes round {number} while round 1 lasts"):
                hear(member, A, again)

    def test_a_round_that_is_over(self) -> None:
        member = _member(B)
        hear(member, A, PROPOSAL)
        hear(member, A, Apply(1))
        with pytest.raises(PeerFault, match="a#1 proposes round 1 while round 1 lasts"):
            hear(member, A, PROPOSAL)

    @pytest.mark.parametrize("position", [0, 41])
    def test_a_gap_or_a_repetition_in_the_order(self, position: int) -> None:
        with pytest.raises(PeerFault, match=f"a#1 proposes position {position}; expected 40"):
            hear(_member(B, position=40), A, Propose(1, position, PROPOSAL.references))

    @pytest.mark.parametrize("number", [1, 2])
    def test_the_application_of_what_was_not_proposed(self, number: int) -> None:
        member = _member(B)
        if number == 2:
            hear(member, A, PROPOSAL)
        with pytest.raises(PeerFault, match=f"a#1 applies round {number}, which is not proposed"):
            hear(member, A, Apply(number))

    def test_a_place_for_a_message_that_is_not_next_of_its_sender(self) -> None:
        member = _member(B)
        hear(member, C, Data((batch_of(2, sender=C),)))
        hear(member, A, Propose(1, 0, (reference_to(batch_of(1, first=1, sender=C)),)))
        with pytest.raises(PeerFault, match="c#1/0/1\\+1 is ordered, where number 0 is next"):
            hear(member, A, Apply(1))

    def test_consumption_that_cannot_be(self) -> None:
        with pytest.raises(PeerFault, match="b#1 reports 5 messages consumed, which cannot be"):
            hear(_member(A), B, Consumed(5, 16))


class TestTheStarter:
    def test_nothing_is_asked_while_there_is_nothing_to_order(self) -> None:
        assert _turn(_member(A)) == []

    def test_it_waits_for_a_majority_of_answers_and_asks_nothing_more_until_the_round_is_over(self) -> None:
        starter = _starter(2)
        hear(starter, A, Holding(1, (0, 0, 2)))
        assert _turn(starter) == []
        hear(starter, A, Holding(1, (0, 0, 2)))
        assert _turn(starter) == [], "the same member twice is no majority"
        hear(starter, C, Holding(1, (0, 0, 2)))
        assert _turn(starter) == [Propose(1, 0, (reference_to(batch_of(2, sender=C)),))]
        assert _turn(starter) == []

    def test_what_those_who_answered_have_in_common_is_proposed_and_the_rest_later(self) -> None:
        starter = _starter(2)
        hear(starter, B, Data((batch_of(1, sender=B),)))
        hear(starter, A, Holding(1, (0, 1, 2)))
        hear(starter, C, Holding(1, (0, 0, 2)))
        assert _turn(starter) == [Propose(1, 0, (reference_to(batch_of(2, sender=C)),))]
        for member in (A, B):
            hear(starter, member, Vote(1))
        assert _turn(starter) == [Apply(1)]
        assert _turn(starter) == [StartRound(2, (0, 1, 2))]

    def test_it_waits_for_a_majority_of_votes_of_this_round(self) -> None:
        starter = _answered(1)
        assert isinstance(_turn(starter)[0], Propose)
        hear(starter, B, Vote(1))
        hear(starter, B, Vote(1))
        assert _turn(starter) == []
        hear(starter, C, Vote(2))
        assert _turn(starter) == []
        hear(starter, C, Vote(1))
        assert _turn(starter) == [Apply(1)]
        hear(starter, A, Vote(1))
        assert _turn(starter) == []

    def test_an_answer_of_another_round_is_ignored(self) -> None:
        starter = _starter(1)
        for member in (B, C):
            hear(starter, member, Holding(2, (0, 0, 1)))
        assert _turn(starter) == []

    def test_what_is_ordered_is_not_ordered_again(self) -> None:
        starter = _answered_again()
        assert _turn(starter) == [Propose(2, 1, (reference_to(batch_of(1, first=1, sender=C)),))]

    def test_the_most_urgent_goes_first_as_far_as_there_is_room(self) -> None:
        starter = _member(A, window=3)
        low, high = batch_of(3, 5, sender=C), batch_of(2, 9, sender=B)
        hear(starter, C, Data((low,)))
        hear(starter, B, Data((high,)))
        _turn(starter)
        for member in (A, B):
            hear(starter, member, Holding(1, (0, 2, 3)))
        references = (reference_to(high), reference_to(batch_of(1, 5, sender=C)))
        assert _turn(starter) == [Propose(1, 0, references, "a")]
        assert starter.backlog == 2

    @pytest.mark.parametrize("policy", [AGEING, FLUSH], ids=str)
    def test_what_has_waited_long_enough_since_it_came_goes_before_what_is_urgent(
        self, policy: Starvation
    ) -> None:
        low, high = batch_of(1, 1, sender=C), batch_of(1, 9, sender=B)
        for waited_ms, expected in ((7, (high, low)), (10, (low, high))):
            starter = _member(A, starvation=policy)
            hear(starter, C, Data((low,)))
            hear(starter, B, Data((high,)), now=waited_ms * MILLISECOND)
            _turn(starter)
            for member in (A, B):
                hear(starter, member, Holding(1, (0, 1, 1)), now=waited_ms * MILLISECOND)
            assert _turn(starter) == [Propose(1, 0, tuple(map(reference_to, expected)))]

    def test_a_round_for_which_there_is_no_room_ends_and_lets_what_is_urgent_have_the_next_one(self) -> None:
        starter = _answered_again(window=1)
        assert _turn(starter) == []
        assert _turn(starter) == [], "there is nothing new, and no room for what there is"
        assert starter.bottleneck() == A
        hear(starter, B, Data((batch_of(1, 255, sender=B),)))
        assert _turn(starter) == [StartRound(3, (0, 1, 2))]

    def test_nobody_can_consume_what_is_being_voted_on(self) -> None:
        starter = _answered(2, window=1)
        assert _turn(starter) == [Propose(1, 0, (reference_to(batch_of(1, sender=C)),), "a")]
        assert starter.bottleneck() is None
        for member in (A, B):
            hear(starter, member, Vote(1))
        assert _turn(starter) == [Apply(1)]
        assert starter.bottleneck() == A

    def test_while_a_link_is_full_nothing_is_proposed(self) -> None:
        starter = _answered(1)
        starter.step(LinkBlocked(B), now=0)
        assert _turn(starter) == []

    def test_what_waits_is_told_where_it_waits(self) -> None:
        starter, member = _answered(3, window=1), _member(B, submit_max=1)
        _turn(starter)
        assert starter.waiting(now=9) == [(0, 2, 9)]
        say(member, batch_of(3, 7, sender=B), now=4)
        turn(member, now=5)
        assert member.waiting(now=9) == [(7, 2, 5)]

    def test_it_is_idle_when_everything_has_its_place(self) -> None:
        starter = _member(A)
        assert starter.idle
        hear(starter, C, Data((batch_of(1, sender=C),)))
        assert (starter.idle, starter.settled) == (False, True)
        _turn(starter)
        for member in (A, B):
            hear(starter, member, Holding(1, (0, 0, 1)))
        (proposal,) = _turn(starter)
        hear(starter, A, proposal)
        for member in (A, B):
            hear(starter, member, Vote(1))
        assert not starter.idle
        (application,) = _turn(starter)
        assert not starter.idle
        hear(starter, A, application)
        assert starter.idle


class TestADestination:
    def test_it_answers_when_it_has_all_that_the_starter_had(self) -> None:
        member = _member(B)
        hear(member, C, Data((batch_of(1, sender=C),)))
        assert hear(member, A, StartRound(1, (1, 0, 2))) == []
        assert hear(member, A, Data((batch_of(1),))) == []
        heard = hear(member, C, Data((batch_of(3, first=1, sender=C),)))
        assert heard == [Send(A, Holding(1, (1, 0, 4)))]
        assert hear(member, C, Data((batch_of(1, first=4, sender=C),))) == [], "once is enough"

    def test_it_answers_the_last_question_only(self) -> None:
        member = _member(B)
        hear(member, A, StartRound(1, (0, 0, 1)))
        hear(member, A, StartRound(2, (0, 0, 1)))
        assert hear(member, C, Data((batch_of(1, sender=C),))) == [Send(A, Holding(2, (0, 0, 1)))]

    def test_it_votes_and_places_when_the_round_is_applied(self) -> None:
        member = _member(B, position=40)
        hear(member, C, Data((batch_of(1, sender=C),)))
        assert hear(member, A, Propose(1, 40, PROPOSAL.references)) == [Send(A, Vote(1))]
        assert placed(member) == []
        hear(member, A, Apply(1))
        assert placed(member) == ["c#1/0/0+1"]
        assert member.position_next == 41

    def test_a_place_rests_on_the_message_and_on_the_application(self) -> None:
        member = _member(B)
        for sender, packet_id, packet in (
            (C, (2, 1), Data((batch_of(2, sender=C), batch_of(1, 7, sender=C)))),
            (C, (2, 2), Data((batch_of(1, first=2, sender=C),))),
            (A, (0, 5), Propose(1, 0, (reference_to(batch_of(1, 7, sender=C)),))),
            (A, (0, 6), Apply(1)),
        ):
            hear(member, sender, packet, packet_id=packet_id)
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (6, 0, 1)

    def test_what_has_no_place_goes_back_to_its_sender(self) -> None:
        member = _member(C, submit_max=2)
        say(member, batch_of(3, sender=C))
        (data,) = _turn(member)
        hear(member, C, data)
        hear(member, A, PROPOSAL)
        assert [str(batch) for batch in member.unordered()] == ["c#1/0/0+2", "c#1/0/2+1"]
        assert member.unconsumed() == []

    def test_it_tells_the_starter_what_was_consumed(self) -> None:
        member = _member(B, window=4)
        hear(member, C, Data((batch_of(1, sender=C),)))
        hear(member, A, PROPOSAL)
        hear(member, A, Apply(1))
        assert member.step(Consume(1), now=0) == [Send(A, Consumed(1, 4))]

    def test_a_turn_ends_after_some_frames_and_asks_for_another(self) -> None:
        member = _member(B)
        say_frames(member, 9)
        outputs = turn(member)
        assert [type(output) for output in outputs] == [SendAll] * 8 + [MoreToDo]
        assert len(_turn(member)) == 1


def test_what_decides_about_the_order_is_for_all_and_the_rest_is_not() -> None:
    to_all = [packet for packet in AgreementProposal.PACKETS if packet.TO_ALL]
    assert to_all == [Data, Propose, Apply]
    assert AgreementProposal.orderer(VIEW) == A
