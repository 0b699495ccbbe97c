"""Parts over an order: what ends them, what their positions depend on, and what happens to an open one.

What they do step by step is in `scripts/`; that every guarantee holds is in the property suite.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from core.builders import A, B, C, batch_of
from priocast.core.errors import UnknownProtocol
from priocast.core.identity import MessageId, ProcessId
from priocast.core.message import CONTROL, Batch, Scope, pack
from priocast.core.protocol import CancelTimer, Consume, OrderingOptions, Output, SetTimer, TimerFired
from priocast.core.starvation import Ageing, Strict
from priocast.protocols import LAYERS, PROTOCOLS, all_orders, find_protocol
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Ordered, Submit
from priocast.protocols.parts import PART_COUNT_MAX
from priocast.protocols.sequencer.ub import SequencerUb
from protocols.harness import Delivered, Group, Sent
from protocols.orders import patiently
from protocols.ranked_queue import ids
from protocols.schedules import MILLISECOND, Case, cases, play
from protocols.single_member import VIEW, hear, member_of, packets, say, turn

TIME, COUNT = "time-parts/sequencer-ub", "count-parts/sequencer-ub"


def _member(me: ProcessId, order: str = TIME, **options: float) -> OrderingProtocol:
    return member_of(find_protocol(order), me, position=0, **options)


def _hear(
    member: OrderingProtocol, position: int, *batches: Batch, packet_id: int = 1, now: int = 0
) -> list[Output]:
    return hear(member, A, Ordered(position, batches), (0, packet_id), now)


def _end_request(below: int, number: int = 0) -> Batch:
    return pack(A, CONTROL, number, [b"%d" % below])


def _queue(member: OrderingProtocol) -> list[tuple[int, int, int]]:
    """What the application may consume: position, level and count of each ordered batch."""
    return [(each.position, each.batch.level, each.batch.count) for each in member.unconsumed()]


class TestNames:
    def test_a_layer_is_found_over_every_protocol_and_is_always_the_same_class(self) -> None:
        for order in all_orders():
            protocol = find_protocol(order)
            assert order == protocol.NAME
            assert find_protocol(order) is protocol
        assert len(all_orders()) == len(PROTOCOLS) * (1 + len(LAYERS))
        assert all_orders(["sequencer-ub"])[len(PROTOCOLS) :] == [TIME, COUNT]

    @pytest.mark.parametrize("order", all_orders())
    def test_a_layer_has_the_packets_and_the_limits_of_what_it_is_over(self, order: str) -> None:
        layer, _, inner = order.rpartition("/")
        if layer:
            over, under = find_protocol(order), find_protocol(inner)
            assert (over.PACKETS, over.PARTITIONABLE) == (under.PACKETS, under.PARTITIONABLE)
            assert (over.PRIORITIES_ACT, over.orderer(VIEW)) == ("delivering", None)

    @pytest.mark.parametrize(
        "name",
        ["time-parts", "time-parts/", "/sequencer-ub", "parts/sequencer-ub", f"time-parts/{TIME}", "x/y"],
    )
    def test_an_unknown_layer_is_rejected(self, name: str) -> None:
        with pytest.raises(UnknownProtocol, match=r"there are: .*sequencer-ub.*: count-parts, time-parts"):
            find_protocol(name)

    def test_a_plain_layered_order_is_the_one_below(self) -> None:
        plain = find_protocol(TIME)(A, VIEW, OrderingOptions(prioritised=False), 7)
        assert type(plain) is SequencerUb
        assert plain.position_next == 7


class TestTheEndOfAPart:
    def test_the_most_urgent_go_first_and_equals_stay_in_order(self) -> None:
        member = _member(B)
        _hear(member, 0, batch_of(2, 1, sender=A), batch_of(1, 200, sender=C), batch_of(1, 1, sender=C))
        assert member.head() is None
        _hear(member, 4, batch_of(1, 200, sender=A), _end_request(below=5))
        senders = [
            (ordered_batch.batch.sender, ordered_batch.batch.level) for ordered_batch in member.unconsumed()
        ]
        assert senders == [(C, 200), (A, 200), (A, 1), (C, 1)]
        assert [position for position, _, _ in _queue(member)] == [0, 1, 2, 4]

    def test_a_control_message_has_no_position(self) -> None:
        member = _member(B)
        _hear(
            member,
            0,
            batch_of(1),
            _end_request(below=1),
            batch_of(1, first=1),
            _end_request(below=3, number=1),
        )
        assert _queue(member) == [(0, 0, 1), (1, 0, 1)]
        assert member.position_next == 2

    def test_a_part_that_began_after_the_request_continues(self) -> None:
        member = _member(B)
        _hear(
            member,
            0,
            batch_of(1),
            _end_request(below=1),
            batch_of(1, first=1),
            _end_request(below=2, number=1),
        )
        assert _queue(member) == [(0, 0, 1)]

    @pytest.mark.parametrize("payload", [b"", b"x", b"-1", b"1" * 5000])
    def test_an_invalid_request_ends_nothing(self, payload: bytes) -> None:
        member = _member(B)
        _hear(member, 0, batch_of(1), pack(A, CONTROL, 0, [payload]))
        assert _queue(member) == []

    def test_a_count_part_ends_within_a_batch_and_without_a_control_message(self) -> None:
        member = _member(B, COUNT, part_count=3)
        _hear(member, 0, batch_of(2, 1), batch_of(5, 9))
        assert _queue(member) == [(0, 9, 1), (1, 1, 2), (3, 9, 3)]
        assert member.backlog == 1

    def test_a_time_part_cannot_grow_without_bound(self) -> None:
        member = _member(B)
        for number in range(PART_COUNT_MAX // 4096):
            assert member.head() is None
            _hear(member, 4096 * number, batch_of(4096, first=4096 * number))
        assert member.inspect(0).unconsumed == PART_COUNT_MAX

    def test_all_positions_of_a_part_depend_on_what_ended_it(self) -> None:
        member = _member(B)
        _hear(member, 0, batch_of(1), batch_of(1, 5, sender=C), packet_id=1)
        _hear(member, 2, batch_of(1, 9, sender=A), packet_id=2)
        _hear(member, 3, _end_request(below=3), batch_of(1, 9, sender=A, first=1), packet_id=3)
        assert [ordered_batch.dependencies for ordered_batch in member.unconsumed()] == [(3, 0, 0)] * 3

    def test_scopes_are_kept(self) -> None:
        member = _member(B)
        safe = pack(A, 0, 0, [b"x"], scope=Scope(safe=True, to=("b",)))
        _hear(member, 0, safe)
        assert not member.has_safe
        _hear(member, 1, _end_request(below=1))
        assert member.has_safe
        assert member.unconsumed()[0].batch is safe


class TestRequests:
    def test_the_coordinator_requests_the_end_when_the_first_message_has_waited_long_enough(self) -> None:
        member = _member(A, part_ms=10)
        outputs = _hear(member, 0, batch_of(1, sender=B), now=3 * MILLISECOND)
        (timer,) = [output for output in outputs if isinstance(output, SetTimer)]
        assert timer.at == 13 * MILLISECOND
        assert member.step(TimerFired(timer.name), timer.at) == []
        submitted = turn(member, now=timer.at)
        for output in submitted:
            assert output.packet == Submit((_end_request(below=1),))  # type: ignore[union-attr]

    def test_nobody_else_has_a_timer(self) -> None:
        outputs = _hear(_member(B), 0, batch_of(1))
        assert not any(isinstance(output, SetTimer | CancelTimer) for output in outputs)

    def test_a_timer_that_fires_in_a_later_part_is_set_again(self) -> None:
        member = _member(A, COUNT, part_ms=10, part_count=2)
        outputs = _hear(member, 0, batch_of(1, sender=B), now=0)
        (timer,) = [output for output in outputs if isinstance(output, SetTimer)]
        _hear(member, 1, batch_of(2, sender=B, first=1), now=4 * MILLISECOND)
        assert member.step(TimerFired(timer.name), timer.at) == [SetTimer(timer.name, 14 * MILLISECOND)]
        assert member.backlog == 1

    def test_the_end_of_a_large_part_is_requested_at_once(self) -> None:
        member = _member(A, part_ms=10, window_bytes=50)
        outputs = _hear(member, 0, batch_of(1, sender=B), now=1)
        assert [output.at for output in outputs if isinstance(output, SetTimer)] == [1 + 10 * MILLISECOND]
        outputs = _hear(member, 1, pack(B, 0, 1, [b"." * 50]), now=2)
        (timer,) = [output for output in outputs if isinstance(output, SetTimer)]
        assert timer.at == 2
        assert member.step(TimerFired(timer.name), 2) == []
        assert member.backlog == 3

    def test_others_do_not_wait_for_the_coordinators_application(self) -> None:
        group = Group(["a", "b"], TIME, OrderingOptions(part_ms=1))
        for number in range(6):
            group.broadcast("b", 0, [b"%d" % number])
            assert group.settle(rounds_max=100, consumers=["b"])
        assert [each.member for each in group.journal if isinstance(each, Delivered)] == ["b"] * 6

    def test_an_idle_group_requests_nothing(self) -> None:
        group = Group(["a", "b"], TIME, OrderingOptions(part_ms=1))
        group.broadcast("b", 0, [b"x"])
        assert group.settle(rounds_max=100, consumers=[])
        requests = [said for said in group.journal if isinstance(said, Sent) and _is_end_request(said)]
        assert len(requests) == 2  # to itself, and then to all
        assert all(member.deadline is None for member in group.members.values())


class TestFlow:
    def test_nothing_more_is_taken_while_two_parts_wait_for_the_application(self) -> None:
        member = _member(B, COUNT, part_count=2)
        _hear(member, 0, batch_of(7, 1))
        assert (member.position_next, member.inspect(0).unconsumed) == (4, 4)
        member.step(Consume(1), now=0)
        assert member.position_next == 4
        member.step(Consume(1), now=0)
        assert member.position_next == 6

    def test_what_is_not_taken_is_not_reported_as_consumed(self) -> None:
        member = _member(B, COUNT, part_count=2, window=4)
        outputs = _hear(member, 0, batch_of(12, 1))
        totals = [output.packet.total for output in outputs]  # type: ignore[union-attr]
        assert totals == [2, 4]

    def test_its_bottleneck_is_that_of_the_order_below(self) -> None:
        member = _member(A, window=1)
        hear(member, B, Submit((batch_of(3, sender=B),)))
        assert [batch.count for each in packets(turn(member), Ordered) for batch in each.batches] == [1]
        assert member.inspect(0).bottleneck == A

    def test_what_waits_below_and_in_the_open_part_is_counted_by_level(self) -> None:
        member = _member(B)
        say(member, batch_of(2, 7, sender=B), now=5)
        _hear(member, 0, batch_of(3, 7, sender=A), batch_of(1, 9, sender=C), _end_request(below=0), now=10)
        assert member.inspect(30).queues == [(9, 1, 20), (7, 5, 20)]
        assert member.backlog == 6
        say(member, _end_request(9), now=30)
        assert [level for level, _, _ in member.inspect(30).queues] == [9, 7]


class TestTheEndOfAView:
    def test_own_messages_of_an_open_part_go_back_before_those_that_are_not_ordered(self) -> None:
        member = _member(B)
        for batch in (batch_of(1, 1, sender=B), batch_of(1, 9, sender=B), batch_of(1, 5, sender=B)):
            say(member, batch)
            turn(member)
        _hear(member, 0, batch_of(1, 1, sender=B), batch_of(4, 1, sender=A), batch_of(1, 9, sender=B))
        assert not member.settled
        member.close()
        assert member.unconsumed() == []
        assert [batch.level for batch in member.unordered()] == [1, 9, 5]

    def test_parts_that_have_ended_keep_their_positions_however_much_waits(self) -> None:
        member = _member(B, COUNT, part_count=1)
        say(member, batch_of(6, sender=B))
        turn(member)
        _hear(member, 0, batch_of(6, sender=B))
        assert member.inspect(0).unconsumed == 2
        assert (member.settled, member.idle) == (True, True)
        assert len(member.unconsumed()) == member.position_next == 6
        assert member.unordered() == []

    def test_control_messages_are_not_sent_again(self) -> None:
        member = _member(A, part_ms=1)
        _hear(member, 0, batch_of(1, sender=B))
        member.step(TimerFired("end of a part"), MILLISECOND)
        assert member.backlog == 2
        assert member.unordered() == []

    def test_closing_twice_changes_nothing(self) -> None:
        member = _member(B)
        _hear(member, 0, batch_of(1), _end_request(below=1), batch_of(1, first=1))
        member.close()
        first = _queue(member)
        member.close()
        assert _queue(member) == first == [(0, 0, 1)]


def _is_end_request(said: Sent) -> bool:
    return any(batch.level == CONTROL for batch in getattr(said.packet, "batches", ()))


def _inner_order(group: Group) -> Iterator[Batch]:
    """What the sequencer has ordered."""
    for said in group.journal:
        if isinstance(said, Sent) and isinstance(said.packet, Ordered):
            yield from said.packet.batches


def _positions(group: Group) -> dict[MessageId, int]:
    """The position at which each message was delivered."""
    return {each.message.id: each.position for each in group.journal if isinstance(each, Delivered)}


@settings(max_examples=patiently(60))
@given(cases(COUNT, True, Ageing(MILLISECOND)))
def test_less_than_a_part_overtakes_a_message(case: Case) -> None:
    """The bound on overtaking of `count-parts`, whatever the starvation policy."""
    group = play(case)
    positions = _positions(group)
    below = [message for batch in _inner_order(group) if batch.level != CONTROL for message in ids(batch)]
    for index, message in enumerate(below):
        overtakers = [other for other in below[index + 1 :] if positions[other] < positions[message]]
        assert len(overtakers) < case.options.part_count


@settings(max_examples=patiently(60))
@given(cases(TIME, True, Strict()))
def test_nothing_overtakes_a_message_of_an_earlier_part(case: Case) -> None:
    """What was ordered when the end was requested precedes all that is ordered after the end."""
    group = play(case)
    positions = _positions(group)
    below: list[MessageId | None] = []  # the control messages are None
    ended = 0
    for batch in _inner_order(group):
        if batch.level == CONTROL:
            ended = max(ended, int(batch.payloads()[0]))
            below.append(None)
            continue
        for message in ids(batch):
            assert all(positions[earlier] < positions[message] for earlier in below[:ended] if earlier)
            below.append(message)
