"""The size of the window follows the application's speed and the time that a grant takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import MILLISECOND
from priocast.core.protocol import WINDOW_MAX
from priocast.protocols.flow.window import WINDOW_FIRST, WINDOW_MIN, ConsumptionWindow

TIME_NS = 4 * MILLISECOND


def _consume_steadily(window: ConsumptionWindow, step_ns: int, count: int, takes: int, now: int = 0) -> int:
    """An application that always has messages waiting and takes `count` every `step_ns`."""
    window.queued(count * takes + 1, is_bottleneck=False)
    for _ in range(takes):
        now += step_ns
        window.consumed(count, now)
    return now


@pytest.mark.parametrize("step_ns", [10_000, 50_000, 100_000, 500_000, MILLISECOND])
@pytest.mark.parametrize("count", [1, 7])
def test_a_steady_consumer_gets_what_it_takes_in_the_first_time(step_ns: int, count: int) -> None:
    window = ConsumptionWindow(None, TIME_NS)
    _consume_steadily(window, step_ns, count, takes=300)
    exact = TIME_NS * count // step_ns
    assert exact * 0.9 <= window.size <= exact * 1.1


def test_a_slow_consumer_keeps_the_smallest_window_and_a_fast_one_the_largest() -> None:
    slow, fast = ConsumptionWindow(None, TIME_NS), ConsumptionWindow(None, TIME_NS)
    _consume_steadily(slow, step_ns=1_000 * MILLISECOND, count=1, takes=100)
    _consume_steadily(fast, step_ns=1, count=50, takes=600)
    assert (slow.size, fast.size) == (WINDOW_MIN, WINDOW_MAX)


def test_the_window_follows_a_consumer_that_slows_down() -> None:
    window = ConsumptionWindow(None, TIME_NS)
    now = _consume_steadily(window, step_ns=10_000, count=1, takes=200)
    before = window.size
    _consume_steadily(window, step_ns=MILLISECOND, count=1, takes=100, now=now)
    assert before > 300
    assert window.size < 10


def test_an_idle_consumer_changes_nothing() -> None:
    window = ConsumptionWindow(None, TIME_NS)
    for second in range(50):
        window.queued(1, is_bottleneck=False)
        window.consumed(1, now=second * 1_000 * MILLISECOND)
        assert window.size == WINDOW_FIRST


def test_a_consumer_that_takes_half_of_the_grant_at_once_gets_twice_as_much() -> None:
    window = ConsumptionWindow(None, TIME_NS)
    granted = [window.size]
    for second in range(20):
        window.queued(window.size, is_bottleneck=False)
        window.consumed(window.size, now=second * 1_000 * MILLISECOND)
        granted.append(window.size)
    assert granted[:4] == [16, 32, 64, 128]
    assert granted[-1] == WINDOW_MAX


def test_a_fixed_window_does_not_change() -> None:
    window = ConsumptionWindow(7, TIME_NS)
    _consume_steadily(window, step_ns=1, count=7, takes=50)
    assert window.size == 7


@given(
    st.lists(
        st.tuples(st.integers(1, 100), st.booleans(), st.integers(1, 100), st.integers(0, 10**10)),
        max_size=60,
    ),
    st.integers(1, 10**9),
)
def test_whatever_the_application_does_the_window_stays_within_its_bounds(
    steps: list[tuple[int, bool, int, int]], time_ns: int
) -> None:
    window = ConsumptionWindow(None, time_ns)
    waiting = now = 0
    for queued, is_bottleneck, taken, elapsed in steps:
        window.queued(queued, is_bottleneck)
        waiting += queued
        now += elapsed
        window.consumed(min(taken, waiting), now)
        waiting -= min(taken, waiting)
        assert WINDOW_MIN <= window.grant() <= WINDOW_MAX


def test_consuming_more_than_waits_is_an_assertion_error() -> None:
    window = ConsumptionWindow(None, TIME_NS)
    window.queued(2, is_bottleneck=False)
    with pytest.raises(AssertionError):
        window.consumed(3, now=0)


def _rounds(window: ConsumptionWindow, runs_dry: bool, is_bottleneck: bool, rounds: int) -> list[int]:
    """The grants while the application consumes a message every 0.1 ms and runs dry, or not."""
    grants, now = [], 0
    window.queued(1, is_bottleneck)
    for _ in range(rounds):
        window.queued(10, is_bottleneck)
        for _ in range(10):
            now += 100_000
            window.consumed(1, now)
        if runs_dry:
            window.consumed(1, now)
            window.queued(1, is_bottleneck)
        grants.append(window.grant())
    return grants


def test_the_window_shrinks_to_a_millisecond_while_the_application_never_runs_dry() -> None:
    grants = _rounds(
        ConsumptionWindow(None, 20 * MILLISECOND), runs_dry=False, is_bottleneck=True, rounds=300
    )
    assert grants[20] > grants[50] > grants[299]
    assert 8 <= grants[-1] <= 12


def test_the_window_grows_while_the_application_runs_dry_up_to_the_longest_time() -> None:
    grants = _rounds(ConsumptionWindow(None, 20 * MILLISECOND), runs_dry=True, is_bottleneck=True, rounds=60)
    assert grants[-1] > 4 * grants[0]
    assert 180 <= grants[-1] <= 240


def test_an_application_that_runs_dry_for_lack_of_messages_keeps_its_window() -> None:
    window = ConsumptionWindow(None, 20 * MILLISECOND)
    grants = _rounds(window, runs_dry=True, is_bottleneck=False, rounds=200)
    assert max(grants[50:]) - min(grants[50:]) <= 2


def test_the_time_until_messages_are_deliverable_is_not_the_applications() -> None:
    """As with safe delivery: 20 messages at once are stable after 5 ms, and others are ordered by then."""
    granted = []
    for is_told in (False, True):
        window, now = ConsumptionWindow(None, 20 * MILLISECOND), 0
        window.queued(20, is_bottleneck=True)
        for _ in range(200):
            window.queued(20, is_bottleneck=True)
            now += 5 * MILLISECOND
            for _ in range(20):
                now += 10_000
                window.consumed(1, now)
            if is_told:
                window.application_waits()
            window.grant()
        granted.append(window.size)
    assert granted[0] <= 8, "an application that takes 4 a millisecond, and need not be supplied for long"
    assert granted[1] >= 1_000, "20 ms of an application that takes one in 10 us"
