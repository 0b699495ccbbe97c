"""The base of every protocol: options that are checked, one way in and one way out."""

from typing import Any

import pytest

from core.builders import A, B, batch_of
from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Scope, pack
from priocast.core.protocol import (
    WINDOW_MAX,
    Broadcast,
    Consume,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Packet,
    Received,
    Send,
    SendAll,
    SendEach,
    TimerFired,
    Turn,
)
from priocast.core.starvation import Ageing, FirstInFirstOut, Strict
from priocast.core.view import View, ViewId
from priocast.protocols.flow.ordering_protocol import OrderingProtocol


class Ping(Packet, frozen=True, tag="ping"):
    """For one member."""


class Shout(Packet, frozen=True, tag="shout"):
    """For all."""

    TO_ALL = True


class Immediate(OrderingProtocol):
    """Orders every message at once: no real protocol, but enough to test the base class."""

    NAME = "immediate"
    PRIORITIES_ACT = "sending"
    PACKETS = (Ping, Shout)

    def __init__(self, position: int = 0) -> None:
        super().__init__(A, View(1, (A, B)), OrderingOptions(), position)
        self.consumed: list[int] = []

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

    @property
    def idle(self) -> bool:
        return not self.outgoing

    def on_received(self, event: Received, now: int) -> None:
        self.send(event.sender, event.packet)

    def on_turn(self, event: Turn, now: int) -> None:
        self.send_all(Shout())
        self.more_to_do()

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        self.consumed.append(count)


def test_outputs_are_returned_in_order_and_once() -> None:
    protocol = Immediate()
    assert protocol.step(Turn(), now=0) == [SendAll(Shout()), MoreToDo()]
    assert protocol.step(Received(B, Ping()), now=0) == [Send(B, Ping())]
    assert protocol.step(LinkBlocked(B), now=0) == []


def test_what_is_broadcast_waits_in_the_outgoing_queue() -> None:
    protocol = Immediate()
    protocol.step(Broadcast(batch_of(3)), now=0)
    assert protocol.backlog == protocol.outgoing.count == 3
    assert not protocol.idle
    assert not protocol.settled


def test_the_head_is_consumed_in_parts_and_leaves_when_it_is_empty() -> None:
    protocol = Immediate()
    assert protocol.head() is None
    protocol.queue_ordered(batch_of(3))
    protocol.queue_ordered(batch_of(1, first=3))
    protocol.step(Consume(2), now=0)
    head = protocol.head()
    assert head is not None
    assert (head.position, head.taken) == (0, 2)
    protocol.step(Consume(1), now=0)
    head = protocol.head()
    assert head is not None
    assert (head.position, head.taken) == (3, 0)
    assert protocol.consumed == [2, 1]


def test_positions_are_counted_from_where_the_view_begins() -> None:
    protocol = Immediate(position=40)
    assert protocol.position_next == 40
    protocol.queue_ordered(batch_of(3))
    assert protocol.position_next == 43
    protocol.queue_ordered(batch_of(2, first=3))
    assert protocol.position_next == 45
    assert [ordered_batch.position for ordered_batch in protocol.unconsumed()] == [40, 43]


def test_an_ordered_batch_has_the_dependencies_of_its_position_and_all_before_it() -> None:
    protocol = Immediate()
    for packet_id in ((0, 1), (1, 3), (0, 2), (1, 2)):
        protocol.depends_on(packet_id)
        protocol.queue_ordered(batch_of(1))
    assert {ordered_batch.view for ordered_batch in protocol.unconsumed()} == {ViewId(1, A)}
    assert [ordered_batch.dependencies for ordered_batch in protocol.unconsumed()] == [
        (1, 0),
        (1, 3),
        (2, 3),
        (2, 3),
    ]


def test_a_protocol_knows_that_safe_messages_were_ordered() -> None:
    protocol = Immediate()
    protocol.queue_ordered(batch_of(1))
    assert not protocol.has_safe
    protocol.queue_ordered(pack(A, 0, 1, [b"x"], scope=Scope(safe=True)))
    assert protocol.has_safe
    protocol.queue_ordered(batch_of(1, first=2))
    assert protocol.has_safe


