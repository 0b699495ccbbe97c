"""Credit: what one sender may have under way, and the window that follows the application's speed."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import MILLISECOND, B, batch_of, numbered
from priocast.core.credit import (
    REOPENING_DIVISOR,
    WINDOW_FIRST,
    WINDOW_MAX,
    WINDOW_MIN,
    ConsumptionMeter,
    Outstanding,
)
from priocast.core.errors import PeerFault
from priocast.core.message import pack
from priocast.core.priority import class_of, limits_by_class

WINDOW_NS = 5 * MILLISECOND
LIMIT = 96
REOPENS_AT = LIMIT // REOPENING_DIVISOR

few_levels = st.sampled_from([0, 100, 255])
actions = st.lists(
    st.tuples(st.sampled_from(["send", "place"]), few_levels, st.integers(1, 30), st.integers(0, 15)),
    max_size=40,
)


@given(actions, st.booleans())
def test_outstanding_is_what_was_sent_and_not_placed(
    actions: list[tuple[str, int, int, int]], reserved: bool
) -> None:
    outstanding = Outstanding(LIMIT, 900, reserved)
    under_way: dict[int, deque[int]] = {0: deque(), 100: deque(), 255: deque()}  # per message, its bytes
    exhausted = dict.fromkeys(under_way, False)
    for action, level, count, size in actions:
        if action == "send":
            batch = pack(B, level, 0, [bytes(size)] * count)
            outstanding.sent(batch)
            under_way[level].extend([len(batch.block) // count] * count)
        elif placed := min(count, len(under_way[level])):
            outstanding.placed(batch_of(placed, level))
            for _ in range(placed):
                under_way[level].popleft()
        total = sum(len(messages) for messages in under_way.values())
        assert outstanding.count == total
        # A message of a cut batch counts for its share of the block, rounded: exact when nothing is left.
        bytes_about = sum(sum(messages) for messages in under_way.values())
        assert bytes_about <= outstanding.bytes <= bytes_about + 10 * total
        for of_level in under_way:
            full = outstanding.bytes >= limits_by_class(900, reserved)[class_of(of_level)]
            room = 0 if full else limits_by_class(LIMIT, reserved)[class_of(of_level)] - total
            exhausted[of_level] = room < (REOPENS_AT if exhausted[of_level] else 1)
            assert outstanding.room(of_level) == (0 if exhausted[of_level] else room)


def test_a_used_up_share_reopens_when_a_part_of_it_is_free() -> None:
    outstanding = Outstanding(LIMIT, 10**6, reserved=False)
    outstanding.sent(batch_of(LIMIT))
    rooms = [outstanding.room(0)]
    for _ in range(REOPENS_AT):
        outstanding.placed(batch_of(1))
        rooms.append(outstanding.room(0))
    assert rooms == [0, 0, 0, REOPENS_AT]


def test_a_place_for_a_message_that_was_never_sent_is_the_sequencers_fault() -> None:
    # Found by reading: this was a KeyError or an IndexError, as if the fault were ours.
    outstanding = Outstanding(40, 600, reserved=True)
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(1, level=7))
    outstanding.sent(batch_of(1, level=7))
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(2, level=7))


def _consume_steadily(meter: ConsumptionMeter, step_ns: int, count: int, takes: int, now: int = 0) -> int:
    """An application that always has messages waiting and takes `count` every `step_ns`."""
    meter.queued(count * takes + 1)
    for _ in range(takes):
        now += step_ns
        meter.consumed(count, now)
    return now


@pytest.mark.parametrize("step_ns", [10_000, 50_000, 100_000, 500_000, MILLISECOND])
@pytest.mark.parametrize("count", [1, 7])
def test_a_steady_consumer_gets_what_it_takes_in_the_time_of_the_window(step_ns: int, count: int) -> None:
    meter = ConsumptionMeter(None, WINDOW_NS)
    _consume_steadily(meter, step_ns, count, takes=300)
    exact = WINDOW_NS * count // step_ns
    assert exact * 0.9 <= meter.window <= exact * 1.1


def test_a_slow_consumer_keeps_the_smallest_window_and_a_fast_one_the_largest() -> None:
    slow, fast = ConsumptionMeter(None, WINDOW_NS), ConsumptionMeter(None, WINDOW_NS)
    _consume_steadily(slow, step_ns=1_000 * MILLISECOND, count=1, takes=100)
    _consume_steadily(fast, step_ns=1, count=50, takes=600)
    assert (slow.window, fast.window) == (WINDOW_MIN, WINDOW_MAX)


def test_a_consumer_that_slows_down_is_believed() -> None:
    meter = ConsumptionMeter(None, WINDOW_NS)
    now = _consume_steadily(meter, step_ns=10_000, count=1, takes=200)
    before = meter.window
    _consume_steadily(meter, step_ns=MILLISECOND, count=1, takes=100, now=now)
    assert before > 400
    assert meter.window < 10


def test_an_idle_consumer_teaches_nothing() -> None:
    meter = ConsumptionMeter(None, WINDOW_NS)
    for second in range(50):
        meter.queued(1)
        meter.consumed(1, now=second * 1_000 * MILLISECOND)
        assert meter.window == WINDOW_FIRST


def test_one_that_takes_half_of_what_was_granted_in_a_single_go_gets_twice_as_much() -> None:
    meter = ConsumptionMeter(None, WINDOW_NS)
    granted = [meter.window]
    for second in range(20):
        meter.queued(meter.window)
        meter.consumed(meter.window, now=second * 1_000 * MILLISECOND)
        granted.append(meter.window)
    assert granted[:4] == [16, 32, 64, 128]
    assert granted[-1] == WINDOW_MAX


def test_a_fixed_window_is_what_it_is() -> None:
    meter = ConsumptionMeter(7, WINDOW_NS)
    _consume_steadily(meter, step_ns=1, count=7, takes=50)
    assert meter.window == 7


@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100), st.integers(0, 10**10)), max_size=60),
    st.integers(1, 10**9),
)
def test_whatever_the_application_does_the_window_stays_within_its_bounds(
    steps: list[tuple[int, int, int]], window_ns: int
) -> None:
    meter = ConsumptionMeter(None, window_ns)
    waiting = now = 0
    for queued, taken, elapsed in steps:
        meter.queued(queued)
        waiting += queued
        now += elapsed
        meter.consumed(min(taken, waiting), now)
        waiting -= min(taken, waiting)
        assert WINDOW_MIN <= meter.window <= WINDOW_MAX


def test_more_than_waits_cannot_be_consumed() -> None:
    meter = ConsumptionMeter(None, WINDOW_NS)
    meter.queued(len(numbered(2)))
    with pytest.raises(AssertionError):
        meter.consumed(3, now=0)
