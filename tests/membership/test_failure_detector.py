"""The failure detector: silence is compared with what is usual, within limits."""

from membership.builders import MILLISECOND, options
from priocast.membership.failure_detector import FailureDetector


def detector() -> FailureDetector:
    return FailureDetector(options(heartbeat_ms=20, failure_ms=100))


def hear_after(found: FailureDetector, silence_ms: int, since: int) -> int:
    """A frame of b after a silence in which this process was running; return when that was."""
    now = since + silence_ms * MILLISECOND
    for beat in range(since, now, 20 * MILLISECOND):
        found.be_awake(beat)
    found.heard("b", now)
    return now


def test_a_process_that_was_never_heard_is_not_trusted() -> None:
    found = detector()
    assert not found.trusts("b", 0) and found.suspicion("b", 0) == float("inf")


def test_silence_of_the_allowed_time_is_a_suspicion_of_one() -> None:
    found = detector()
    found.heard("b", 0)
    assert found.suspicion("b", 50 * MILLISECOND) == 0.5
    assert found.trusts("b", 100 * MILLISECOND - 1) and not found.trusts("b", 100 * MILLISECOND)
    found.heard("b", 100 * MILLISECOND)
    assert found.trusts("b", 150 * MILLISECOND), "a sign of life ends it"


def test_a_steady_network_gets_the_configured_time() -> None:
    found = detector()
    for beat in range(50):
        found.heard("b", beat * 20 * MILLISECOND)
    assert found.allowed_ns("b") == 100 * MILLISECOND


def test_an_unsteady_network_gets_more_time_up_to_a_limit() -> None:
    found = detector()
    now = 0
    for beat in range(50):
        now = hear_after(found, 20 if beat % 3 else 120, now)
    assert 100 * MILLISECOND < found.allowed_ns("b") <= 300 * MILLISECOND
    for _ in range(20):
        now = hear_after(found, 1_000, now)
    assert found.allowed_ns("b") == 300 * MILLISECOND


def test_frames_in_quick_succession_do_not_change_the_rhythm() -> None:
    found = detector()
    for microsecond in range(0, 5_000, 10):
        found.heard("b", microsecond * 1_000)
    assert found.allowed_ns("b") == 100 * MILLISECOND


def test_a_new_incarnation_starts_with_a_new_rhythm() -> None:
    found = detector()
    now = 0
    for _ in range(20):
        now = hear_after(found, 250, now)
    assert found.allowed_ns("b") > 100 * MILLISECOND
    found.forget("b")
    assert not found.trusts("b", now)
    found.heard("b", now)
    assert found.allowed_ns("b") == 100 * MILLISECOND


def test_a_local_pause_is_nobodys_silence() -> None:
    found = detector()
    found.heard("b", 0)
    found.be_awake(20 * MILLISECOND)
    found.be_awake(520 * MILLISECOND)
    assert found.trusts("b", 520 * MILLISECOND), "half a second in which nobody could be heard"
    for beat in range(540, 660, 20):
        found.be_awake(beat * MILLISECOND)
    assert not found.trusts("b", 600 * MILLISECOND), "but it was silent before and after"
    assert found.allowed_ns("b") == 100 * MILLISECOND


def test_a_process_that_is_always_a_little_late_still_detects_failures() -> None:
    found = detector()
    found.heard("b", 0)
    for beat in range(40, 160, 40):
        found.be_awake(beat * MILLISECOND)
    assert not found.trusts("b", 120 * MILLISECOND)
