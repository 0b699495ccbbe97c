"""Members that do not answer a transmission, and those that only seem to."""

from collections import deque

import pytest

from membership.test_group_services import BOUNDED, send, taken
from priocast.core.identity import ProcessId
from priocast.core.quality import ATOMIC, RELIABLE, Quality
from priocast.links.frame import Frame
from priocast.membership.datagrams import CHANNEL, read
from priocast.membership.packets import Control, Install
from support.stacks import Neighbourhood, founded


def ignore(peer: ProcessId, frame: Frame, now: int) -> None:
    """A defect: frames of qualities are not answered."""


def test_a_member_that_does_not_answer_on_a_bounded_network_is_evicted() -> None:
    group = founded("abc", services=BOUNDED, failure_ms=2_000.0)
    group.members["c"].services.receive = ignore  # type: ignore[method-assign]
    send(group, "a", "x")
    group.wait_view("ab", of="ab")
    assert "c was evicted (unanswered)" in group.applications["a"].reasons[-1]
    assert group.applications["a"].receipts[0].missing == ("c",)


@pytest.mark.parametrize("quality", [RELIABLE, ATOMIC], ids=str)
def test_a_process_that_is_silent_altogether_is_left_to_failure_detection(quality: Quality) -> None:
    """A view change that the others do not agree to yet would stop the order meanwhile."""
    group = founded("abc", services=BOUNDED, failure_ms=1_000.0)
    group.run(100)
    group.kill("c")
    send(group, "a", "x", quality=quality)
    group.run(500)
    assert group.applications["a"].receipts[0].missing == ("c",)
    assert not any(member.membership.changing for member in group.members.values())
    group.wait_view("ab")
    assert group.applications["b"].reasons[-1] == "c failed"


@pytest.mark.parametrize("quality", [RELIABLE, ATOMIC], ids=str)
def test_a_process_that_was_silent_for_too_long_and_comes_back_is_evicted(quality: Quality) -> None:
    group = founded("abc", services=BOUNDED, failure_ms=1_000.0)
    group.run(100)
    group.cut("ab", "c")
    send(group, "a", "x", quality=quality)
    group.run(300)
    group.lost = set()
    group.wait_view("ab", of="ab")
    assert "c was evicted (unanswered)" in group.applications["b"].reasons[-1]


def test_a_member_that_has_missed_decisions_leaves_as_evicted() -> None:
    group = founded("abc")
    group.members["c"].services.suspects.append(group.members["c"].me)
    group.wait_view("ab", of="ab")
    group.run_until(lambda: group.members["c"].departed is not None)
    departed = group.members["c"].departed
    assert departed is not None and not departed.voluntary
    assert "c was evicted (unanswered): it has missed decisions" in str(departed.reason)


def test_a_member_that_learns_of_the_view_later_is_not_taken_for_failed() -> None:
    """One lost datagram is within the omission degree, and is repeated only with the next heartbeat."""
    group = Neighbourhood("abc", services=BOUNDED, heartbeat_ms=200.0, failure_ms=1_000.0)
    late = group.members["c"]
    group.run_until(lambda: late.membership.changing)
    group.run_until(lambda: any(isinstance(each, Install) for each in datagrams(group, "c")))
    group._in_flight = deque(each for each in group._in_flight if each[2] != "c")
    group.run(3)
    assert group.views() == {"a": "abc", "b": "abc", "c": ""}
    send(group, "a", "x")
    send(group, "b", "y", quality=ATOMIC)
    group.run(1_500)
    assert set(group.views().values()) == {"abc"} and len(group.applications["a"].events) == 1
    assert [sorted(taken(group, name)) for name in "abc"] == [["x", "y"]] * 3


def datagrams(group: Neighbourhood, to: str) -> list[Control]:
    """What is on its way to a member."""
    return [
        read(sender, frame)
        for _, sender, name, frames in group._in_flight
        for frame in frames
        if name == to and frame.channel == CHANNEL
    ]
