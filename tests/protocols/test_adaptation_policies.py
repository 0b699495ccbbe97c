"""The adaptation policies: what each proposes, when, and at which member."""

from collections.abc import Iterable

import pytest

from core.builders import A, B, C
from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.protocols.adaptive.policies import check_adaptation, make_policy, register_policy
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy, EqualShares, differing
from priocast.protocols.adaptive.round_trips import RoundTrips
from protocols.single_member import VIEW

MILLISECOND = 1_000_000
EQUAL = (1, 1, 1)


def _policy(text: str, me: ProcessId = A) -> AdaptationPolicy:
    return make_policy(text, me, VIEW)


def _heard(policy: AdaptationPolicy, ranks: Iterable[int], urgency: int = 0, now: int = 0) -> None:
    for rank in ranks:
        policy.on_messages(rank, 1, urgency, now)


class TestSlidingWindow:
    def test_weights_follow_the_packets_in_the_window(self) -> None:
        policy = _policy("sliding-window:4")
        _heard(policy, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0])
        assert policy.proposed(EQUAL, 0) is None, "the window is not full"
        _heard(policy, [2])
        assert policy.proposed(EQUAL, 0) == (64, 53, 11)
        _heard(policy, [2] * 12)
        assert policy.proposed((64, 53, 11), 0) == (1, 1, 64), "what was before the window is forgotten"

    def test_shares_are_compared_every_quarter_of_a_window(self) -> None:
        policy = _policy("sliding-window:4")
        _heard(policy, [0, 1, 2] * 4)
        assert policy.proposed(EQUAL, 0) is None, "the shares are equal"
        _heard(policy, [0, 0])
        assert policy.proposed((1, 1, 64), 0) is None
        _heard(policy, [0])
        assert policy.proposed((1, 1, 64), 0) is not None

    def test_intervals_tell_what_counts_do_not(self) -> None:
        policy = _policy("sliding-window:4")
        assert self._steady(policy, 12) == [0] * 7 + [1] * 5
        assert policy.proposed(EQUAL, 0) == (64, 43, 1), "an interval of 10 ms, one of 15 ms, and nothing"

    def test_shares_that_are_steady_are_followed_more_closely(self) -> None:
        policy = _policy("sliding-window:4")
        self._steady(policy, 12)
        assert policy.proposed((64, 36, 1), 0) is None, "nobody knows whether they are steady"
        self._steady(policy, 15, 12)
        assert policy.proposed((64, 36, 1), 0) == (64, 43, 1)
        self._steady(policy, 18, 15)
        assert policy.proposed((64, 45, 1), 0) is None, "too small a change"

    def test_intervals_change_a_count_by_one_packet_at_most(self) -> None:
        policy = _policy("sliding-window:4")
        _heard(policy, [1], now=0)
        for number in range(6):
            _heard(policy, [0, 1], now=(10_000 + number) * MILLISECOND)
        assert policy.proposed(EQUAL, 0) == (64, 64, 1), "5 of its 6 packets count, however long b paused"
        policy = _policy("sliding-window:4")
        for number in range(7):
            _heard(policy, [0], now=number * MILLISECOND)
            _heard(policy, [1] * 5 if number == 3 else [], now=number * MILLISECOND + number)
        assert policy.proposed(EQUAL, 0) == (64, 53, 1), "6 packets of a; 5 of b at once remain 5"

    @staticmethod
    def _steady(policy: AdaptationPolicy, count: int, begin: int = 0) -> list[int]:
        """The policy hears of packets `begin` to `count` of two steady senders; their ranks, sorted."""
        intervals = ((0, 10), (1, 15))
        times = [(number * interval, rank) for rank, interval in intervals for number in range(count)]
        heard = sorted(times)[begin:count]
        for time, rank in heard:
            _heard(policy, [rank], now=time * MILLISECOND)
        return sorted(rank for _, rank in heard)

    def test_only_the_coordinator_keeps_the_book(self) -> None:
        policy = _policy("sliding-window:1", B)
        _heard(policy, [1] * 30)
        assert policy.proposed(EQUAL, 0) is None

    def test_a_small_difference_changes_nothing(self) -> None:
        assert differing([11, 10, 10], EQUAL) is None
        assert differing([20, 10, 10], EQUAL) == (2, 1, 1)


class TestPriorityWindow:
    def test_urgent_packets_count_more(self) -> None:
        """By class: 1, 2, 4, 8 times. So senders of urgent messages own more slots than they use."""
        for urgency, times in ((0, 1), (63, 1), (64, 2), (128, 4), (192, 8), (255, 8)):
            policy = _policy("priority-window:4")
            _heard(policy, [0] * 6, urgency)
            _heard(policy, [1] * 6)
            expected = differing([6 * times, 6, 0], EQUAL)
            assert policy.proposed(EQUAL, 0) == expected
            assert expected is not None and expected[0] >= expected[1]


