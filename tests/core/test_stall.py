"""The stall meter: how often, how long in total, and the longest time."""

from priocast.core.stall import StallMeter, Stalls


def test_each_stall_is_counted_once_and_measured() -> None:
    meter = StallMeter()
    for now, stalled in {0: False, 10: True, 15: True, 30: False, 40: False, 50: True, 55: False}.items():
        meter.note(stalled, now)
    assert (meter.count, meter.total_ns, meter.longest_ns) == (2, 25, 20)
    assert meter.lasting(99) == 0
    assert meter.until(99) == Stalls(2, 25, 20)


def test_the_current_stall_counts_so_far() -> None:
    meter = StallMeter()
    meter.note(True, 10)
    assert meter.lasting(40) == 30
    assert meter.until(40) == Stalls(1, 30, 30)
    assert meter.until(50) == Stalls(1, 40, 40)


def test_stalls_of_views_add_up_and_the_longest_stays() -> None:
    assert Stalls(2, 50, 40).followed_by(Stalls(3, 30, 20)) == Stalls(5, 80, 40)
    assert Stalls().followed_by(Stalls(1, 7, 7)) == Stalls(1, 7, 7)
