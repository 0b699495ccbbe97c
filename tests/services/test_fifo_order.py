"""FIFO order: what a recipient holds back, and what it gives up."""

from priocast.core.quality import UNRELIABLE, best_effort
from priocast.services.fifo_order import FifoOrder
from priocast.services.packets import ServiceData, ServicePacket
from priocast.services.present import PresentMembers
from priocast.services.received import ReceivedMessages
from services.builders import A, B, data, message
from services.lan import Lan


def order() -> tuple[FifoOrder, ReceivedMessages]:
    received = ReceivedMessages()
    return FifoOrder(B, received), received


def numbered(number: int, previous: int, open_from: int = 0) -> ServiceData:
    return data(message(A, number), recipients=(B,), previous=(previous,), open_from=open_from)


def arrive(fifo: FifoOrder, received: ReceivedMessages, each: ServiceData) -> list[int]:
    received.add(each.id, each.open_from)
    return [one.id.number for one in fifo.on_arrived(each)]


def is_first(packet: ServicePacket) -> bool:
    return isinstance(packet, ServiceData) and packet.id.number == 1


def test_a_message_waits_for_the_one_before() -> None:
    fifo, received = order()
    assert arrive(fifo, received, numbered(3, 2)) == []
    assert arrive(fifo, received, numbered(2, 1)) == []
    assert fifo.awaited() == [message(A, 1)]
    assert arrive(fifo, received, numbered(1, 0)) == [1, 2, 3]
    assert fifo.held == 0


def test_a_message_that_was_given_up_is_not_waited_for() -> None:
    fifo, received = order()
    arrive(fifo, received, numbered(2, 1))
    received.add(message(A, 1))
    assert [each.id.number for each in fifo.release()] == [2]


def test_what_was_before_a_message_that_was_given_up_is_waited_for() -> None:
    fifo, received = order()
    arrive(fifo, received, numbered(3, 2, open_from=1))
    received.add(message(A, 2))
    fifo.on_given_up(message(A, 2))
    assert fifo.release() == []
    assert fifo.awaited() == [message(A, 1)]
    assert arrive(fifo, received, numbered(1, 0)) == [1, 3]


def test_what_the_sender_no_longer_transmits_is_not_waited_for() -> None:
    fifo, received = order()
    assert arrive(fifo, received, numbered(5, 4, open_from=5)) == [5]


def test_a_late_message_that_nobody_waited_for_is_dropped() -> None:
    fifo, received = order()
    assert arrive(fifo, received, numbered(2, 0)) == [2]
    assert arrive(fifo, received, numbered(1, 0)) == []


def test_departed_senders_are_forgotten() -> None:
    fifo, received = order()
    arrive(fifo, received, numbered(1, 0))
    fifo.on_view(PresentMembers())
    assert fifo._last == {}


def test_a_gap_of_a_departed_sender_ends() -> None:
    """Member b misses the first of two best-effort messages of a, holds the second one back, and a fails."""
    lan = Lan(3, lose=lambda _, target, packet: target == B and is_first(packet))
    lan.send(0, best_effort(3))
    second = lan.send(0, best_effort(3))
    lan.at(5_000_000, lambda: lan.crash(0))
    lan.run(250)
    assert lan.who_delivered(second) == "ac"
    lan.run(1000)
    assert lan.who_delivered(second) == "abc"


def test_unacknowledged_messages_cause_no_gaps() -> None:
    lan = Lan(3, lose=lambda _, __, packet: is_first(packet))
    first, second = lan.send(0, UNRELIABLE), lan.send(0, UNRELIABLE)
    lan.run(20)
    assert lan.who_delivered(first) == "a"
    assert lan.who_delivered(second) == "abc"


def test_a_gap_ends_if_nobody_is_left_to_ask() -> None:
    lan = Lan(2, lose=lambda _, target, packet: target == B and is_first(packet))
    lan.send(0, best_effort(2))
    second = lan.send(0, best_effort(2))
    lan.at(5_000_000, lambda: lan.crash(0))
    lan.run(1000)
    assert [each for each, _ in lan.delivered[B]] == [second]
