"""Which crashes happen in a run: only those that the group can survive."""

import pytest

from priocast.core.protocol import OrderingOptions
from priocast.simulation.faults import COORDINATOR, Crash, FaultOptions, Leave, Stall
from priocast.simulation.simulator import SimulatedRun
from simulation.scenarios import delivered_by, group, run_without_violation, views_of


def run_with(size: int, *crashes: Crash, policy: str = "primary", state: bool = False) -> SimulatedRun:
    faults = FaultOptions(crashes=crashes, healed_at_us=1_500_000)
    return run_without_violation(
        group((20,) * size, rate_per_second=40, faults=faults, membership={"policy": policy, "state": state})
    )


def one_after_the_other(size: int) -> tuple[Crash, ...]:
    return tuple(Crash(member=COORDINATOR, at_us=200_000 * (number + 1)) for number in range(size))


def at_once(size: int) -> tuple[Crash, ...]:
    return tuple(Crash(member=name, at_us=200_000) for name in "abcde"[:size])


def test_all_but_two_may_crash_in_sequence() -> None:
    """Two members remain, so that the run still tests a group."""
    run = run_with(5, *one_after_the_other(5))
    assert run.counters.occurred["crash of the coordinator"] == 3
    assert [row.members for row in run.group_events if row.event == "view" and row.member == "e"][-1] == (
        "d#1",
        "e#1",
    )


def test_only_a_minority_of_a_primary_group_crashes_at_once() -> None:
    run = run_with(5, *at_once(5))
    assert run.counters.occurred["crash"] == 2
    assert views_of(run, "c#1") == ["1:a#1,b#1,c#1,d#1,e#1", "2:c#1,d#1,e#1"]


def test_more_than_a_minority_of_a_partitionable_group_may_crash_at_once() -> None:
    run = run_with(5, *at_once(5), policy="partitionable")
    assert run.counters.occurred["crash"] == 3


def test_second_of_two_members_may_crash_and_come_back() -> None:
    """Half of a view is a quorum only with its first member."""
    for name, crashes in (("a", 0), ("b", 1)):
        run = run_with(2, Crash(member=name, at_us=200_000, back_after_us=100_000))
        assert run.counters.occurred.get("crash", 0) == crashes


def test_last_member_with_the_state_does_not_crash() -> None:
    """The others have just restarted and do not have the state yet."""
    crashes = (
        Crash(member="b", at_us=200_000, back_after_us=100_000),
        Crash(member="a", at_us=320_000, back_after_us=100_000),
    )
    run = run_with(3, *crashes, policy="partitionable", state=True)
    assert len(delivered_by(run, "c#1")) > 0


@pytest.mark.parametrize("packets", [1, 2])
def test_member_that_promised_does_not_crash_when_the_view_that_follows_needs_it(packets: int) -> None:
    """The slow c is evicted by b, which needs a in the next view, of two, from the promise of a on."""
    faults = FaultOptions(
        stalls=(Stall(member="c", from_us=100_000, for_us=500_000),),
        crashes=(Crash(member="a", at_us=300_000, change_packets=packets, back_after_us=100_000),),
        healed_at_us=700_000,
    )
    run = run_without_violation(
        group(
            (0, 20, 20),
            rate_per_second=30,
            order="causal-history",
            ordering=OrderingOptions(window=2),
            faults=faults,
            membership={"slow_ms": 200, "state": True},
        )
    )
    assert run.counters.occurred["eviction"] and "crash" not in run.counters.occurred


@pytest.mark.parametrize("back_after_us", [None, 200_000])
def test_member_leaves_and_may_come_back(back_after_us: int | None) -> None:
    leave = Leave(member="b", at_us=200_000, back_after_us=back_after_us)
    run = run_without_violation(
        group((20, 20, 20), rate_per_second=40, faults=FaultOptions(leaves=(leave,), healed_at_us=500_000))
    )
    views = views_of(run, "a#1")
    assert views[:2] == ["1:a#1,b#1,c#1", "2:a#1,c#1"]
    assert views[2:] == ([] if back_after_us is None else ["3:a#1,c#1,b#2"])
    assert run.counters.occurred["leave"] and "failure" not in run.counters.occurred


def test_member_that_is_needed_does_not_leave() -> None:
    leaves = tuple(Leave(member=name, at_us=200_000 + index * 1_000) for index, name in enumerate("abc"))
    run = run_without_violation(
        group((20, 20, 20), rate_per_second=40, faults=FaultOptions(leaves=leaves, healed_at_us=500_000))
    )
    assert run.counters.occurred["leave"] == 2, "one left, and two installed the view without it"
