"""Which messages a member has received: each is delivered once, and what is remembered is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from priocast.core.identity import ProcessId
from priocast.services.received import ReceivedMessages
from services.builders import A, message


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=30))
def test_it_has_what_was_added_and_what_is_no_longer_transmitted(added: list[tuple[int, int]]) -> None:
    received = ReceivedMessages()
    numbers: set[int] = set()
    floor = 0
    for number, open_from in added:
        received.add(message(A, number), open_from)
        numbers.add(number)
        floor = max(floor, min(open_from, number))
    for number in range(1, 42):
        assert received.has(message(A, number)) == (number in numbers or number < floor)
    assert all(each >= floor for each in received._numbers.get(A, ()))


def test_a_number_far_ahead_costs_nothing() -> None:
    received = ReceivedMessages()
    received.add(message(A, 1))
    received.add(message(A, 1 << 62), 1 << 62)
    assert received.has(message(A, 1 << 61))
    assert received._numbers[A] == {1 << 62}


def test_senders_that_were_silent_longest_are_forgotten() -> None:
    received = ReceivedMessages()
    for index in range(1100):
        received.add(message(ProcessId(f"m{index}", 1), 1))
    assert len(received._numbers) == len(received._open_from) == 1024
    assert not received.has(message(ProcessId("m0", 1), 1))
