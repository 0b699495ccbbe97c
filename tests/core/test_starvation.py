"""The laws of the starvation policies (techniques paper, sections 4 and 6.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import MILLISECOND, levels
from priocast.core.errors import InvalidOption
from priocast.core.message import CONTROL
from priocast.core.priority import HIGHEST
from priocast.core.starvation import (
    Ageing,
    FirstInFirstOut,
    PeriodicRelease,
    Starvation,
    Strict,
    parse_starvation,
)

times = st.integers(0, 10**15)
durations = st.integers(1, 10**12)


@given(levels, levels, times, times)
def test_strict_uses_only_the_priority(one: int, other: int, early: int, late: int) -> None:
    assert (Strict().sort_key(one, early) < Strict().sort_key(other, late)) == (one > other)


@pytest.mark.parametrize("policy", [Strict(), FirstInFirstOut()])
def test_a_control_message_precedes_all_others(policy: Starvation) -> None:
    assert policy.sort_key(CONTROL, 9) < policy.sort_key(HIGHEST, 0)


@given(levels, levels, times, times)
def test_in_the_plain_variant_nothing_overtakes(one: int, other: int, early: int, late: int) -> None:
    assert FirstInFirstOut().sort_key(one, early) == FirstInFirstOut().sort_key(other, late)


@given(durations, levels, levels, times, times, times)
def test_ageing_orders_as_if_each_waiting_message_rose_by_a_level_per_step(
    step_ns: int, one: int, other: int, entered_one: int, entered_other: int, waited: int
) -> None:
    # The definition at any time: priority plus waited / step, times step.
    now = max(entered_one, entered_other) + waited
    aged_one = one * step_ns + (now - entered_one)
    aged_other = other * step_ns + (now - entered_other)
    rank = Ageing(step_ns).sort_key
    assert (rank(one, entered_one) < rank(other, entered_other)) == (aged_one > aged_other)


@given(durations, levels, times, st.integers(0, 255), times)
def test_ageing_bounds_which_messages_may_overtake(
    step_ns: int, priority: int, entered: int, more_urgent: int, later: int
) -> None:
    other = min(255, priority + more_urgent)
    rank = Ageing(step_ns).sort_key
    overtakes = rank(other, entered + later) < rank(priority, entered)
    assert overtakes == (later < (other - priority) * step_ns)


@given(durations, levels, levels, times, times)
def test_a_periodic_release_orders_by_period_then_by_priority(
    period_ns: int, one: int, other: int, entered_one: int, entered_other: int
) -> None:
    rank = PeriodicRelease(period_ns).sort_key
    periods = entered_one // period_ns, entered_other // period_ns
    goes_first = periods[0] < periods[1] or (periods[0] == periods[1] and one > other)
    assert (rank(one, entered_one) < rank(other, entered_other)) == goes_first


def test_the_period_ends_just_before_its_multiple() -> None:
    rank = PeriodicRelease(10).sort_key
    assert rank(255, 9) < rank(0, 9) < rank(255, 10)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("none", Strict()),
        ("ageing:20ms", Ageing(20 * MILLISECOND)),
        ("ageing:1500us", Ageing(1_500_000)),
        ("flush:2s", PeriodicRelease(2_000 * MILLISECOND)),
        ("flush:7ns", PeriodicRelease(7)),
    ],
)
def test_policies_are_formatted_as_they_are_parsed(text: str, policy: Starvation) -> None:
    assert parse_starvation(text) == policy
    assert str(policy) == text


@given(st.sampled_from([Ageing, PeriodicRelease]), durations)
def test_every_policy_in_a_trace_can_be_parsed(
    kind: type[Ageing] | type[PeriodicRelease], duration: int
) -> None:
    assert parse_starvation(str(kind(duration))) == kind(duration)


def test_the_plain_policy_has_a_name_in_traces_but_is_not_an_option() -> None:
    assert str(FirstInFirstOut()) == "fifo"
    with pytest.raises(InvalidOption):
        parse_starvation("fifo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "strict",
        "ageing",
        "ageing:",
        "ageing:20",
        "ageing:0ms",
        "ageing:-1s",
        "flush:1h",
        "none:5ms",
        "flush:ms",
    ],
)
def test_invalid_text_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(InvalidOption, match="use 'none', 'ageing:20ms'"):
        parse_starvation(text)


@pytest.mark.parametrize("kind", [Ageing, PeriodicRelease])
@pytest.mark.parametrize("duration", [0, -1])
def test_a_policy_without_a_duration_is_rejected(
    kind: type[Ageing] | type[PeriodicRelease], duration: int
) -> None:
    with pytest.raises(InvalidOption, match="must be above 0"):
        kind(duration)
