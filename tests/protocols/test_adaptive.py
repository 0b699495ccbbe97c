"""The adaptive order: slots, skips, changes of distribution, stamps, and the named cases.

What it does when all members are correct is also in `scripts/` and in the property suite.
"""

from functools import partial

import pytest

from core.builders import A, B, C, batch_of
from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.protocol import Broadcast, LinkBlocked, OrderingOptions, Packet, SendAll
from priocast.core.stamp import DistributionId, Stamp
from priocast.core.view import View
from priocast.links.frame import LinkOptions
from priocast.member import Member
from priocast.membership.options import MembershipOptions
from priocast.protocols.adaptive.adaptive import Adaptive
from priocast.protocols.adaptive.packets import FilledSlot, SkippedTurns
from priocast.protocols.adaptive.slots import DEFAULT_ID
from protocols.single_member import VIEW, hear, member_of, placed, say, turn
from support.restless_policy import RestlessPolicy

_member = partial(member_of, Adaptive)
FIRST, SECOND = DistributionId(1, 0), DistributionId(2, 1)
OF_A, OF_B, OF_C = ((batch_of(1, sender=sender),) for sender in (A, B, C))


def _turn(member: Adaptive, now: int = 0) -> list[Packet]:
    """What a member sends to all in a turn, without receiving it itself."""
    return [output.packet for output in turn(member, now) if isinstance(output, SendAll)]


def _stamps(member: Adaptive) -> dict[str, str]:
    """The stamps of what waits for the application, without their view."""
    found = {}
    for ordered in member.unconsumed():
        assert ordered.stamp is not None and ordered.stamp.view == member.view.id
        found[str(ordered.batch)] = f"{ordered.stamp.distribution}/{ordered.stamp.number}"
    return found


class TestSlots:
    def test_the_message_in_the_next_slot_takes_one_hop(self) -> None:
        member = _member(C)
        hear(member, A, FilledSlot(DEFAULT_ID, 0, 1, OF_A))
        assert placed(member) == ["a#1/0/0+1"], "nobody owns an earlier slot"

    def test_a_message_waits_for_earlier_slots(self) -> None:
        member = _member(A)
        hear(member, C, FilledSlot(DEFAULT_ID, 0, 1, OF_C))
        hear(member, A, SkippedTurns(DEFAULT_ID, 1))
        assert placed(member) == []
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        assert placed(member) == ["b#1/0/0+1", "c#1/0/0+1"]

    def test_adaptive_skip_advances_slot(self) -> None:
        """A skipped slot counts: the next message has the number after it, and the skip is done."""
        member = _member(A)
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        hear(member, A, SkippedTurns(DEFAULT_ID, 2))
        assert _stamps(member) == {"b#1/0/0+1": "0.0/1"}
        hear(member, C, SkippedTurns(DEFAULT_ID, 1))
        hear(member, B, FilledSlot(DEFAULT_ID, 1, 2, (batch_of(1, first=1, sender=B),)))
        assert _stamps(member) == {"b#1/0/0+1": "0.0/1", "b#1/0/1+1": "0.0/4"}

    def test_numbers_count_every_message_of_a_slot(self) -> None:
        member = _member(C)
        hear(member, A, FilledSlot(DEFAULT_ID, 0, 1, (batch_of(3), batch_of(2, 7))))
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        assert _stamps(member) == {"a#1/0/0+3": "0.0/0", "a#1/7/0+2": "0.0/3", "b#1/0/0+1": "0.0/5"}
        first = member.unconsumed()[0].stamp
        assert first is not None and first.after(2) == Stamp(VIEW.id, DEFAULT_ID, 2)


class TestSkips:
    def test_only_messages_cause_skips(self) -> None:
        member = _member(A)
        hear(member, C, SkippedTurns(DEFAULT_ID, 5))
        assert _turn(member) == []
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        assert _turn(member) == [SkippedTurns(DEFAULT_ID, 1)]
        assert _turn(member) == []

    def test_a_silent_member_skips_ever_more_turns_in_advance(self) -> None:
        member = _member(A)
        skipped, packets = [], 0
        for number in range(20):
            batch = batch_of(1, first=number, sender=B)
            hear(member, B, FilledSlot(DEFAULT_ID, number, number + 1, (batch,)))
            for packet in _turn(member):
                assert isinstance(packet, SkippedTurns)
                skipped.append(packet.turn_next)
                packets += 1
        assert skipped == [1, 3, 6, 11, 20]
        say(member, batch_of(1))
        assert _turn(member) == [FilledSlot(DEFAULT_ID, 20, 24, OF_A)]
        hear(member, B, FilledSlot(DEFAULT_ID, 30, 31, (batch_of(1, first=20, sender=B),)))
        assert _turn(member) == [SkippedTurns(DEFAULT_ID, 31)], "it was not silent"

    def test_a_packet_with_messages_skips_what_others_wait_for(self) -> None:
        member = _member(A)
        hear(member, B, FilledSlot(DEFAULT_ID, 5, 6, OF_B))
        say(member, batch_of(1))
        assert _turn(member) == [FilledSlot(DEFAULT_ID, 0, 6, OF_A)]

    def test_a_packet_leaves_spare_turns_for_a_sender_that_is_late(self) -> None:
        """Without them it would fall back by a whole interval, and everybody would wait for it again."""
        member = _member(A)
        say(member, batch_of(1))
        assert _turn(member) == [FilledSlot(DEFAULT_ID, 0, 4, OF_A)]
        hear(member, B, FilledSlot(DEFAULT_ID, 4, 8, OF_B))
        assert _turn(member) == [SkippedTurns(DEFAULT_ID, 5)], "the next turn is close to what it waited for"

    def test_while_a_link_is_full_nothing_is_sent(self) -> None:
        member = _member(A)
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        say(member, batch_of(1))
        member.step(LinkBlocked(C), now=0)
        assert _turn(member) == []

    def test_a_member_has_few_slots_that_are_not_ordered(self) -> None:
        member = _member(B, window=1_000)
        for number in range(20):
            say(member, batch_of(1, first=number, sender=B))
            _turn(member)
        assert member.backlog == 12
        hear(member, C, FilledSlot(DEFAULT_ID, 30, 31, OF_C))
        assert _turn(member) == [], "its next messages fill the slots soon"


