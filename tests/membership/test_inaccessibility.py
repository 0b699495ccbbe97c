"""A network that is silent as a whole, for a bounded time."""

import pytest

from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import ATOMIC, CAUSAL, RELIABLE, TIGHT, Quality, at_least, delta
from priocast.core.view import View
from priocast.membership.failure_detector import FailureDetector
from priocast.membership.inaccessibility import InaccessibilityControl
from priocast.membership.options import MembershipOptions
from priocast.services.options import ServiceOptions
from priocast.services.service_host import ServiceHost
from support.stacks import MILLISECOND, Neighbourhood, founded

NETWORK = NetworkProperties(
    error_detection=True,
    omission_degree=1,
    delay_ns=4 * MILLISECOND,
    inaccessibility_ns=2_000 * MILLISECOND,
)
SILENT_AT_TIMES = ServiceOptions(network=NETWORK, response_ms=10.0)
PAIRS = {(one, other) for one in "abc" for other in "abc"}


def silent(group: Neighbourhood, milliseconds: int) -> None:
    """Let the network carry nothing for a while."""
    group.lost = set(PAIRS)
    group._in_flight.clear()
    group.run(milliseconds)
    group.lost = set()


def test_time_is_excused_between_notice_and_bound() -> None:
    control = InaccessibilityControl(noticed_after_ns=20)
    control.bound_ns = 100
    assert [control.excused_ns(1_000, now) for now in (1_000, 1_010, 1_020)] == [0, 0, 0]
    assert [control.excused_ns(1_000, now) for now in (1_025, 1_060)] == [5, 35]
    assert (control.periods, control.exceeded, control.total_ns) == (1, 0, 40)
    assert [control.excused_ns(1_061, now) for now in (1_062, 1_100)] == [0, 19], "somebody was heard"
    assert [control.excused_ns(1_061, now) for now in (1_200, 1_300)] == [61, 0], "beyond the bound"
    assert (control.periods, control.exceeded, control.total_ns) == (2, 1, 120)


def test_silence_of_all_is_excused_and_silence_of_one_is_not() -> None:
    detector = FailureDetector(MembershipOptions(founders=1, heartbeat_ms=10, failure_ms=30))
    detector.inaccessibility.bound_ns = 10_000 * MILLISECOND
    now = 0
    for now in range(0, 200, 5):
        detector.heard("a", now * MILLISECOND)
        detector.be_awake(now * MILLISECOND)
        if now < 100:
            detector.heard("b", now * MILLISECOND)
    assert detector.trusts("a", now * MILLISECOND) and not detector.trusts("b", now * MILLISECOND)
    for now in range(200, 2_000, 5):
        detector.be_awake(now * MILLISECOND)
    assert detector.trusts("a", now * MILLISECOND)
    assert detector.inaccessibility.periods == 1


def test_a_silent_network_changes_no_view_and_the_period_is_counted() -> None:
    group = founded("abc", services=SILENT_AT_TIMES)
    silent(group, 1_500)
    group.run(500)
    assert set(group.views().values()) == {"abc"}
    assert [len(group.applications[name].events) for name in "abc"] == [1, 1, 1], "the view never changed"
    for member in group.members.values():
        control = member.membership.neighbours.detector.inaccessibility
        assert (control.periods, control.exceeded) == (1, 0)
        assert 1_300 * MILLISECOND < control.total_ns <= 1_500 * MILLISECOND


@pytest.mark.parametrize("quality", [at_least(2), RELIABLE, CAUSAL, ATOMIC, TIGHT], ids=str)
def test_what_is_sent_into_the_silence_arrives_after_it(quality: Quality) -> None:
    group = founded("abc", services=SILENT_AT_TIMES)
    group.members["a"].send([b"x"], quality, None, 7, group.now)
    silent(group, 1_500)
    group.run(300)
    assert [len(group.applications[name].units) for name in "abc"] == [1, 1, 1]
    (receipt,) = group.applications["a"].receipts
    assert receipt.accepted and receipt.rounds <= 4
    assert set(group.views().values()) == {"abc"}


