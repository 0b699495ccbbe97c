"""What the meter of a member counts, and what it keeps while somebody watches."""

from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch, Scope, pack
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT
from priocast.core.view import View
from priocast.membership.delivery_sample import UNKNOWN_WAIT
from priocast.membership.message_meter import RECENT_MAX, MessageMeter

ME, OTHER = ProcessId("a", 1), ProcessId("b", 1)
VIEW = View(1, (ME, OTHER)).id
MILLISECOND = 1_000_000


def metered() -> MessageMeter:
    meter = MessageMeter()
    meter.on_incarnation(ME)
    return meter


def ordered(sender: ProcessId, level: int, first: int, count: int, position: int = 0) -> OrderedBatch:
    return OrderedBatch(VIEW, position, pack(sender, level, first, [b"x"] * count))


def broadcast(meter: MessageMeter, level: int, first: int, count: int, now: int) -> None:
    meter.on_broadcast(pack(ME, level, first, [b"x"] * count), now)


def times(meter: MessageMeter, priority: int) -> tuple[int, int]:
    """How many delivery times there are, and their total in ms."""
    found = meter.delivery_times[priority]
    return found.count, found.total_ns // MILLISECOND


def test_messages_are_counted_by_priority_and_direction() -> None:
    meter = metered()
    broadcast(meter, URGENT, 0, 2, 0)
    meter.on_delivered(ordered(OTHER, URGENT, 0, 3), 3, 0)
    meter.on_delivered(ordered(OTHER, ROUTINE, 0, 4), 2, 0)
    assert {level: each.messages for level, each in meter.broadcast.items()} == {URGENT: 2}
    assert {level: each.messages for level, each in meter.delivered.items()} == {URGENT: 3, ROUTINE: 2}
    whole, half = ordered(OTHER, URGENT, 0, 3).batch.block, ordered(OTHER, ROUTINE, 0, 4).batch.block
    assert (meter.delivered[URGENT].bytes, meter.delivered[ROUTINE].bytes) == (len(whole), len(half) // 2)
    assert not meter.delivery_times, "the times of others are not known"


def test_delivery_times_follow_the_batches_however_they_were_cut_and_joined() -> None:
    meter = metered()
    broadcast(meter, URGENT, 0, 2, 0)
    broadcast(meter, URGENT, 2, 2, 10 * MILLISECOND)
    joined = ordered(ME, URGENT, 0, 4)
    meter.on_delivered(joined, 3, 20 * MILLISECOND)
    assert times(meter, URGENT) == (3, 20 + 20 + 10)
    joined.taken = 3
    meter.on_delivered(joined, 1, 50 * MILLISECOND)
    assert times(meter, URGENT) == (4, 20 + 20 + 10 + 40)


def test_messages_of_a_plain_view_have_the_priority_that_was_asked_for() -> None:
    meter = metered()
    batch = pack(ME, 0, 0, [b"x"] * 3, bytes([URGENT, ROUTINE, URGENT]))
    meter.on_broadcast(batch, 0)
    meter.on_delivered(OrderedBatch(VIEW, 0, batch), 3, 5 * MILLISECOND)
    assert {level: each.messages for level, each in meter.delivered.items()} == {URGENT: 2, ROUTINE: 1}
    assert times(meter, URGENT) == (2, 10)
    assert times(meter, ROUTINE) == (1, 5)


def test_messages_that_are_not_delivered_here_are_not_waited_for() -> None:
    meter = metered()
    meter.on_broadcast(pack(ME, URGENT, 0, [b"x"], scope=Scope(to=("b",))), 0)
    broadcast(meter, URGENT, 1, 1, 10 * MILLISECOND)
    meter.on_delivered(ordered(ME, URGENT, 1, 1), 1, 12 * MILLISECOND)
    assert times(meter, URGENT) == (1, 2)


def test_a_skipped_message_does_not_shift_the_times_of_later_ones() -> None:
    meter = metered()
    for first in range(3):
        broadcast(meter, URGENT, first, 1, first * 10 * MILLISECOND)
    meter.on_delivered(ordered(ME, URGENT, 2, 1), 1, 21 * MILLISECOND)
    assert times(meter, URGENT) == (1, 1)


def test_the_numbers_of_the_next_incarnation_begin_anew() -> None:
    meter = metered()
    broadcast(meter, URGENT, 0, 5, 0)
    again = ProcessId("a", 2)
    meter.on_incarnation(again)
    meter.on_broadcast(pack(again, URGENT, 0, [b"x"]), 100 * MILLISECOND)
    meter.on_delivered(ordered(again, URGENT, 0, 1), 1, 101 * MILLISECOND)
    assert times(meter, URGENT) == (1, 1)
    assert meter.broadcast[URGENT].messages == 6


def test_deliveries_are_kept_only_while_somebody_watches() -> None:
    meter = metered()
    meter.on_delivered(ordered(OTHER, URGENT, 0, 1), 1, 0)
    assert meter.recent is None
    meter.watch(True)
    for number in range(2 * RECENT_MAX):
        meter.on_delivered(ordered(OTHER, URGENT, number, 1, position=number), 1, number)
    assert meter.recent is not None
    assert [each.position for each in meter.recent] == list(range(RECENT_MAX, 2 * RECENT_MAX))
    assert {each.waited_ns for each in meter.recent} == {UNKNOWN_WAIT}
    meter.watch(False)
    assert meter.recent is None


def test_an_urgent_message_is_seen_overtaking_earlier_ones_that_still_wait() -> None:
    meter = metered()
    meter.watch(True)
    broadcast(meter, BACKGROUND, 0, 7, 0)
    broadcast(meter, ROUTINE, 0, 2, 1)
    meter.on_delivered(ordered(ME, ROUTINE, 0, 1), 1, 2)
    broadcast(meter, URGENT, 0, 1, 3)
    broadcast(meter, BACKGROUND, 7, 9, 4)
    meter.on_delivered(ordered(ME, URGENT, 0, 1, position=1), 1, 5)
    assert meter.recent is not None
    urgent = meter.recent[-1]
    assert (urgent.position, urgent.waited_ns, urgent.overtaken) == (1, 2, 7 + 1)
    assert meter.recent[0].overtaken == 7