class TestChanges:
    def test_adaptive_skip_with_higher_pending(self) -> None:
        """A member that has changed fills no slot of the old distribution, although its messages wait."""
        member = _member(B)
        hear(member, A, FilledSlot(FIRST, 0, 1, OF_A, weights=(2, 1, 1)))
        hear(member, B, SkippedTurns(DEFAULT_ID, 1))
        hear(member, C, FilledSlot(DEFAULT_ID, 0, 1, OF_C))
        assert placed(member) == ["c#1/0/0+1"]

    def test_adaptive_change_waits_for_all(self) -> None:
        """Figure 4, condition 3: whoever has not changed may still send in the old distribution."""
        member = _member(B)
        hear(member, A, FilledSlot(FIRST, 0, 1, OF_A, weights=(2, 1, 1)))
        hear(member, B, SkippedTurns(FIRST, 0, (2, 1, 1)))
        assert placed(member) == [], "c may send in the old distribution"
        hear(member, C, FilledSlot(DEFAULT_ID, 0, 1, OF_C))
        assert placed(member) == ["c#1/0/0+1"]
        hear(member, C, SkippedTurns(FIRST, 0, (2, 1, 1)))
        assert _stamps(member) == {"c#1/0/0+1": "0.0/2", "a#1/0/0+1": "1.0/0"}

    def test_adaptive_weights_after_loss(self) -> None:
        """Every member's first packet carries the weights: that of the proposer may be lost with it."""
        member = _member(B)
        hear(member, A, SkippedTurns(FIRST, 0, (4, 2, 1)))
        assert _turn(member) == [SkippedTurns(FIRST, 0, (4, 2, 1))]
        say(member, batch_of(1, sender=B))
        assert _turn(member) == [FilledSlot(FIRST, 0, 4, OF_B)], "only the first one"
        other = _member(C)
        hear(other, B, SkippedTurns(FIRST, 0, (4, 2, 1)))
        hear(other, B, FilledSlot(FIRST, 0, 1, OF_B))
        assert other.weights == (4, 2, 1), "nothing has arrived from a"

    def test_adaptive_new_view_default(self) -> None:
        """A new view begins with its default distribution: its members may have used different ones last.

        Here b has not learned of the last distribution when the view ends. In the next view it gives the
        same stamp as a.
        """
        told, untold = _member(A), _member(B)
        hear(told, C, SkippedTurns(FIRST, 0, (4, 2, 1)))
        assert (told.weights, untold.weights) == ((4, 2, 1), (1, 1, 1))
        found = []
        for me in (A, B):
            member = Adaptive(me, View(2, VIEW.members), OrderingOptions())
            hear(member, C, FilledSlot(DEFAULT_ID, 0, 9, OF_C))
            hear(member, A, SkippedTurns(DEFAULT_ID, 2))
            hear(member, B, SkippedTurns(DEFAULT_ID, 1))
            found.append(_stamps(member))
        assert found[0] == found[1] == {"c#1/0/0+1": "0.0/2"}, "b has another weight"

    def test_a_distribution_may_be_passed_over(self) -> None:
        """Members change to the newest one that they know, and in the same order."""
        member = _member(C)
        hear(member, A, FilledSlot(FIRST, 0, 1, OF_A, weights=(2, 1, 1)))
        hear(member, B, FilledSlot(SECOND, 0, 1, OF_B, weights=(1, 2, 1)))
        assert _turn(member) == [SkippedTurns(SECOND, 0, (1, 2, 1))]
        for peer in (C, A):
            hear(member, peer, SkippedTurns(SECOND, 0, (1, 2, 1)))
        assert _stamps(member) == {"a#1/0/0+1": "1.0/0", "b#1/0/0+1": "2.1/0"}

    def test_nothing_is_proposed_while_members_change(self) -> None:
        member = _member(A, adaptation=f"{RestlessPolicy.NAME}:1")
        hear(member, B, FilledSlot(DEFAULT_ID, 0, 1, OF_B))
        (announced,) = _turn(member)
        assert isinstance(announced, SkippedTurns) and announced.distribution == FIRST
        hear(member, A, announced)
        hear(member, B, FilledSlot(DEFAULT_ID, 1, 2, (batch_of(1, first=1, sender=B),)))
        assert _turn(member) == [], "b and c have not changed"
        for peer in (B, C):
            hear(member, peer, SkippedTurns(FIRST, 0, announced.weights))
        (proposed,) = _turn(member)
        assert isinstance(proposed, SkippedTurns) and proposed.distribution == DistributionId(2, 0)


