"""Runs of the classes that re-order queues: played by dice on a group, or drawn in the simulator."""

import random

from tools.scripted_group import ScriptedGroup

from pipeline.sample_runs import SampleRun
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.simulation.faults import Crash, FaultOptions
from priocast.simulation.scenario import NetworkOptions, Scenario
from priocast.simulation.scenario_generator import Choice, generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import (
    manifest_of,
)
from simulation.scenarios import group

LEVELS = (BACKGROUND, ROUTINE, ELEVATED, URGENT)
ORDERS = ("reorder", "reorder-locks")


def played(
    seed: int, order: str = "reorder", batch_max: int = 1, moves: int = 90, prioritised: bool = True
) -> SampleRun:
    """Members broadcast, packets arrive and applications consume as the dice say; all of it in the end."""
    dice = random.Random(seed)
    options = OrderingOptions(prioritised=prioritised, distributed=dice.random() < 0.3)
    group = ScriptedGroup("abc", order, options)
    names = list(group.members)
    for move in range(moves):
        name, other = dice.sample(names, 2)
        match dice.choice(("broadcast", "arrive", "arrive", "arrive", "consume")):
            case "broadcast":
                group.broadcast(name, dice.choice(LEVELS), *[b"x"] * dice.randint(1, batch_max))
            case "arrive":
                group.arrive(name, other, dice.randint(1, 4))
            case "consume":
                group.consume(name, dice.randint(1, 2))
        if move % 30 == 29:
            group.settle()
    group.finish()
    return SampleRun(group.manifest(f"{order}-{seed}"), group.rows)


def simulated(seed: int, order: str = "reorder") -> SampleRun:
    """A run with faults, crashes and new members."""
    return _recorded(generate_scenario(seed, Choice(order))).named(f"{order}-{seed}")


def with_a_joiner_that_never_had_the_state(order: str) -> SampleRun:
    """One that comes back crashes while the state is on its way; it had kept what was ordered meanwhile."""
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


def _recorded(scenario: Scenario) -> SampleRun:
    run = run_scenario(scenario)
    assert not run.violations
    return SampleRun(manifest_of(run), list(run.rows)).changed(lambda rows: rows)
