"""The moving sequencers: one token, which is accepted late and rests, and what it carries.

What they do with correct peers is in `scripts/` and in the property suite.
"""

from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.message import BATCH_BYTES_CUT, TO_ALL, Reference
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
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.packets import Consumed, Data, Order, Ordered, Submit
from priocast.protocols.numbering.packets import NumberGrant
from priocast.protocols.ring.moving_bb import MovingBb
from priocast.protocols.ring.moving_packets import NumberedByHolder, PendingCopy, TokenWithMessages
from priocast.protocols.ring.moving_ub import MovingUb
from priocast.protocols.ring.moving_uub import MovingUub
from priocast.protocols.ring.token_packets import RequestToken, Token, TokenRequest
from protocols.harness import Group, Sent
from protocols.harness import Received as HasReceived
from protocols.orders import patiently
from protocols.schedules import NAMES, Broadcast, Case, Flow, cases, check
from protocols.single_member import VIEW, hear, member_of, packets, say, turn

LINKS = len(NAMES) * (len(NAMES) - 1)
NO_REQUESTS = (TokenRequest(),) * 3
MOVING = ["moving-ub", "moving-bb", "moving-uub"]

_ub = partial(member_of, MovingUb)
_bb = partial(member_of, MovingBb)
_uub = partial(member_of, MovingUub)


def _token(outputs: list[Output]) -> TokenWithMessages:
    (token,) = packets(outputs, TokenWithMessages)
    return token