def _side(*heard: tuple[ProcessId, Packet]) -> dict[str, str]:
    """The stamps at a member of a view that has ended after these packets."""
    member = _member(B)
    for number, (sender, packet) in enumerate(heard, 1):
        hear(member, sender, packet, (VIEW.members.index(sender), number))
    member.close()
    return _stamps(member)


class TestPartitions:
    NEXT_OF_A = FilledSlot(DEFAULT_ID, 1, 2, (batch_of(2, first=1),))
    SHARED = (
        (A, FilledSlot(DEFAULT_ID, 0, 1, OF_A)),
        (B, SkippedTurns(DEFAULT_ID, 2)),
        (C, FilledSlot(FIRST, 0, 1, OF_C, (1, 1, 4))),
    )
    OTHERS = ((A, NEXT_OF_A), (A, SkippedTurns(FIRST, 1, (1, 1, 4))), (B, SkippedTurns(FIRST, 1, (1, 1, 4))))

    def test_adaptive_different_sets_same_stamp(self) -> None:
        """Members that have received different packets give the same stamp to what both have ordered."""
        one, other = _side(*self.SHARED), _side(*self.SHARED, *self.OTHERS)
        assert one == {"a#1/0/0+1": "0.0/0"}
        assert other == {**one, "a#1/0/1+2": "0.0/3", "c#1/0/0+1": "1.0/0"}

    def test_what_follows_an_open_slot_is_sent_again(self) -> None:
        """At the end of a view an open slot is not skipped: on the other side it may be filled."""
        member = _member(B)
        say(member, batch_of(1, sender=B))
        (own,) = _turn(member)
        hear(member, B, own)
        member.close()
        assert placed(member) == []
        assert [str(batch) for batch in member.unordered()] == ["b#1/0/0+1"]

    def test_adaptive_partition_unique_stamps(self) -> None:
        """Two sides of a partition go on in views of the same number; their stamps differ all the same."""
        found = set()
        for me in (A, B):
            member = Adaptive(me, View(2, (me,)), OrderingOptions())
            say(member, batch_of(1, sender=me))
            (own,) = _turn(member)
            hear(member, me, own)
            (ordered,) = member.unconsumed()
            found.add(ordered.stamp)
        assert len(found) == 2


class TestBottleneck:
    @pytest.mark.parametrize(
        ("weights", "milliseconds"), [((1, 1, 1), 250), ((1, 4, 1), 125), ((4, 1, 4), 750)]
    )
    def test_a_member_with_a_large_weight_is_named_sooner(
        self, weights: tuple[int, ...], milliseconds: int
    ) -> None:
        member = _member(A)
        for peer in (A, B):
            hear(member, peer, SkippedTurns(FIRST, 0 if peer == B else 99, weights))
        hear(member, C, FilledSlot(FIRST, 9, 99, OF_C, weights), now=1_000)
        due = 1_000 + milliseconds * 1_000_000
        assert member.inspect(due - 1).bottleneck is None
        assert member.inspect(due).bottleneck == B

    def test_nobody_is_named_while_nothing_waits(self) -> None:
        assert _member(A).inspect(10**12).bottleneck is None


@pytest.mark.parametrize(
    ("adaptation", "problem"),
    [
        ("nonsense", "there is no such policy; there are: decay, "),
        ("sliding-window:0", "must be between 1 and 1000 packets"),
        ("decay:x", "the halving time must be between 1 and 3600000 milliseconds"),
        ("equal:1", "equal has no argument"),
        ("x" * 1_001, "longer than 1000 characters"),
    ],
)
def test_an_invalid_policy_is_rejected_where_it_is_given(adaptation: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        Member(
            A,
            "sequencer-ub",
            OrderingOptions(adaptation=adaptation),
            MembershipOptions(founders=1),
            LinkOptions(),
        )


def test_priorities_decide_what_fills_the_next_slot() -> None:
    member = _member(A)
    for level in (0, 200, 100):
        member.step(Broadcast(batch_of(1, level)), 0)
    (packet,) = _turn(member)
    assert [batch.level for batch in packet.messages] == [200, 100, 0]