def test_timers_go_on_if_somebody_was_heard_although_nobody_is_heard_just_now() -> None:
    """Heartbeats that come at the same time leave silence between them, again and again."""
    me, other = ProcessId("a", 1), ProcessId("b", 1)
    host = ServiceHost(me, SILENT_AT_TIMES, None, is_strict=True)
    host.on_view(View(1, (me, other)), 0)
    host.send([b"x"], RELIABLE, ["b"], 7, 0)
    host.turn(0)
    transmitted = len(host.take_frames())
    for heartbeat in range(20, 140, 20):
        host.tick((heartbeat - 10) * MILLISECOND, (heartbeat - 20) * MILLISECOND)
        host.tick((heartbeat + 19) * MILLISECOND, heartbeat * MILLISECOND)
        transmitted += len(host.take_frames())
    assert transmitted > 1


@pytest.mark.parametrize("quality", [RELIABLE, ATOMIC], ids=str)
def test_what_is_sent_into_the_silence_and_then_lost_arrives(quality: Quality) -> None:
    """The silence is no omission: as many transmissions as ever may be lost after it."""
    group = founded("abc", services=SILENT_AT_TIMES)
    group.members["a"].send([b"x"], quality, None, 7, group.now)
    silent(group, 1_500)
    group.lost = {("a", "b"), ("a", "c")}
    group.run_until(lambda: group.members["a"].services.counts[quality.kind].retransmissions)
    group.run(3)
    group.lost = set()
    group.run(300)
    assert [len(group.applications[name].units) for name in "abc"] == [1, 1, 1]
    assert set(group.views().values()) == {"abc"}


def test_beyond_its_bound_silence_is_a_failure() -> None:
    group = founded("abc", services=SILENT_AT_TIMES)
    silent(group, 4_000)
    assert all(member.membership.trigger.suspended for member in group.members.values())
    control = group.members["a"].membership.neighbours.detector.inaccessibility
    assert (control.periods, control.exceeded) == (1, 1)


def test_a_member_that_fails_while_the_network_works_is_noticed_as_ever() -> None:
    group = founded("abc", services=SILENT_AT_TIMES)
    group.members["a"].send([b"x"], RELIABLE, None, 7, group.now)
    group.kill("c")
    group.wait_view("ab")
    assert group.now < 1_000 * MILLISECOND
    group.run(50)
    assert group.applications["a"].receipts[0].accepted


def test_delta_allows_for_the_silence() -> None:
    group = founded("ab", services=SILENT_AT_TIMES)
    with pytest.raises(
        ValueError, match="is too short: with omissions, 2 recipients are reached after up to 2"
    ):
        group.members["a"].send([b"x"], delta(1_000), None, 7, group.now)
    group.run(200)
    group.members["a"].send([b"x"], delta(2_100), None, 7, group.now)
    silent(group, 1_500)
    group.run(1_000)
    assert [len(group.applications[name].units) for name in "ab"] == [1, 1]


def test_delivery_by_the_clock_does_not_stop_with_the_timers() -> None:
    group = founded("abc", services=SILENT_AT_TIMES)
    group.run(500)
    sent_at = group.now
    group.members["a"].send([b"x"], delta(2_100), None, 7, group.now)
    group.run(1_000)
    group.members["a"].send([b"y"], RELIABLE, None, 7, group.now)
    group.lost = set(PAIRS)
    group._in_flight.clear()
    group.run(1_109)
    assert [len(group.applications[name].units) for name in "abc"] == [1, 0, 0], "a has its own message"
    group.run(4)
    assert group.now - sent_at <= 2_114 * MILLISECOND
    assert [len(group.applications[name].units) for name in "abc"] == [2, 1, 1]