def skewed_cases(order: str, prioritised: bool = True) -> st.SearchStrategy[Case]:
    """Groups in which there is always something to order, and some links are much slower than others.

    So the token often arrives over two fast links before the order arrives over the slow one.
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
    """A token that overtakes the order does no harm: positions and messages stay one to one."""

    @settings(max_examples=patiently(75))
    @given(skewed_cases(order, prioritised))
    def holds(case: Case) -> None:
        check(case)

    holds()


class TestTheToken:
    @pytest.mark.parametrize("order", MOVING)
    def test_there_is_one_token_at_any_time(self, order: str) -> None:
        @settings(max_examples=patiently(80))
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
    def test_it_stays_in_a_group_of_one(self, order: str) -> None:
        group = Group(["a"], order, OrderingOptions())
        group.broadcast("a", 7, [b"1", b"2"])
        assert group.settle(rounds_max=20)
        assert not any(isinstance(said, Sent) and _is_token(said.packet) for said in group.journal)
        assert _tokens(group) == 1

    @pytest.mark.parametrize("order", MOVING)
    def test_a_holder_passes_it_after_one_turn(self, order: str) -> None:
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
            elif isinstance(said, Sent) and isinstance(said.packet, Ordered | Order | NumberGrant):
                orders += 1
        assert len(visits) > 2
        assert max(visits) <= FRAMES_PER_TURN

    def test_a_group_of_one_requests_another_turn(self) -> None:
        alone = MovingUb(A, View(1, (A,)), OrderingOptions(window=WINDOW_MAX))
        for level in range(FRAMES_PER_TURN + 1):
            hear(alone, A, Submit((batch_of(1, level, size=BATCH_BYTES_CUT),)))
        assert MoreToDo() in turn(alone)
        assert len(packets(turn(alone), Ordered)) == 1

    def test_a_resting_holder_passes_it_only_where_there_is_room(self) -> None:
        holder = _ub(A, window=1)
        hear(holder, C, Submit((batch_of(1, sender=C),)))
        turn(holder)
        hear(holder, A, Ordered(0, (batch_of(1, sender=C),)))
        hear(holder, C, TokenWithMessages(1, NO_REQUESTS, ()))
        hear(holder, B, RequestToken(TokenRequest(1, 7)))
        assert not packets(turn(holder), TokenWithMessages)
        for member in VIEW.members:
            hear(holder, member, Consumed(1, 1))
        assert packets(turn(holder), TokenWithMessages)

    def test_it_is_not_passed_over_a_full_link(self) -> None:
        holder = _ub(A)
        hear(holder, B, RequestToken(TokenRequest(1, 7)))
        hear(holder, C, RequestToken(TokenRequest(1, 7)))
        holder.step(LinkBlocked(B), now=0)
        (output,) = turn(holder)
        assert isinstance(output, Send)
        assert output.to == C

    def test_a_holder_that_cannot_send_keeps_it(self) -> None:
        """Otherwise two members with full links would pass it to each other for ever."""
        holder = _ub(A)
        holder.step(LinkBlocked(B), now=0)
        hear(holder, A, Submit((batch_of(1),)))
        hear(holder, C, RequestToken(TokenRequest(1, 7)))
        assert turn(holder) == []
        holder.step(LinkCleared(B), now=0)
        assert len(packets(turn(holder), Ordered)) == 1


def _is_token(packet: Packet) -> bool:
    return isinstance(packet, Token)


def _tokens(group: Group) -> int:
    """How many tokens there are: at members, and in flight."""
    held = on_the_way = 0
    for member in group.members.values():
        protocol = member.protocol
        assert isinstance(protocol, MovingUb | MovingBb | MovingUub)
        held += not protocol._ring.is_elsewhere
    for said in group.journal:
        on_the_way += isinstance(said, Sent) and _is_token(said.packet)
        on_the_way -= isinstance(said, HasReceived) and _is_token(said.packet)
    return held + on_the_way


class TestPositions:
    def test_a_position_depends_on_the_order_and_on_the_data(self) -> None:
        member = _bb(B)
        hear(member, A, Order(0, (Reference(C, 0, 0, 1),)), packet_id=(0, 4))
        hear(member, C, Data((batch_of(1, sender=C),)), packet_id=(2, 3))
        (ordered_batch,) = member.unconsumed()
        assert ordered_batch.dependencies == (4, 0, 3)

    def test_a_position_depends_on_all_orders_before_it(self) -> None:
        member = _ub(C)
        hear(member, B, Ordered(1, (batch_of(1, sender=B),)), packet_id=(1, 7))
        hear(member, A, Ordered(0, (batch_of(1),)), packet_id=(0, 2))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(2, 0, 0), (2, 7, 0)]

    def test_a_number_depends_on_all_messages_before_it(self) -> None:
        member = _uub(C)
        hear(member, B, NumberedByHolder(1, (batch_of(1, sender=B),), "", 0), packet_id=(1, 7))
        hear(member, A, NumberedByHolder(0, (batch_of(1),), "", 0), packet_id=(0, 2))
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(2, 0, 0), (2, 7, 0)]


class TestSubmissions:
    def test_a_sender_stays_with_one_member_until_all_its_messages_are_ordered(self) -> None:
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

    def test_messages_wait_while_the_link_is_full(self) -> None:
        sender = _ub(C)
        sender.step(LinkBlocked(A), now=0)
        say(sender, batch_of(1, sender=C))
        assert turn(sender) == []
        assert sender.backlog == 1

    def test_a_member_without_the_token_requests_it_once(self) -> None:
        member = _ub(B)
        hear(member, C, Submit((batch_of(1, sender=C),)))
        (output,) = turn(member)
        assert getattr(output, "packet", None) == RequestToken(TokenRequest(1, 0))
        hear(member, C, Submit((batch_of(1, first=1, sender=C),)))
        assert turn(member) == []
        assert not member.idle

    def test_a_gap_in_the_submissions_is_accepted(self) -> None:
        member = _ub(B)
        hear(member, C, Submit((batch_of(2, sender=C),)))
        hear(member, C, Submit((batch_of(1, first=7, sender=C),)))
        assert member.backlog == 3


class TestWhatTheTokenCarries:
    def test_no_more_than_the_window_allows(self) -> None:
        holder = _ub(A, window=3)
        for number in range(8):
            hear(holder, C, Submit((batch_of(1, level=number, sender=C),)))
        token = _token(turn(holder))
        assert [pending.batch.level for pending in token.pending] == [4, 3, 2]
        assert token.requests[0].level == 4

    def test_no_more_than_a_frame(self) -> None:
        holder = _ub(A, window=3)
        for number in range(8):
            hear(holder, C, Submit((batch_of(1, level=number, sender=C, size=BATCH_BYTES_CUT // 2),)))
        assert len(_token(turn(holder)).pending) == 2

    def test_a_copy_of_a_submitted_message_is_ignored(self) -> None:
        """A copy that returns with the token is not ordered in addition to the message itself."""
        member = _ub(B, window=9)
        hear(member, C, Submit((batch_of(2, sender=C),)))
        hear(member, A, TokenWithMessages(0, NO_REQUESTS, (PendingCopy(batch_of(2, sender=C), 5),)))
        (ordered,) = packets(turn(member), Ordered)
        assert ordered.messages == (batch_of(2, sender=C),)

    def test_a_copy_is_not_part_of_the_backlog(self) -> None:
        member = _ub(B)
        hear(member, A, TokenWithMessages(0, NO_REQUESTS, (PendingCopy(batch_of(2, sender=C), 5),)))
        assert member.idle and not member.backlog
        assert not _token(turn(member)).pending

    def test_the_waiting_time_continues_over_two_passes(self) -> None:
        first = _ub(B, window=1, starvation=Ageing(MILLISECOND))
        copy = batch_of(1, level=10, sender=C)
        hear(
            first,
            A,
            TokenWithMessages(
                0, NO_REQUESTS, (PendingCopy(batch_of(1, level=90), 0), PendingCopy(copy, MILLISECOND))
            ),
        )
        token = _token(turn(first, now=4 * MILLISECOND))
        assert token.pending == (PendingCopy(copy, 5 * MILLISECOND),)
