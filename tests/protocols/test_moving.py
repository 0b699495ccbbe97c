"""The moving sequencers: one token, which is accepted late and rests, what is handed over, what is refused.

What they do when everybody behaves is in `scripts/` and in the property suite.
"""

from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, TO_ALL, Reference, pack
from priocast.core.protocol import (
    WINDOW_MAX,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Output,
    Packet,
    Send,
)
from priocast.core.starvation import Ageing, Strict
from priocast.core.view import View
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Consumed
from priocast.protocols.numbering.base import Grant
from priocast.protocols.ring import moving_uub
from priocast.protocols.ring.base import RingProtocol, Token, Wanted, Wish
from priocast.protocols.ring.moving import MovingSequencer
from priocast.protocols.ring.moving_bb import BareToken, Data, MovingBb, Order
from priocast.protocols.ring.moving_ub import LadenToken, MovingUb, Ordered, Pending, Submit
from priocast.protocols.ring.moving_uub import MovingUub, Numbered
from protocols.harness import Group, Sent
from protocols.harness import Received as HasReceived
from protocols.schedules import NAMES, Broadcast, Case, Flow, cases, check
from protocols.single_member import VIEW, hear, member_of, packets, say, turn

LINKS = len(NAMES) * (len(NAMES) - 1)
STRANGER = ProcessId("x")
WISHES = (Wish(),) * 3
MOVING = ["moving-ub", "moving-bb", "moving-uub"]

_ub = partial(member_of, MovingUb)
_bb = partial(member_of, MovingBb)
_uub = partial(member_of, MovingUub)


def _token(outputs: list[Output]) -> LadenToken:
    (token,) = packets(outputs, LadenToken)
    return token


def skewed_cases(order: str, prioritised: bool = True) -> st.SearchStrategy[Case]:
    """Groups in which something is always to be ordered, and some links are much slower than others.

    So the token often comes by two quick links before what was ordered comes by the slow one.
    """
    who, level = st.integers(0, len(NAMES) - 1), st.sampled_from([0, 100, 255])
    said = st.builds(Broadcast, who, level, st.just((1,)), st.just(TO_ALL))
    flow = st.builds(Flow, st.integers(0, 2**LINKS - 1))
    bursts = st.lists(st.tuples(said, flow, flow), min_size=5, max_size=15)
    actions = bursts.map(lambda bursts: [action for burst in bursts for action in burst])
    options = st.builds(
        OrderingOptions, prioritised=st.just(prioritised), window=st.sampled_from([1, 2, 4, 50])
    )
    return st.builds(Case, st.just(order), st.integers(3, len(NAMES)), options, actions)


@pytest.mark.parametrize("prioritised", [True, False], ids=["prioritised", "plain"])
@pytest.mark.parametrize("order", MOVING)
def test_moving_no_double_sequence(order: str, prioritised: bool) -> None:
    """A token that is faster than the order does no harm: no message gets two places, and no place two."""

    @settings(max_examples=150)
    @given(skewed_cases(order, prioritised))
    def holds(case: Case) -> None:
        check(case)

    holds()


