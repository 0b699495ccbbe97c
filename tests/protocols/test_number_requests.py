"""Number requests: who is served next, how much fits, and what is in flight until the messages arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import MILLISECOND, A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, FirstInFirstOut, PeriodicRelease, Starvation, Strict
from priocast.core.view import View
from priocast.protocols.numbering.packets import NumberRequest
from priocast.protocols.numbering.requests import NumberRequestQueue, NumberReservations

PLENTY = 10**9
POLICIES = [Strict(), Ageing(MILLISECOND), PeriodicRelease(10 * MILLISECOND), FirstInFirstOut()]


def _served(asks: NumberRequestQueue) -> list[tuple[ProcessId, int, int]]:
    """The members that are served, with level and count, until there are no requests."""
    served = []
    while asks:
        head = asks.head()
        count, _ = asks.take(PLENTY, PLENTY)
        served.append((*head, count))
    return served


class TestTheOrderOfRequests:
    def test_the_most_urgent_then_the_first(self) -> None:
        asks = NumberRequestQueue(Strict())
        for sender, level in ((A, 5), (B, 5), (C, 9), (A, 9)):
            asks.put(sender, NumberRequest(level, 2, 10), now=0)
        assert _served(asks) == [(C, 9, 2), (A, 9, 2), (A, 5, 2), (B, 5, 2)]

    def test_a_request_that_waited_long_enough_precedes_a_more_urgent_one(self) -> None:
        asks = NumberRequestQueue(Ageing(MILLISECOND))
        asks.put(A, NumberRequest(5, 1, 0), now=0)
        asks.put(B, NumberRequest(9, 1, 0), now=4 * MILLISECOND + 1)
        asks.put(C, NumberRequest(9, 1, 0), now=4 * MILLISECOND - 1)
        assert [sender for sender, _, _ in _served(asks)] == [C, A, B]

    def test_a_request_of_an_earlier_period_precedes_all_later_ones(self) -> None:
        asks = NumberRequestQueue(PeriodicRelease(10))
        asks.put(A, NumberRequest(1, 1, 0), now=9)
        asks.put(B, NumberRequest(255, 1, 0), now=10)
        assert [sender for sender, _, _ in _served(asks)] == [A, B]

    @given(
        st.sampled_from(POLICIES),
        st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 255), st.integers(0, 20)), max_size=30),
    )
    def test_requests_are_served_by_sort_key_and_arrival(
        self, policy: Starvation, said: list[tuple[ProcessId, int, int]]
    ) -> None:
        asks, now, expected = NumberRequestQueue(policy), 0, []
        firsts: dict[tuple[int, ProcessId, int], int] = {}
        for number, (sender, level, milliseconds) in enumerate(said):
            now += milliseconds * MILLISECOND
            asks.put(sender, NumberRequest(level, 1, 3), now)
            rank = policy.sort_key(level, now)
            first = firsts.setdefault((rank, sender, level), number)
            expected.append((rank, first, sender, level))
        served = [(sender, level) for sender, level, count in _served(asks) for _ in range(count)]
        assert served == [(sender, level) for _, _, sender, level in sorted(expected)]

    def test_a_further_request_joins_the_one_that_waits(self) -> None:
        asks = NumberRequestQueue(Strict())
        for sender, level, count in ((A, 7, 1), (A, 7, 2), (B, 7, 1), (A, 6, 8), (A, 7, 4)):
            asks.put(sender, NumberRequest(level, count, 10 * count), now=0)
        assert asks.count == 16
        assert _served(asks) == [(A, 7, 7), (B, 7, 1), (A, 6, 8)]
        assert asks.count == 0

    def test_a_partly_served_request_does_not_starve_the_others(self) -> None:
        asks = NumberRequestQueue(Strict())
        asks.put(A, NumberRequest(7, 2, 10), now=0)
        asks.put(B, NumberRequest(7, 1, 10), now=0)
        asks.take(1, PLENTY)
        asks.put(A, NumberRequest(7, 4, 10), now=0)
        assert _served(asks) == [(A, 7, 1), (B, 7, 1), (A, 7, 4)]

    def test_a_served_request_is_not_joined(self) -> None:
        asks = NumberRequestQueue(Strict())
        asks.put(A, NumberRequest(7, 1, 10), now=0)
        assert _served(asks) == [(A, 7, 1)]
        asks.put(A, NumberRequest(7, 2, 10), now=1)
        assert _served(asks) == [(A, 7, 2)]


class TestRoom:
    def test_a_cut_request_stays_first_with_the_bytes_of_the_rest(self) -> None:
        asks = NumberRequestQueue(Strict())
        asks.put(A, NumberRequest(7, 10, 105), now=0)
        asks.put(B, NumberRequest(7, 1, 5), now=0)
        assert asks.take(3, PLENTY) == (3, 31)
        assert asks.head() == (A, 7)
        assert asks.take(PLENTY, PLENTY) == (7, 74)
        assert asks.head() == (B, 7)

    @pytest.mark.parametrize(
        ("bytes_left", "count"), [(1, 1), (19, 1), (20, 2), (99, 9), (100, 10), (1000, 10)]
    )
    def test_no_more_than_the_bytes_left_but_at_least_one_message(self, bytes_left: int, count: int) -> None:
        asks = NumberRequestQueue(Strict())
        asks.put(A, NumberRequest(7, 10, 100), now=0)
        assert asks.take(PLENTY, bytes_left) == (count, 10 * count)


def test_requests_are_inspected_by_level() -> None:
    asks = NumberRequestQueue(Strict())
    asks.put(A, NumberRequest(7, 2, 0), now=5)
    asks.put(B, NumberRequest(9, 1, 0), now=6)
    asks.put(C, NumberRequest(7, 3, 0), now=4)
    assert asks.inspect(now=10) == [(9, 1, 4), (7, 5, 6)]
    asks.take(1, PLENTY)
    assert asks.inspect(now=10) == [(7, 5, 6)]


class TestReservations:
    def _promises(self, window: int = 100, window_bytes: int = 100) -> NumberReservations:
        options = OrderingOptions(window=window, window_bytes=window_bytes, prioritised=False)
        return NumberReservations(View(1, (A, B)), options)

    def test_numbers_count_when_they_are_granted(self) -> None:
        promises = self._promises(window=5)
        promises.reserve(5, 10)
        assert promises.room(0) == 0
        assert promises.bottleneck(0) == A
        promises.ordered(batch_of(5))
        assert promises.room(0) == 0
        for member in (A, B):
            promises.granted(member, 2, 5)
        assert promises.room(0) == 2

    def test_bytes_count_as_requested_and_then_as_they_are(self) -> None:
        promises = self._promises()
        promises.reserve(2, 60)
        assert promises.bytes_left == 40
        batch = batch_of(2, size=20)
        promises.ordered(batch)
        assert promises.bytes_left == 100 - len(batch.block)

    def test_a_reservation_ends_when_all_its_numbers_are_used(self) -> None:
        promises = self._promises()
        promises.reserve(2, 60)
        promises.reserve(1, 20)
        batch = batch_of(1, size=5)
        promises.ordered(batch)
        assert promises.bytes_left == 20 - len(batch.block)
        promises.ordered(batch)
        assert promises.bytes_left == 80 - 2 * len(batch.block)

    def test_when_no_bytes_are_left_there_is_no_room_until_the_slowest_has_consumed(self) -> None:
        promises = self._promises()
        promises.reserve(1, 0)
        promises.ordered(batch_of(1, size=200))
        assert promises.room(0) == 0
        promises.granted(A, 1, 100)
        assert promises.bottleneck(0) == B
        promises.granted(B, 1, 100)
        assert promises.room(0) == 100
        assert promises.bytes_left == 100
