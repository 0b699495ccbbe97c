"""Runs of the classes that re-order queues: played by dice on a stage, or drawn in the simulator."""

import random

from pipeline.sample_runs import SampleRun
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.simulation.draw import Choice, draw
from priocast.simulation.record import manifest_of
from priocast.simulation.simulator import run_scenario
from priocast.study.stage import Stage

LEVELS = (BACKGROUND, ROUTINE, ELEVATED, URGENT)
ORDERS = ("reorder", "reorder-locks")


def played(
    seed: int, order: str = "reorder", batch_max: int = 1, moves: int = 90, prioritised: bool = True
) -> SampleRun:
    """Members broadcast, packets arrive and applications consume as the dice say; all of it in the end."""
    dice = random.Random(seed)
    options = OrderingOptions(prioritised=prioritised, distributed=dice.random() < 0.3)
    stage = Stage("abc", order, options)
    names = list(stage.actors)
    for move in range(moves):
        name, other = dice.sample(names, 2)
        match dice.choice(("broadcast", "arrive", "arrive", "arrive", "consume")):
            case "broadcast":
                stage.broadcast(name, dice.choice(LEVELS), *[b"x"] * dice.randint(1, batch_max))
            case "arrive":
                stage.arrive(name, other, dice.randint(1, 4))
            case "consume":
                stage.consume(name, dice.randint(1, 2))
        if move % 30 == 29:
            stage.settle()
    stage.finish()
    return SampleRun(stage.manifest(f"{order}-{seed}"), stage.rows)


def simulated(seed: int, order: str = "reorder") -> SampleRun:
    """A run with faults, crashes and new members."""
    run = run_scenario(draw(seed, Choice(order)))
    return SampleRun(manifest_of(run), list(run.rows)).changed(lambda rows: rows).named(f"{order}-{seed}")