class TestTheToken:
    @pytest.mark.parametrize("order", MOVING)
    def test_there_is_one_token_at_any_time(self, order: str) -> None:
        @settings(max_examples=200)
        @given(cases(order, True, Strict()))
        def holds(case: Case) -> None:
            group = Group(NAMES[: case.size], case.order, case.options)
            serials = count()
            for action in case.actions:
                action.happen(group, serials)
                assert _tokens(group) == 1

        holds()

    @pytest.mark.parametrize("order", MOVING)
    def test_it_visits_every_member_in_the_order_of_the_view(self, order: str) -> None:
        group = Group(NAMES, order, OrderingOptions())
        for serial in range(2 * len(NAMES)):
            group.broadcast("c", 7, [b"%d" % serial])
            assert group.settle(rounds_max=50)
        passed = [said.member for said in group.journal if isinstance(said, Sent) and _is_token(said.packet)]
        assert passed == 2 * NAMES

    @pytest.mark.parametrize("order", MOVING)
    def test_it_stays_where_there_is_nobody_else(self, order: str) -> None:
        group = Group(["a"], order, OrderingOptions())
        group.broadcast("a", 7, [b"1", b"2"])
        assert group.settle(rounds_max=20)
        assert not any(isinstance(said, Sent) and _is_token(said.packet) for said in group.journal)
        assert _tokens(group) == 1

    @pytest.mark.parametrize("order", MOVING)
    def test_a_holder_passes_it_on_after_a_turn_s_worth(self, order: str) -> None:
        group = Group(["a", "b"], order, OrderingOptions(window=WINDOW_MAX))
        for level in range(FRAMES_PER_TURN + 4):
            group.broadcast("a", level, [bytes(BATCH_BYTES_CUT)])
            group.broadcast("b", level, [bytes(BATCH_BYTES_CUT)])
        assert group.settle(rounds_max=200)
        visits, orders = [], 0
        for said in group.journal:
            if isinstance(said, Sent) and _is_token(said.packet):
                visits.append(orders)
                orders = 0
            elif isinstance(said, Sent) and isinstance(said.packet, Ordered | Order | Grant):
                orders += 1
        assert len(visits) > 2
        assert max(visits) <= FRAMES_PER_TURN

    def test_who_is_alone_takes_another_turn_if_one_was_too_short(self) -> None:
        alone = MovingUb(A, View(1, (A,)), OrderingOptions(window=WINDOW_MAX))
        for level in range(FRAMES_PER_TURN + 1):
            hear(alone, A, Submit((batch_of(1, level, size=BATCH_BYTES_CUT),)))
        assert MoreToDo() in turn(alone)
        assert len(packets(turn(alone), Ordered)) == 1

    @pytest.mark.parametrize(
        ("member", "token"),
        [
            (_bb(A), BareToken(0)),
            (_ub(A), LadenToken(0, WISHES, ())),
            (_uub(A), moving_uub.LadenToken(0, WISHES, ())),
        ],
        ids=MOVING,
    )
    def test_a_second_one_is_refused(self, member: RingProtocol, token: Packet) -> None:
        with pytest.raises(PeerFault, match="b#1 passes a second token to a#1"):
            hear(member, B, token)

    def test_a_second_one_is_refused_while_the_first_waits(self) -> None:
        member = _bb(B)
        hear(member, A, BareToken(5))
        with pytest.raises(PeerFault, match="a second token"):
            hear(member, C, BareToken(6))

    def test_one_for_a_place_that_is_taken_is_refused(self) -> None:
        member = _ub(B)
        hear(member, A, Ordered(0, (batch_of(2),)))
        with pytest.raises(PeerFault, match="a token for 1; 2 is next"):
            hear(member, A, LadenToken(1, WISHES, ()))

    def test_a_resting_holder_lets_go_only_where_there_is_room(self) -> None:
        holder = _ub(A, window=1)
        hear(holder, C, Submit((batch_of(1, sender=C),)))
        turn(holder)
        hear(holder, A, Ordered(0, (batch_of(1, sender=C),)))
        hear(holder, C, LadenToken(1, WISHES, ()))
        hear(holder, B, Wanted(Wish(1, 7)))
        assert not packets(turn(holder), LadenToken)
        for member in VIEW.members:
            hear(holder, member, Consumed(1, 1))
        assert packets(turn(holder), LadenToken)

    def test_it_does_not_go_where_the_link_is_full(self) -> None:
        holder = _ub(A)
        hear(holder, B, Wanted(Wish(1, 7)))
        hear(holder, C, Wanted(Wish(1, 7)))
        holder.step(LinkBlocked(B), now=0)
        (output,) = turn(holder)
        assert isinstance(output, Send)
        assert output.to == C

    def test_who_has_something_and_cannot_send_keeps_it(self) -> None:
        """Or two members with full links would pass it to each other for ever."""
        holder = _ub(A)
        holder.step(LinkBlocked(B), now=0)
        hear(holder, A, Submit((batch_of(1),)))
        hear(holder, C, Wanted(Wish(1, 7)))
        assert turn(holder) == []
        holder.step(LinkCleared(B), now=0)
        assert len(packets(turn(holder), Ordered)) == 1


def _is_token(packet: Packet) -> bool:
    return isinstance(packet, Token)


def _tokens(group: Group) -> int:
    """How many tokens there are: at members, and on their way."""
    held = on_the_way = 0
    for member in group.members.values():
        protocol = member.protocol
        assert isinstance(protocol, RingProtocol)
        held += (protocol._number_next is not None) + (protocol._token is not None)
    for said in group.journal:
        on_the_way += isinstance(said, Sent) and _is_token(said.packet)
        on_the_way -= isinstance(said, HasReceived) and _is_token(said.packet)
    return held + on_the_way


