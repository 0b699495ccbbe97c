"""Delta: when a message is delivered, and when it is rejected."""

import msgspec

from priocast.core.quality import delta
from priocast.core.view import View
from priocast.services.clock import VirtualClock
from priocast.services.delta_order import FROM_THE_FUTURE, NO_CLOCK, TOO_LATE, DeliveryWindow, DeltaOrder
from priocast.services.packets import Response, ServiceData, TimeReply
from priocast.services.units import deliveries_of
from services.builders import A, B, C, data, message
from services.lan import MS, Lan
from services.trials import violations


def sent_at(time_ms: int, *, number: int = 1, within_ms: int = 50) -> ServiceData:
    return data(message(A, number), delta(within_ms), clock=(time_ms * MS,))


def test_a_message_is_delivered_when_its_time_has_come() -> None:
    order = DeltaOrder(10 * MS)
    order.on_arrived(sent_at(100))
    assert order.next_at == 160 * MS
    assert order.release(160 * MS - 1) == []
    assert order.release(160 * MS) == [sent_at(100)]
    assert order.next_at is None


def test_messages_are_delivered_in_the_order_of_sending() -> None:
    order = DeltaOrder(0)
    for number, time in ((1, 30), (2, 10), (3, 20)):
        order.on_arrived(sent_at(time, number=number))
    assert [each.id.number for each in order.release(100 * MS)] == [2, 3, 1]


def test_messages_of_the_same_time_are_ordered_by_their_senders() -> None:
    order = DeltaOrder(0)
    for sender in (B, A):
        order.on_arrived(data(message(sender, 1), delta(5), clock=(0,)))
    assert [each.id.sender for each in order.release(5 * MS)] == [A, B]


def test_a_late_message_is_rejected() -> None:
    order = DeltaOrder(10 * MS)
    assert order.rejection(sent_at(100), 159 * MS, 0) == ""
    assert order.rejection(sent_at(100), 160 * MS, 0) == TOO_LATE


def test_a_message_from_the_future_is_rejected() -> None:
    order = DeltaOrder(10 * MS)
    assert order.rejection(sent_at(100), 90 * MS, 0) == ""
    assert order.rejection(sent_at(100), 89 * MS, 0) == FROM_THE_FUTURE


def test_without_a_clock_that_is_precise_enough_a_message_is_rejected() -> None:
    order = DeltaOrder(10 * MS)
    assert order.rejection(sent_at(100), 100 * MS, 5 * MS) == ""
    assert order.rejection(sent_at(100), 100 * MS, 5 * MS + 1) == NO_CLOCK
    assert order.rejection(sent_at(100), 100 * MS, None) == NO_CLOCK


def test_a_recipient_that_is_too_late_answers_once_and_is_named_in_the_receipt() -> None:
    lan = Lan(3)
    lan.run(20)
    lan.lose = lambda _, target, packet: (
        isinstance(packet, ServiceData) and target == lan.ids[2] and lan.now < 38 * MS
    )
    late = lan.send(0, delta(5))
    lan.run(400)
    answers = [each for each in lan.frames_about(late) if isinstance(each, Response) and each.reason]
    assert [each.reason for each in answers] == [TOO_LATE]
    assert lan.receipts[late].rejected == {"c": TOO_LATE}
    assert not lan.receipts[late].accepted
    assert lan.who_delivered(late) == "ab"
    assert lan.services[lan.ids[2]].rejections == {TOO_LATE: 1}


def test_all_recipients_deliver_at_the_same_time() -> None:
    lan = Lan(4, ordered=False)
    lan.run(50)
    first = lan.send(1, delta(100))
    lan.run(400)
    assert lan.who_delivered(first) == "abcd"
    assert violations(lan) == []


def test_a_recipient_that_is_late_says_so_and_the_others_keep_the_window() -> None:
    lan = Lan(4, ordered=False)
    lan.run(50)
    lan.stall(2, 300 * MS)
    first = lan.send(1, delta(100))
    lan.run(400)
    assert lan.who_delivered(first) == "abcd"
    assert +lan.late == {C: 1}, "all others deliver at 160 ms"
    assert lan.services[C].late == 1
    assert violations(lan) == []


def test_the_delay_and_the_error_of_the_clock_are_at_most_half_of_the_precision() -> None:
    clock = VirtualClock(A)
    clock.on_view(View(1, (A, B)), 0)
    window = DeliveryWindow(10 * MS, clock)

    def late_ms(at: int) -> float:
        window.on_released(sent_at(100), at)
        return window.judged(deliveries_of(sent_at(100))[0], at).late_ms

    assert late_ms(160 * MS) == late_ms(165 * MS) == 0, "the coordinator's clock has no error"
    assert late_ms(166 * MS) == 6
    clock.on_view(View(2, (B, A)), 166 * MS)
    assert late_ms(171 * MS) == 11, "the clock goes on"


def test_the_error_of_the_clock_counts() -> None:
    clock = VirtualClock(B)
    clock.on_view(View(1, (A, B)), 0)
    clock.on_tick(0)
    clock.on_reply(A, TimeReply(1, 2 * MS), 4 * MS)  # right up to 2 ms
    window = DeliveryWindow(10 * MS, clock)
    for at, expected in ((162 * MS, 0), (165 * MS, 5)):
        window.on_released(sent_at(100), at)
        assert window.judged(deliveries_of(sent_at(100))[0], at).late_ms == expected


def test_every_unit_of_a_late_transmission_is_late() -> None:
    clock = VirtualClock(A)
    clock.on_view(View(1, (A, B)), 0)
    window = DeliveryWindow(10 * MS, clock)
    shared = data(message(A, 1), delta(50), clock=(100 * MS,), units=5)
    shared = msgspec.structs.replace(shared, unit_counts=(2, 1, 2))
    window.on_released(shared, 160 * MS)
    assert [window.judged(each, 200 * MS).late_ms for each in deliveries_of(shared)] == [40] * 5