def test_at_the_end_there_are_ordered_and_unordered_messages() -> None:
    protocol = Immediate()
    protocol.queue_ordered(batch_of(3))
    protocol.queue_ordered(batch_of(2, first=3))
    protocol.step(Consume(1), now=0)
    assert [(ordered_batch.position, ordered_batch.taken) for ordered_batch in protocol.unconsumed()] == [
        (0, 1),
        (3, 0),
    ]
    assert protocol.inspect(0).unconsumed == 4
    protocol.step(Broadcast(batch_of(1, level=5)), now=7)
    protocol.step(Broadcast(batch_of(2, level=9)), now=8)
    assert protocol.inspect(now=10).queues == [(9, 2, 2), (5, 1, 3)]
    assert protocol.inspect(0).bottleneck is None
    assert protocol.unordered() == [batch_of(2, level=9), batch_of(1, level=5)]
    assert protocol.backlog == 0


def test_only_packets_that_decide_the_order_are_sent_to_all() -> None:
    protocol = Immediate()
    protocol.send_each(Ping())
    assert protocol.step(LinkBlocked(B), now=0) == [SendEach(Ping())]
    with pytest.raises(AssertionError):
        protocol.send_each(Shout())
    with pytest.raises(AssertionError):
        protocol.send(B, Shout())
    with pytest.raises(AssertionError):
        protocol.send_all(Ping())


@pytest.mark.parametrize("count", [0, -1, 4])
def test_consuming_more_than_is_queued_is_an_assertion_error(count: int) -> None:
    protocol = Immediate()
    protocol.queue_ordered(batch_of(3))
    with pytest.raises(AssertionError):
        protocol.step(Consume(count), now=0)


def test_a_link_is_blocked_until_it_is_cleared() -> None:
    protocol = Immediate()
    protocol.step(LinkBlocked(B), now=0)
    assert B in protocol.blocked
    protocol.step(LinkCleared(B), now=0)
    assert not protocol.blocked


def test_a_timer_that_was_not_set_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="immediate set no timer 'tea'"):
        Immediate().step(TimerFired("tea"), now=0)


def test_a_packet_is_named_by_its_tag() -> None:
    assert Ping.name() == "ping"


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("window", 0),
        ("window", -3),
        ("window", WINDOW_MAX + 1),
        ("window_ms", 0.0),
        ("window_ms", -1.0),
        ("window_ms", float("nan")),
        ("part_ms", float("inf")),
        ("bucket", WINDOW_MAX + 1),
        ("window_bytes", 0),
        ("queue_max", 0),
        ("queue_bytes_max", -1),
        ("submit_max", 0),
        ("submit_bytes_max", 0),
    ],
)
def test_an_option_out_of_range_is_rejected_by_name(option: str, wrong: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{option} is {wrong}: it must be"):
        OrderingOptions(**{option: wrong})


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("window", "5"),
        ("window", 1.5),
        ("prioritised", "no"),
        ("starvation", "ageing:20ms"),
        ("part_ms", None),
    ],
)
def test_an_option_of_another_type_is_rejected_by_name(option: str, wrong: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{option} is {wrong!r}: wrong type"):
        OrderingOptions(**{option: wrong})


def test_the_smallest_and_largest_options_are_accepted() -> None:
    smallest = OrderingOptions(window=1, window_ms=0.001, window_bytes=1, queue_max=1, submit_max=1)
    assert (smallest.window, smallest.window_ms, smallest.queue_max) == (1, 0.001, 1)
    assert OrderingOptions(window=WINDOW_MAX).window == WINDOW_MAX
    assert OrderingOptions(window=None).window is None


def test_the_plain_variant_is_first_in_first_out_whatever_the_policy() -> None:
    assert OrderingOptions().policy == Strict()
    assert OrderingOptions(starvation=Ageing(5)).policy == Ageing(5)
    assert OrderingOptions(prioritised=False, starvation=Ageing(5)).policy == FirstInFirstOut()