class TestPlaces:
    @pytest.mark.parametrize("member", [_ub(B), _bb(B)], ids=MOVING[:2])
    def test_no_place_is_given_twice(self, member: MovingSequencer) -> None:
        packet = Ordered if isinstance(member, MovingUb) else Order
        messages = (batch_of(1),) if packet is Ordered else (Reference(A, 0, 0, 1),)
        hear(member, A, packet(0, messages))  # type: ignore[arg-type]
        with pytest.raises(PeerFault, match="c#1 orders position 0; 1 is next"):
            hear(member, C, packet(0, messages))  # type: ignore[arg-type]
        hear(member, A, packet(5, messages))  # type: ignore[arg-type]
        with pytest.raises(PeerFault, match="c#1 orders position 5; 1 is next"):
            hear(member, C, packet(5, messages))  # type: ignore[arg-type]

    def test_no_place_is_given_that_no_window_allows(self) -> None:
        with pytest.raises(PeerFault, match="which no window allows"):
            hear(_ub(B), A, Ordered(WINDOW_MAX + 1, (batch_of(1),)))

    def test_nobody_orders_while_this_member_has_the_token(self) -> None:
        with pytest.raises(PeerFault, match="b#1 orders position 0 although a#1 has the token"):
            hear(_ub(A), B, Ordered(0, (batch_of(1, sender=B),)))

    def test_nobody_orders_what_is_behind_a_token_that_waits(self) -> None:
        member = _ub(B)
        hear(member, A, LadenToken(1, WISHES, ()))
        with pytest.raises(PeerFault, match="although b#1 has the token"):
            hear(member, C, Ordered(1, (batch_of(1),)))

    def test_no_message_is_ordered_twice(self) -> None:
        member = _bb(B)
        hear(member, A, Order(0, (Reference(C, 0, 0, 1),)))
        with pytest.raises(PeerFault, match=r"a#1 orders c#1/0/0\+1, where number 1 of that level is next"):
            hear(member, A, Order(1, (Reference(C, 0, 0, 1),)))

    def test_no_stranger_s_message_is_ordered(self) -> None:
        with pytest.raises(PeerFault, match="which is no member's"):
            hear(_ub(B), A, Ordered(0, (batch_of(1, sender=STRANGER),)))

    def test_a_place_rests_on_the_order_and_on_the_data(self) -> None:
        member = _bb(B)
        hear(member, A, Order(0, (Reference(C, 0, 0, 1),)), packet_id=(0, 4))
        hear(member, C, Data((batch_of(1, sender=C),)), packet_id=(2, 3))
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (4, 0, 3)

    def test_a_place_rests_on_all_orders_before_it_whenever_they_come(self) -> None:
        member = _ub(C)
        hear(member, B, Ordered(1, (batch_of(1, sender=B),)), packet_id=(1, 7))
        hear(member, A, Ordered(0, (batch_of(1),)), packet_id=(0, 2))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(2, 0, 0), (2, 7, 0)]

    def test_a_number_s_place_rests_on_all_messages_before_it_whenever_they_come(self) -> None:
        member = _uub(C)
        hear(member, B, Numbered(1, (batch_of(1, sender=B),), "", 0), packet_id=(1, 7))
        hear(member, A, Numbered(0, (batch_of(1),), "", 0), packet_id=(0, 2))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(2, 0, 0), (2, 7, 0)]