class TestSteadyKeeper:
    def _measured(self, me: ProcessId, spread: int) -> AdaptationPolicy:
        policy = _policy("steady-keeper:1", me)
        for number in range(40):
            for rank in range(3):
                policy.on_round_trip(rank, MILLISECOND + (number % 2) * spread)
        return policy

    def test_the_member_with_the_least_variation_keeps_the_book(self) -> None:
        policies = [self._measured(me, spread) for me, spread in ((A, 8_000_000), (B, 100_000), (C, 900_000))]
        reports = [policy.report() for policy in policies]
        assert reports[1] < reports[2] < reports[0]
        for policy in policies:
            for rank, report in enumerate(reports):
                policy.on_report(rank, report)
            _heard(policy, [1] * 30)
        assert [policy.proposed(EQUAL, 0) is not None for policy in policies] == [False, True, False]

    def test_the_coordinator_keeps_it_until_something_is_measured(self) -> None:
        for me in (A, B):
            policy = _policy("steady-keeper:1", me)
            assert policy.report() == 0
            _heard(policy, [1] * 30)
            assert (policy.proposed(EQUAL, 0) is not None) == (me == A)

    def test_round_trips_end_when_a_member_passes_the_slot(self) -> None:
        policy = self._measured(A, 0)
        measured: list[tuple[int, int]] = []
        policy.on_round_trip = lambda rank, nanoseconds: measured.append((rank, nanoseconds))  # type: ignore[method-assign]
        trips = RoundTrips(policy, 3)
        trips.passed(1, (0, 0, 9), now=0)
        trips.sent((0, 0, 6), now=10)
        trips.passed(2, (0, 0, 5), now=20)
        trips.passed(2, (0, 0, 8), now=35)
        trips.passed(1, (0, 0, 10), now=40)
        assert measured == [(2, 25)], "b had passed the slot before"


class TestDecay:
    def test_a_member_that_pauses_loses_its_slots(self) -> None:
        policy = _policy("decay:100")
        for time in range(0, 1_000, 10):
            _heard(policy, [0, 1], now=time * MILLISECOND)
        weights = policy.proposed(EQUAL, 1_000 * MILLISECOND)
        assert weights == (64, 64, 1)
        for time in range(1_000, 1_500, 10):
            _heard(policy, [0], now=time * MILLISECOND)
        after = policy.proposed(weights, 1_500 * MILLISECOND)
        assert after is not None and after[1] <= 3 < after[0]

    def test_counts_are_halved_in_the_halving_time(self) -> None:
        policy = _policy("decay:100")
        _heard(policy, [1] * 1_000, now=0)
        _heard(policy, [0] * 1_000, now=100 * MILLISECOND)
        assert policy.proposed(EQUAL, 100 * MILLISECOND) == (64, 32, 1)

    def test_a_long_pause_costs_no_time(self) -> None:
        policy = _policy("decay:1")
        _heard(policy, [1] * 1_000, now=0)
        _heard(policy, [0], now=10**18)
        assert policy.proposed(EQUAL, 10**18) == (64, 1, 1)

    def test_only_the_coordinator_counts(self) -> None:
        policy = _policy("decay:1", C)
        _heard(policy, [1] * 10, now=0)
        _heard(policy, [1] * 10, now=10**9)
        assert policy.proposed(EQUAL, 10**9) is None


class TestSchedule:
    TEXT = "schedule:24h;8h a=20 b=1;18h a=1 b=20"

    @pytest.mark.parametrize(
        ("hour", "weights"),
        [(8, (64, 3, 1)), (17, (64, 3, 1)), (18, (3, 64, 1)), (3, (3, 64, 1)), (33, (64, 3, 1))],
    )
    def test_the_time_decides(self, hour: int, weights: tuple[int, ...]) -> None:
        assert _policy(self.TEXT).proposed(EQUAL, hour * 3_600 * 10**9) == weights

    def test_it_is_proposed_once_and_by_the_coordinator(self) -> None:
        assert _policy(self.TEXT).proposed((3, 64, 1), 0) is None
        assert _policy(self.TEXT, B).proposed(EQUAL, 0) is None

    @pytest.mark.parametrize(
        "argument",
        ["", "24h", "24h;", "24h;8h", "24h;8h a=x", "24h;25h a=1", "0s;0s a=1", "24h;8 a=1", "1h;0s =1"],
    )
    def test_other_texts_are_rejected(self, argument: str) -> None:
        with pytest.raises(InvalidOption, match="adaptation is 'schedule:"):
            check_adaptation(f"schedule:{argument}")


def test_equal_shares_propose_nothing() -> None:
    policy = _policy("equal")
    _heard(policy, [1] * 100)
    assert policy.proposed(EQUAL, 0) is None


def test_two_policies_cannot_have_one_name() -> None:
    with pytest.raises(InvalidOption, match="another adaptation policy with the name 'equal'"):
        register_policy(type("Other", (EqualShares,), {}))
    assert register_policy(EqualShares) is EqualShares
