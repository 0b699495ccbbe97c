"""Incarnations: what a crash loses, what the next incarnation continues, and what a client sees of it."""

from priocast.core.protocol import OrderingOptions
from priocast.simulation.faults import Crash, FaultOptions, NetworkCut, Stall
from priocast.simulation.simulator import SimulatedRun
from priocast.trace.schema import BROADCAST, DELIVERED, STATE, STOPPED
from simulation.scenarios import MILLISECOND, delivered_by, group, run_without_violation, views_of


def events(run: SimulatedRun, event: str, process: str) -> list[int]:
    return [
        row.time_ns for row in run.rows if row.event == event and f"{row.member}#{row.incarnation}" == process
    ]


def test_crash_ends_an_incarnation_at_once_and_the_next_starts_with_nothing() -> None:
    crash = Crash(member="c", at_us=200_000, back_after_us=300_000)
    run = run_without_violation(
        group((40,) * 3, rate_per_second=80, faults=FaultOptions(crashes=(crash,), healed_at_us=500_000))
    )
    of_first, of_second = (
        [row.time_ns for row in run.rows if (row.member, row.incarnation) == ("c", incarnation)]
        for incarnation in (1, 2)
    )
    assert max(of_first) <= 200 * MILLISECOND and min(of_second) > 500 * MILLISECOND
    assert not events(run, STOPPED, "c#1"), "a crash is not recorded"
    assert run.counters.broadcasts == 120, "the next incarnation broadcasts the rest"


def test_messages_of_an_excluded_incarnation_are_submitted_by_the_next() -> None:
    cut = NetworkCut(kind="isolated", members=("c",), from_us=200_000, for_us=300_000)
    run = run_without_violation(
        group((30,) * 3, rate_per_second=80, faults=FaultOptions(cuts=(cut,), healed_at_us=500_000))
    )
    assert events(run, STOPPED, "c#1") and views_of(run, "c#2")
    own = [message for message in delivered_by(run, "a#1") if message.startswith("c#")]
    assert len(own) == 30, "all planned broadcasts are delivered, some by the second incarnation"
    assert {message.partition("/")[0] for message in own} == {"c#1", "c#2"}


def test_member_whose_application_stalls_is_evicted_and_rejoins() -> None:
    stall = Stall(member="b", from_us=100_000, for_us=600_000)
    run = run_without_violation(
        group(
            (60,) * 3,
            rate_per_second=150,
            ordering=OrderingOptions(window=4),
            faults=FaultOptions(stalls=(stall,), healed_at_us=700_000),
            membership={"slow_ms": 200, "state": True},
        )
    )
    assert run.counters.occurred["eviction"]
    assert not [at for at in events(run, DELIVERED, "b#1") if at > 101 * MILLISECOND]
    assert views_of(run, "b#2") and events(run, STATE, "b#2")


def test_client_asks_one_member_after_the_other_and_nothing_is_delivered_twice() -> None:
    crash = Crash(member="b", at_us=150_000)
    run = run_without_violation(
        group(
            (0, 0, 0),
            faults=FaultOptions(crashes=(crash,), loss_percent=20, healed_at_us=500_000),
            load={"client_requests": 25, "client_patience_us": 3_000},
        )
    )
    assert run.counters.occurred["client retry"] > 5
    assert len(delivered_by(run, "a#1")) == 25
    assert len([row for row in run.rows if row.event == BROADCAST]) > 25, "some were ordered more than once"


def test_process_that_starts_late_joins_with_the_state() -> None:
    run = run_without_violation(
        group(
            (30, 30, 30),
            rate_per_second=60,
            membership={"founders": 2, "state": True},
            load={"start_us": (0, 0, 250_000), "state_bytes": 200_000},
        )
    )
    assert run.counters.occurred["join"] and run.counters.occurred["late start"]
    (restored_at,) = events(run, STATE, "c#1")
    assert restored_at > 250 * MILLISECOND
    assert min(events(run, DELIVERED, "c#1")) >= restored_at