class TestSubmissions:
    def test_a_sender_stays_with_one_member_until_all_its_messages_have_places(self) -> None:
        sender = _ub(C)
        say(sender, batch_of(1, sender=C))
        assert turn(sender) == [Send(A, Submit((batch_of(1, sender=C),)))]
        hear(sender, A, Ordered(0, (batch_of(1),)))
        say(sender, batch_of(1, first=1, sender=C))
        assert turn(sender) == [Send(A, Submit((batch_of(1, first=1, sender=C),)))]
        hear(sender, B, Ordered(1, (batch_of(2, sender=C),)))
        say(sender, batch_of(1, first=2, sender=C))
        outputs = turn(sender)
        assert outputs == [Send(C, Submit((batch_of(1, first=2, sender=C),)))]

    def test_what_comes_to_a_full_link_waits(self) -> None:
        sender = _ub(C)
        sender.step(LinkBlocked(A), now=0)
        say(sender, batch_of(1, sender=C))
        assert turn(sender) == []
        assert sender.backlog == 1

    def test_a_member_without_the_token_asks_for_it_once(self) -> None:
        member = _ub(B)
        hear(member, C, Submit((batch_of(1, sender=C),)))
        (output,) = turn(member)
        assert getattr(output, "packet", None) == Wanted(Wish(1, 0))
        hear(member, C, Submit((batch_of(1, first=1, sender=C),)))
        assert turn(member) == []
        assert not member.idle

    def test_who_submits_again_is_refused(self) -> None:
        member = _ub(B)
        hear(member, C, Submit((batch_of(2, sender=C),)))
        with pytest.raises(PeerFault, match="where number 2 of that level is next"):
            hear(member, C, Submit((batch_of(1, first=1, sender=C),)))

    def test_who_has_submitted_elsewhere_meanwhile_is_not(self) -> None:
        member = _ub(B)
        hear(member, C, Submit((batch_of(2, sender=C),)))
        hear(member, C, Submit((batch_of(1, first=7, sender=C),)))
        assert member.backlog == 3

    def test_who_submits_too_much_is_refused(self) -> None:
        member = _ub(B, submit_max=1)
        full = [b""] * BATCH_COUNT_MAX
        batches = [pack(C, 0, first, full) for first in range(0, 2 * WINDOW_MAX, BATCH_COUNT_MAX)]
        hear(member, C, Submit(tuple(batches)))
        with pytest.raises(PeerFault, match="more than the 131073 messages that it has credit for"):
            hear(member, C, Submit((pack(C, 0, 2 * WINDOW_MAX, [b"", b""]),)))

    def test_data_of_another_member_is_refused(self) -> None:
        with pytest.raises(PeerFault, match="c#1 submits a message of a#1"):
            hear(_bb(B), C, Data((batch_of(1),)))


class TestHandingOver:
    def test_the_token_takes_along_no_more_than_the_window_allows(self) -> None:
        holder = _ub(A, window=3)
        for number in range(8):
            hear(holder, C, Submit((batch_of(1, level=number, sender=C),)))
        token = _token(turn(holder))
        assert [pending.batch.level for pending in token.pending] == [4, 3, 2]
        assert token.wishes[0].level == 4

    def test_the_token_takes_along_no_more_than_a_frame(self) -> None:
        holder = _ub(A, window=3)
        for number in range(8):
            hear(holder, C, Submit((batch_of(1, level=number, sender=C, size=BATCH_BYTES_CUT // 2),)))
        assert len(_token(turn(holder)).pending) == 2

    def test_what_was_submitted_here_is_known_here(self) -> None:
        """A copy that comes back with the token is not ordered beside what it is a copy of."""
        member = _ub(B, window=9)
        hear(member, C, Submit((batch_of(2, sender=C),)))
        hear(member, A, LadenToken(0, WISHES, (Pending(batch_of(2, sender=C), 5),)))
        (ordered,) = packets(turn(member), Ordered)
        assert ordered.messages == (batch_of(2, sender=C),)

    def test_a_copy_is_not_waited_for_and_not_kept(self) -> None:
        member = _ub(B)
        hear(member, A, LadenToken(0, WISHES, (Pending(batch_of(2, sender=C), 5),)))
        assert member.idle and not member.backlog
        assert not _token(turn(member)).pending

    def test_waiting_goes_on_counting_through_two_handovers(self) -> None:
        first = _ub(B, window=1, starvation=Ageing(MILLISECOND))
        copy = batch_of(1, level=10, sender=C)
        hear(first, A, LadenToken(0, WISHES, (Pending(batch_of(1, level=90), 0), Pending(copy, MILLISECOND))))
        token = _token(turn(first, now=4 * MILLISECOND))
        assert token.pending == (Pending(copy, 5 * MILLISECOND),)

    def test_a_copy_of_a_stranger_s_message_is_refused(self) -> None:
        with pytest.raises(PeerFault, match=r"a#1 hands over x#1/0/0\+1, which is no member's"):
            hear(_ub(B), A, LadenToken(0, WISHES, (Pending(batch_of(1, sender=STRANGER), 0),)))
