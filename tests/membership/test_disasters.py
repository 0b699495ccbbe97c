"""Known disasters of group communication, each as a scenario under its usual name.

Every run is under the eyes of all checkers; what is asserted beside that shows that the disaster was really
on its way.
"""

from itertools import pairwise

import pytest

from priocast.core.protocol import OrderingOptions
from priocast.links.fifo_link import WINDOW_FRAMES
from priocast.membership.departure import Departed
from priocast.simulation.faults import COORDINATOR, Crash, FaultOptions, NetworkCut, Pause
from priocast.simulation.scenario import NetworkOptions
from priocast.simulation.simulator import SimulatedRun
from priocast.trace.schema import DELIVERED, RECEIVED, SENT, STOPPED
from simulation.scenarios import (
    LOW,
    MILLISECOND,
    delivered_by,
    group,
    run_without_violation,
    view_rows,
    views_of,
)

PARTITIONABLE = {"policy": "partitionable"}


def stopped(run: SimulatedRun) -> list[str]:
    """The incarnations that were evicted, and why."""
    return [
        f"{row.member}#{row.incarnation}: {Departed(row.voluntary, row.reason)}"
        for row in run.group_events
        if row.event == STOPPED
    ]


def test_a_paused_and_evicted_member_that_resumes() -> None:
    """It is still in its old view and has messages for it, which nobody may accept."""
    pause = Pause(member="c", from_us=100_000, for_us=400_000)
    run = run_without_violation(
        group(
            (40, 40, 40),
            rate_per_second=100,
            faults=FaultOptions(pauses=(pause,), healed_at_us=500_000),
            membership={"state": True},
        )
    )
    assert views_of(run, "a#1") == ["1:a#1,b#1,c#1", "2:a#1,b#1", "3:a#1,b#1,c#2"]
    assert stopped(run) == ["c#1: evicted: c failed"]
    out_at = next(row.time_ns for row in run.rows if row.event == STOPPED)
    assert out_at - 500 * MILLISECOND < 50 * MILLISECOND, "it learns so as soon as it resumes"
    late = [row for row in run.rows if row.member == "c" and row.event == DELIVERED and row.view == 1]
    assert all(row.time_ns <= out_at for row in late)
    assert set(delivered_by(run, "a#1")) >= set(delivered_by(run, "c#2"))


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_a_suspended_machine(policy: str) -> None:
    """All members are on it and pause for a while: a local pause is not the silence of the others."""
    pauses = tuple(Pause(member=name, from_us=100_000, for_us=400_000) for name in "abc")
    run = run_without_violation(
        group(
            (40, 40, 40),
            rate_per_second=100,
            faults=FaultOptions(pauses=pauses, healed_at_us=500_000),
            membership={"policy": policy},
        )
    )
    for name in "abc":
        assert views_of(run, f"{name}#1") == ["1:a#1,b#1,c#1"]


def test_a_restarted_imposter() -> None:
    """A process that restarts before anybody noticed has the name of a member, and none of its state.

    It could be a second process of that name, so it waits until the first one is suspected, and no longer.
    """
    crash = Crash(member="b", at_us=150_000, back_after_us=5_000)
    run = run_without_violation(
        group(
            (30, 30, 30),
            rate_per_second=100,
            faults=FaultOptions(crashes=(crash,), healed_at_us=200_000),
            membership={"state": True},
        )
    )
    assert views_of(run, "b#1") == ["1:a#1,b#1,c#1"]
    first, *_ = view_rows(run, "b#2")
    assert "b#1" not in first.members and "b#2" in first.members
    assert first.time_ns < 300 * MILLISECOND
    senders = {message.partition("/")[0] for message in delivered_by(run, "a#1")}
    assert senders == {"a#1", "b#1", "b#2", "c#1"}


def test_a_merge_that_never_ends() -> None:
    """Two sides that find each other at the same time must not outbid each other for ever."""
    cut = NetworkCut(kind="halves", members=("a", "b", "c"), from_us=100_000, for_us=300_000)
    run = run_without_violation(
        group(
            (20,) * 6,
            rate_per_second=40,
            faults=FaultOptions(cuts=(cut,), loss_percent=10, healed_at_us=400_000),
            membership=PARTITIONABLE,
        )
    )
    numbers = {process: [row.view for row in view_rows(run, process)] for process in ("a#1", "d#1")}
    last = {views_of(run, f"{name}#1")[-1] for name in "abcdef"}
    assert len(last) == 1 and last.pop().count("#1") == 6
    assert run.counters.occurred["partition"] and run.counters.occurred["merge"]
    assert all(len(of_one) <= 6 for of_one in numbers.values()), "it took a few views, not many"
    merged_at = view_rows(run, "a#1")[-1].time_ns
    assert merged_at < 900 * MILLISECOND, "five failure timeouts after the cut healed"


