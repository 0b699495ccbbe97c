"""The replay window accepts each number once, and none that is too old to tell."""

from hypothesis import given
from hypothesis import strategies as st

from priocast.network.replay_window import WINDOW_NUMBERS, ReplayWindow

NUMBERS = st.lists(
    st.one_of(st.integers(1, 40), st.integers(1, 3 * WINDOW_NUMBERS), st.integers(0, 2**64 - 1)), max_size=60
)


@given(first=st.integers(0, 30), numbers=NUMBERS)
def test_it_agrees_with_a_set_of_all_received_numbers(first: int, numbers: list[int]) -> None:
    window = ReplayWindow(first)
    seen: set[int] = set()
    for number in numbers:
        highest = max(seen, default=first)
        expected = number > first and number not in seen and number > highest - WINDOW_NUMBERS
        assert window.is_new(number) == expected
        if expected:
            window.note(number)
            seen.add(number)


@given(numbers=st.permutations(range(101, 141)))
def test_each_number_is_accepted_once_in_any_order(numbers: list[int]) -> None:
    window = ReplayWindow(100)
    taken = []
    for number in [*numbers, *numbers]:
        if window.is_new(number):
            window.note(number)
            taken.append(number)
    assert taken == numbers


def test_numbers_up_to_the_initial_one_are_not_new() -> None:
    window = ReplayWindow(500)
    assert not any(window.is_new(number) for number in range(501))
    assert window.is_new(501)


def test_a_number_that_was_not_noted_is_still_new() -> None:
    window = ReplayWindow(0)
    assert window.is_new(7)
    assert window.is_new(7), "a query changes nothing: a forged datagram must not use up a number"


def test_a_large_number_needs_no_memory() -> None:
    window = ReplayWindow(1)
    window.note(2**64 - 1)
    assert not window.is_new(2**64 - 1)
    assert window.is_new(2**64 - 2)
    assert not window.is_new(2)
