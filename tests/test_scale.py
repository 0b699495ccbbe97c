"""Scale: what a member does for a frame or a delivery grows no faster than the group.

Calls of Python functions are counted, which does not depend on the machine.
"""

import gc
import sys
from collections.abc import Callable
from itertools import pairwise
from types import FrameType

import pytest
from benchmarks.driven_group import DrivenGroup
from benchmarks.queue_cost import ORDERS, WaitingGroup
from benchmarks.scale import join_and_leave, main

SMALL, LARGE = 6, 24
GROWTH_MAX = 1.25 * LARGE / SMALL


def calls_of(function: Callable[[], object]) -> int:
    """How many Python functions are called, or generators resumed, in a call of this one."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def founding(size: int) -> float:
    """Calls per frame, until a group is founded."""
    group = DrivenGroup(size)
    return calls_of(group.wait_view) / group.frames


def idle(size: int) -> float:
    """Calls per member in a second in which nothing happens."""
    group = DrivenGroup(size)
    group.wait_view()
    group.run(500)
    return calls_of(lambda: group.run(1_000)) / size


def delivering(size: int, senders: int) -> float:
    """Calls per delivery of causal history, where every member sends something for every message."""
    group = DrivenGroup(size, "causal-history")
    group.wait_view()
    group.run(500)

    def deliver() -> None:
        expected = group.deliveries + size * senders
        for name in list(group.members)[:senders]:
            group.broadcast(name, b"message")
        group.run_until(lambda: group.deliveries == expected)

    return calls_of(deliver) / (size * senders)


def test_a_frame_of_a_group_that_forms_costs_no_more_than_the_group_has_members() -> None:
    assert founding(LARGE) < GROWTH_MAX * founding(SMALL)


def test_an_idle_member_does_as_much_as_it_has_peers() -> None:
    assert idle(LARGE) < GROWTH_MAX * idle(SMALL)


def test_a_delivery_costs_as_much_as_there_are_frames_for_it() -> None:
    assert delivering(LARGE, senders=1) < GROWTH_MAX * delivering(SMALL, senders=1)


def test_if_all_send_a_delivery_costs_hardly_more_in_a_larger_group() -> None:
    assert delivering(LARGE, LARGE) < 1.5 * delivering(SMALL, SMALL)


def inserting(order: str, length: int) -> int:
    """Calls for urgent messages that are inserted before so many others, without heartbeats."""
    group = WaitingGroup(order, length)
    return min(calls_of(group.insert_urgent) for _ in range(5))


@pytest.mark.parametrize("order", ORDERS)
def test_an_urgent_message_costs_no_more_before_a_long_queue(order: str) -> None:
    assert inserting(order, 360) < 1.1 * inserting(order, 60)


def test_joining_and_leaving_again_and_again_leaves_nothing_behind() -> None:
    group = DrivenGroup(3)
    group.wait_view()
    found = []
    for first in (1, 81, 161, 241):
        join_and_leave(group, range(first, first + 80))
        gc.collect()
        found.append(len(gc.get_objects()))
    # What is left behind is left by every round; what other tests of this process still do is not.
    assert min(after - before for before, after in pairwise(found)) < 80, "less than one for each cycle"


def test_the_tables_of_scale_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick"])
    shown = capsys.readouterr().out
    assert "founding a group" in shown
    assert "groups on one node" in shown
    assert "a process joins and leaves" in shown