@pytest.mark.parametrize(
    "crash",
    [
        Crash(member="d", at_us=100_000, change_packets=1),
        Crash(member="d", at_us=100_000, change_packets=2),
        Crash(member="d", at_us=112_000),
        Crash(member="d", at_us=114_000),
        Crash(member="d", at_us=120_000),
    ],
    ids=["when it has promised", "when it has accepted", "a little later", "later", "once it is in"],
)
@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_a_member_that_joins_and_dies_in_one_round(crash: Crash, policy: str) -> None:
    """The view that admits it is decided, or about to be, when it crashes: nobody may wait for ever."""
    run = run_without_violation(
        group(
            (20, 20, 20, 5),
            rate_per_second=60,
            faults=FaultOptions(crashes=(crash,), healed_at_us=400_000),
            membership={"policy": policy, "founders": 3, "state": True},
            load={"start_us": (0, 0, 0, 100_000)},
        )
    )
    assert run.counters.occurred["crash"]
    for name in "abc":
        views = views_of(run, f"{name}#1")
        assert views[-1].endswith(":a#1,b#1,c#1"), "those who were there stay together"
        assert len(views) <= 3


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_a_b_and_b_c_work_but_a_c_does_not(policy: str) -> None:
    """B hears both and must choose; a view of all three could not work, and must not be tried for ever."""
    cut = NetworkCut(kind="bridge", members=("a", "b", "c"), from_us=100_000, for_us=600_000)
    run = run_without_violation(
        group(
            (60, 60, 60),
            rate_per_second=80,
            faults=FaultOptions(cuts=(cut,), healed_at_us=700_000),
            membership={"policy": policy},
        )
    )
    while_cut = [
        row
        for name in "abc"
        for row in run.group_events
        if row.event == "view" and row.member == name and 250 * MILLISECOND < row.time_ns < 700 * MILLISECOND
    ]
    assert all(not {"a", "c"} <= {member.partition("#")[0] for member in row.members} for row in while_cut)
    of_b = [row for row in view_rows(run, "b#1") if row.time_ns < 700 * MILLISECOND]
    assert len(of_b) <= 4, "b does not go back and forth"
    assert len(of_b[-1].members) == 2, "b is not alone: it can talk to either"
    assert len(view_rows(run, "b#1")[-1].members) == 3, "in the end all are together"


def test_credit_lost_in_a_view_change() -> None:
    """Messages in flight when the sequencer crashed have used credit; the next one must not wait for it."""
    crashes = tuple(Crash(member=COORDINATOR, at_us=at_us) for at_us in (150_000, 400_000))
    run = run_without_violation(
        group(
            (60,) * 5,
            rate_per_second=400,
            burst=4,
            ordering=OrderingOptions(window=2, submit_max=2, queue_max=4),
            faults=FaultOptions(crashes=crashes, loss_percent=10, healed_at_us=500_000),
        )
    )
    assert run.counters.occurred["crash of the coordinator"] == 2
    assert run.counters.occurred["back-pressure"]
    own = [message for message in delivered_by(run, "e#1") if message.startswith("e#1/")]
    assert len(own) == 60


def test_a_sequencers_resend_delivered_twice() -> None:
    """The old sequencer's packets are still in flight, or sent again, while the new one orders the rest."""
    cut = NetworkCut(kind="one-way", members=("a", "b"), from_us=120_000, for_us=400_000)
    run = run_without_violation(
        group(
            (50, 50, 50),
            rate_per_second=150,
            faults=FaultOptions(
                cuts=(cut,),
                duplication_percent=40,
                reordering_percent=40,
                reordering_us=60_000,
                healed_at_us=700_000,
            ),
            membership={"state": True},
        )
    )
    assert run.counters.occurred["failure"] and run.counters.occurred["duplication"]
    assert run.counters.occurred["retransmission"]
    everything = delivered_by(run, "c#1")
    assert len(everything) == len(set(everything))


def test_a_later_number_delivered_over_a_gap() -> None:
    """Position 8 is here, 7 is lost with the sequencer: 8 must wait for 7, or be lost with it."""
    crash = Crash(member="a", at_us=150_000)
    run = run_without_violation(
        group(
            (80, 80, 80, 80),
            rate_per_second=500,
            priorities=((LOW, 1),),
            faults=FaultOptions(
                crashes=(crash,),
                loss_percent=30,
                reordering_percent=50,
                reordering_us=30_000,
                healed_at_us=400_000,
            ),
        )
    )
    assert run.counters.occurred["crash of the coordinator"] and run.counters.occurred["loss"] > 50
    for name in "bcd":
        positions = [row.position for row in run.messages if row.event == DELIVERED and row.member == name]
        assert all(later == position + 1 for position, later in pairwise(positions))


def test_a_retransmission_window_overrun() -> None:
    """More is sent than a link's window holds while the peer is silent: nothing may be lost or mixed up."""
    pause = Pause(member="c", from_us=100_000, for_us=85_000)
    run = run_without_violation(
        group(
            (300, 0, 0),
            rate_per_second=5_000,
            ordering=OrderingOptions(window=1_000),
            network=NetworkOptions(latency_us=500),
            faults=FaultOptions(pauses=(pause,), loss_percent=20, healed_at_us=200_000),
        )
    )
    resumes_at = 185 * MILLISECOND
    received = [
        row for row in run.messages if (row.event, row.member) == (RECEIVED, "c") and row.position >= 0
    ]
    reached = max(row.position for row in received if row.time_ns < 100 * MILLISECOND)
    ordered = [
        row for row in run.messages if (row.event, row.member) == (SENT, "a") and row.position > reached
    ]
    under_way = [row for row in ordered if row.time_ns < resumes_at]
    assert len(under_way) >= WINDOW_FRAMES, "the window was full"
    assert max(row.time_ns for row in under_way) < resumes_at - 20 * MILLISECOND, "so the rest had to wait"
    assert run.counters.views == 1, "and c was not given up"
    positions = [row.position + index for row in received for index in range(row.count)]
    assert positions == list(range(300))
