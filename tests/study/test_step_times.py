"""The steps of a protocol are timed where messages enter and leave the queue in which priorities act."""

import pytest

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, pack
from priocast.core.protocol import Broadcast, Input, OrderingOptions, Received, Turn
from priocast.core.view import View
from priocast.protocols import PROTOCOLS, find_protocol
from priocast.protocols.flow.packets import Ordered, Submit
from priocast.study.step_times import ENTER, LEAVE, StepTimes, time_steps

A, B = ProcessId("a"), ProcessId("b")
VIEW = View(1, (A, B))


@pytest.fixture(autouse=True)
def _protocols_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, protocol in PROTOCOLS.items():
        monkeypatch.setitem(PROTOCOLS, name, protocol)


def batch(sender: ProcessId, count: int) -> Batch:
    return pack(sender, 7, 0, [b"payload"] * count)


def timed(order: str, *events: Input, recording: bool = True) -> StepTimes:
    times = time_steps(order)
    if recording:
        times.start()
    protocol = find_protocol(order)(A, VIEW, OrderingOptions())
    for event in events:
        protocol.step(event, 0)
    return times


def test_a_sequencer_is_timed_from_the_submission_to_the_ordered_packet() -> None:
    times = timed("sequencer-ub", Received(B, Submit((batch(B, 3),))), Turn(), Turn())
    assert {part: list(counts) for part, counts in times.counts.items()} == {ENTER: [3], LEAVE: [3]}
    assert all(took > 0 for took in (*times.took_ns[ENTER], *times.took_ns[LEAVE]))


def test_what_a_destination_does_is_not_ordering() -> None:
    times = timed("sequencer-ub", Received(A, Ordered(0, (batch(B, 2),), ""), (0, 1)))
    assert not any(times.counts.values())


def test_a_member_of_a_ring_is_timed_from_the_broadcast_to_the_visit_of_the_token() -> None:
    times = timed("token-ring", Broadcast(batch(A, 2)), Turn())
    assert {part: list(counts) for part, counts in times.counts.items()} == {ENTER: [2], LEAVE: [2]}


def test_nothing_is_recorded_before_the_start_and_after_the_end() -> None:
    events = Broadcast(batch(A, 2)), Turn()
    assert not any(timed("token-ring", *events, recording=False).counts.values())
    times = StepTimes()
    times.start()
    times.stop()
    times.add(ENTER, 1, 1)
    assert not times.counts[ENTER]


def test_an_order_in_which_messages_wait_for_others_is_not_timed() -> None:
    times = timed("causal-history", Broadcast(batch(A, 2)), Turn())
    assert not any(times.counts.values())
    assert find_protocol("causal-history").__name__ == "CausalHistory"
