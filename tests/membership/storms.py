"""Storms: short runs with one kind of fault each, a little different for every seed.

They last for less than a second of virtual time each, so a mutant can be shown many of them.
"""

from random import Random
from typing import Any

import msgspec

from priocast.core.protocol import OrderingOptions
from priocast.simulation.faults import COORDINATOR, Crash, FaultOptions, NetworkCut, Pause, PlannedOrderChange
from priocast.simulation.scenario import NetworkOptions, Scenario
from simulation.scenarios import group

HEARTBEAT_MS, FAILURE_MS = 20, 60
FAILURE_US = FAILURE_MS * 1_000
HEALED_US = 600_000


def storm(seed: int, size: int, faults: dict[str, Any], **life: Any) -> Scenario:
    """A busy group on a network that delays frames by 0.2 to 2 ms, with these faults."""
    dice = Random(f"storm {seed}")
    return group(
        (dice.randint(10, 40),) * size,
        rate_per_second=dice.choice((60, 120)),
        burst=dice.choice((1, 3)),
        consume_us=dice.choice((0, 300)),
        ordering=OrderingOptions(window=dice.choice((None, 8))),
        network=NetworkOptions(latency_us=200, latency_spread_us=600, latency_shape="exponential"),
        faults=FaultOptions(healed_at_us=HEALED_US, **faults),
        seed=seed,
        membership={"heartbeat_ms": HEARTBEAT_MS, "failure_ms": FAILURE_MS, **life},
        load={"broadcast_from_us": 30_000},
    )


def crashes(seed: int, **life: Any) -> Scenario:
    """The coordinator crashes under load, and another member during the view change that follows."""
    dice = Random(f"crashes {seed}")
    at_us = dice.randint(60_000, 200_000)
    faults = {
        "loss_percent": dice.choice((0, 20)),
        "crashes": (
            Crash(member=COORDINATOR, at_us=at_us),
            Crash(at_us=at_us, change_packets=dice.randint(1, 12), back_after_us=FAILURE_US),
        ),
    }
    return storm(seed, dice.choice((3, 4, 5)), faults, **life)


def restarts(seed: int, **life: Any) -> Scenario:
    """Members crash and restart, some before anybody has noticed."""
    dice = Random(f"restarts {seed}")
    faults = {
        "loss_percent": dice.choice((0, 20)),
        "crashes": tuple(
            Crash(
                member=dice.choice(("a", "b", "c")),
                at_us=dice.randint(60_000, 300_000),
                back_after_us=dice.choice((2_000, 20_000, 2 * FAILURE_US)),
            )
            for _ in range(3)
        ),
    }
    return storm(seed, 4, faults, **life)


def cuts(seed: int, **life: Any) -> Scenario:
    """The group is partitioned and heals, twice."""
    dice = Random(f"cuts {seed}")
    size = dice.choice((2, 3, 4, 5))
    names = "abcde"[:size]
    faults = {
        "loss_percent": dice.choice((0, 0, 20)),
        "cuts": tuple(
            NetworkCut(
                kind="halves",
                members=tuple(dice.sample(names, dice.randint(1, size - 1))),
                from_us=dice.randint(50_000, 150_000) + part * 200_000,
                for_us=dice.randint(FAILURE_US, 3 * FAILURE_US),
            )
            for part in range(2)
        ),
    }
    return storm(seed, size, faults, **life)


def duels(seed: int, **life: Any) -> Scenario:
    """Several members propose at once: partitions overlap, frames are lost or late, one crashes."""
    dice = Random(f"duels {seed}")
    size = 5
    overlapping = tuple(
        NetworkCut(
            kind="halves",
            members=tuple(dice.sample("abcde", dice.randint(1, 2))),
            from_us=dice.randint(50_000, 350_000),
            for_us=dice.randint(20_000, 2 * FAILURE_US),
        )
        for _ in range(5)
    )
    faults = {
        "loss_percent": 30,
        "reordering_percent": 30,
        "reordering_us": 40_000,
        "cuts": overlapping,
        "pauses": (Pause(member=COORDINATOR, from_us=dice.randint(60_000, 200_000), for_us=90_000),),
        "crashes": (
            Crash(
                at_us=dice.randint(60_000, 200_000),
                change_packets=dice.randint(1, 12),
                back_after_us=FAILURE_US,
            ),
        ),
    }
    return storm(seed, size, faults, **life)


def returns(seed: int, **life: Any) -> Scenario:
    """Members are unreachable or paused, are evicted, and rejoin with their unordered messages."""
    dice = Random(f"returns {seed}")
    faults = {
        "cuts": (
            NetworkCut(
                kind="isolated",
                members=(dice.choice(("a", "b", COORDINATOR)),),
                from_us=dice.randint(60_000, 120_000),
                for_us=dice.randint(2 * FAILURE_US, 3 * FAILURE_US),
            ),
            NetworkCut(
                kind="one-way",
                members=tuple(dice.sample("abc", 2)),
                from_us=dice.randint(300_000, 350_000),
                for_us=dice.randint(2 * FAILURE_US, 3 * FAILURE_US),
            ),
        ),
    }
    return storm(seed, dice.choice((3, 4)), faults, **life)


def joins(seed: int, **life: Any) -> Scenario:
    """Members join a group that has a state, and their donors crash."""
    dice = Random(f"joins {seed}")
    crash = Crash(member=COORDINATOR, at_us=dice.randint(100_000, 320_000), back_after_us=FAILURE_US)
    scenario = storm(seed, 4, {"loss_percent": 10, "crashes": (crash,)}, founders=3, state=True, **life)
    workload = msgspec.structs.replace(
        scenario.workload,
        start_us=(0, 0, 0, dice.randint(100_000, 300_000)),
        state_bytes=dice.choice((0, 100_000)),
    )
    return msgspec.structs.replace(scenario, workload=workload)


def requests(seed: int, **life: Any) -> Scenario:
    """A client loses patience with its member."""
    scenario = restarts(seed, **life)
    workload = msgspec.structs.replace(scenario.workload, client_requests=20, client_patience_us=4_000)
    return msgspec.structs.replace(scenario, workload=workload)


def unheard_proposals(seed: int, **life: Any) -> Scenario:
    """A proposer has the promises of all members, and from then on nobody hears it: nobody accepts.

    Four of five are left, which is a quorum: they agree on another view of the same number. So the proposer
    must not have decided its own.
    """
    dice = Random(f"unheard proposals {seed}")
    change_at_us, latency_us = 103_000, 3_000
    faults = {
        "order_changes": (
            PlannedOrderChange(member="a", at_us=change_at_us, prioritised=False, starvation="none"),
        ),
        "cuts": tuple(
            NetworkCut(
                kind="one-way",
                members=("a", name),
                from_us=change_at_us + dice.randint(latency_us + 1, 2 * latency_us - 1),
                for_us=3 * FAILURE_US,
            )
            for name in "bcde"
        ),
    }
    scenario = storm(seed, 5, faults, **life)
    return msgspec.structs.replace(scenario, network=NetworkOptions(latency_us=latency_us))
