"""Runs of the protocols that reorder queues: random moves on a group, or simulated."""

import random

from tools.scripted_group import ScriptedGroup

from pipeline.sample_runs import SampleRun
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.simulation.choice import Choice
from priocast.simulation.faults import Crash, FaultOptions, NetworkCut
from priocast.simulation.scenario import NetworkOptions, Scenario
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import manifest_of
from simulation.scenarios import group

LEVELS = (BACKGROUND, ROUTINE, ELEVATED, URGENT)
ORDERS = ("reorder", "reorder-locks")


def played(
    seed: int, order: str = "reorder", batch_max: int = 1, moves: int = 90, prioritised: bool = True
) -> SampleRun:
    """Members broadcast, packets arrive and applications consume at random, until everything is consumed."""
    rng = random.Random(seed)
    options = OrderingOptions(prioritised=prioritised, distributed=rng.random() < 0.3)
    group = ScriptedGroup("abc", order, options)
    names = list(group.members)
    for move in range(moves):
        name, other = rng.sample(names, 2)
        match rng.choice(("broadcast", "arrive", "arrive", "arrive", "consume")):
            case "broadcast":
                group.broadcast(name, rng.choice(LEVELS), *[b"x"] * rng.randint(1, batch_max))
            case "arrive":
                group.arrive(name, other, rng.randint(1, 4))
            case "consume":
                group.consume(name, rng.randint(1, 2))
        if move % 30 == 29:
            group.settle()
    group.finish()
    return SampleRun(group.manifest(f"{order}-{seed}"), group.rows)


def simulated(seed: int, order: str = "reorder") -> SampleRun:
    """A run with faults, crashes and new members."""
    return _recorded(generate_scenario(seed, Choice(order))).named(f"{order}-{seed}")


def with_a_joiner_that_never_had_the_state(order: str) -> SampleRun:
    """A rejoining member crashes during the state transfer; it had kept what was ordered meanwhile."""
    crashes = (
        Crash(member="c", at_us=200_000, back_after_us=100_000),
        Crash(member="c", at_us=500_000, back_after_us=100_000),
    )
    scenario = group(
        (60, 60, 60, 60),
        rate_per_second=120,
        consume_us=3_000,
        order=order,
        network=NetworkOptions(latency_us=200, bandwidth_bytes_per_second=2_000_000),
        faults=FaultOptions(crashes=crashes, healed_at_us=800_000),
        membership={"state": True},
        load={"state_bytes": 1_000_000},
    )
    return _recorded(scenario).named(f"{order}-joiner")


def with_a_sender_that_nobody_hears(order: str) -> SampleRun:
    """A member hears the others but is not heard: it decides alone where its own message goes.

    It delivers its message and what follows; the others continue without it. Found by an hour of faults.
    """
    cuts = tuple(
        NetworkCut(kind="one-way", members=("c", other), from_us=100_000, for_us=600_000) for other in "ab"
    )
    scenario = group(
        (60, 60, 60),
        rate_per_second=400,
        consume_us=2_500,
        order=order,
        network=NetworkOptions(latency_us=1_500),
        faults=FaultOptions(cuts=cuts, healed_at_us=900_000),
    )
    return _recorded(scenario).named(f"{order}-unheard")


def with_messages_for_some(order: str) -> SampleRun:
    """A member crashes that delivered messages for itself alone; some of all messages are safe."""
    crash = Crash(member="b", at_us=150_000, back_after_us=300_000)
    scenario = group(
        (80, 80),
        rate_per_second=400,
        order=order,
        faults=FaultOptions(crashes=(crash,), healed_at_us=500_000),
        load={"safe_percent": 40, "addressed_percent": 80},
    )
    return _recorded(scenario).named(f"{order}-for-some")


def _recorded(scenario: Scenario) -> SampleRun:
    run = run_scenario(scenario)
    assert not run.violations
    return SampleRun(manifest_of(run), list(run.rows)).changed(lambda rows: rows)
