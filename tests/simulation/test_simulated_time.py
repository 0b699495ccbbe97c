"""The simulation model: latency, bandwidth, busy processors, pauses, cuts and back-pressure."""

from itertools import pairwise

import msgspec
import pytest

from priocast.core.protocol import OrderingOptions
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import FaultOptions, NetworkCut, Pause
from priocast.simulation.scenario import NetworkOptions, ProcessorOptions
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.schema import BROADCAST, DELIVERED, RECEIVED, SENT
from simulation.scenarios import MILLISECOND, group, mean, run_without_violation, waits_ms


def times(run: SimulatedRun, event: str, member: str) -> list[int]:
    return [row.time_ns for row in run.rows if (row.event, row.member) == (event, member)]


def test_events_of_one_time_execute_in_the_order_of_scheduling() -> None:
    event_queue = EventQueue()
    seen: list[str] = []
    for time, name in ((5, "b"), (3, "a"), (5, "c"), (9, "never")):
        event_queue.schedule(time, lambda name=name: seen.append(name))  # type: ignore[misc]
    while (action := event_queue.pop(until=8)) is not None:
        action()
    assert seen == ["a", "b", "c"] and event_queue.now == 5


def test_message_takes_two_hops() -> None:
    run = run_without_violation(group((0, 1, 0), network=NetworkOptions(latency_us=700)))
    (broadcast,) = times(run, BROADCAST, "b")
    assert times(run, DELIVERED, "a") == [broadcast + 700_000]
    assert times(run, DELIVERED, "b") == times(run, DELIVERED, "c") == [broadcast + 1_400_000]


def test_interface_writes_one_frame_after_the_other() -> None:
    """The sequencer's copies leave one by one, so later members receive theirs later."""
    network = NetworkOptions(latency_us=10, bandwidth_bytes_per_second=100_000)
    run = run_without_violation(group((1, 0, 0), network=network))
    (at_b,), (at_c,) = times(run, DELIVERED, "b"), times(run, DELIVERED, "c")
    sent_bytes = (at_c - at_b) // 10_000
    assert run.counters.occurred["busy interface"] >= 1
    assert 44 < sent_bytes < 200, "the header and body of a frame, at 10 us per byte"


def test_busy_processor_forms_batches() -> None:
    scenario = group((200, 200, 200), rate_per_second=2_000)
    busy = msgspec.structs.replace(scenario, processor=ProcessorOptions(frame_us=300))
    idle_run, busy_run = run_without_violation(scenario), run_without_violation(busy)

    def ordered_at_once(run: SimulatedRun) -> float:
        return mean([row.count for row in run.messages if row.event == BROADCAST])

    assert busy_run.counters.occurred["busy processor"] > 100
    assert "busy processor" not in idle_run.counters.occurred
    assert ordered_at_once(busy_run) > 1.5 * ordered_at_once(idle_run)
    assert busy_run.counters.turns < idle_run.counters.turns


def test_paused_process_does_nothing_and_then_catches_up() -> None:
    faults = FaultOptions(pauses=(Pause(member="b", from_us=60_000, for_us=80_000),), healed_at_us=140_000)
    run = run_without_violation(group((100, 0, 0), rate_per_second=1_000, faults=faults))
    of_b = [row.time_ns for row in run.rows if row.member == "b"]
    assert not [time for time in of_b if 60 * MILLISECOND <= time < 140 * MILLISECOND]
    assert len(times(run, DELIVERED, "b")) == 100 and run.counters.occurred["pause"]


def test_cut_is_one_way_and_heals() -> None:
    """It is shorter than the failure timeout, so the view does not change."""
    cut = NetworkCut(kind="one-way", members=("a", "b"), from_us=50_000, for_us=80_000)
    run = run_without_violation(group((10, 10, 0), faults=FaultOptions(cuts=(cut,), healed_at_us=130_000)))
    assert min(times(run, DELIVERED, "b")) >= 130 * MILLISECOND
    received = [row for row in run.messages if (row.event, row.member, row.peer) == (RECEIVED, "a", "b")]
    assert received[0].time_ns < 70 * MILLISECOND, "the other direction works"
    assert run.counters.views == 1
    assert run.counters.occurred["cut: one-way"] and run.counters.occurred["retransmission"]


def test_duplicates_and_losses_are_counted_and_harmless() -> None:
    faults = FaultOptions(loss_percent=20, duplication_percent=20, healed_at_us=1_000_000)
    run = run_without_violation(group((50, 50), faults=faults))
    assert 0.1 < run.counters.occurred["loss"] / run.counters.frames < 0.3
    assert run.counters.occurred["duplication"]
    assert run.counters.deliveries == 200


def test_back_pressure_delays_and_loses_nothing() -> None:
    tight = OrderingOptions(window=1, queue_max=2, submit_max=1)
    run = run_without_violation(group((100, 100), burst=50, consume_us=500, ordering=tight))
    assert run.counters.occurred["back-pressure"] and run.counters.broadcasts == 200
    assert max(row.backlog for row in run.messages if (row.event, row.member) == (SENT, "b")) <= 2


def test_consumer_is_busy_for_each_message() -> None:
    run = run_without_violation(group((20, 0), burst=20, consume_us=2_000))
    of_b = times(run, DELIVERED, "b")
    assert [later - at for at, later in pairwise(of_b)] == [2 * MILLISECOND] * 19
    assert set(waits_ms(run)) == {0, 1}


@pytest.mark.parametrize(("size", "makes_progress"), [(2, True), (8, False), (16, True)])
def test_a_run_may_have_as_many_events_as_it_has_pairs_of_members(
    size: int, makes_progress: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 8 has 1,820 events and one of 16 has 6,006: 64 members had too many for a fixed limit."""
    monkeypatch.setattr("priocast.simulation.simulator._EVENTS_MAX", 1_700)
    violations = run_scenario(group((1,) * size)).violations
    assert (not violations) == makes_progress
    assert all("the run makes no progress" in violation.summary for violation in violations)
