"""Runs of groups to which things happen that the dice choose."""

import random

from pipeline.living_groups import LivingGroup
from pipeline.sample_runs import SampleRun

_ORDERS = ("sequencer-ub", "sequencer-bb")


def random_life(seed: int, batch_max: int = 1) -> SampleRun:
    """A correct run in which things happen that the dice choose."""
    dice = random.Random(seed)
    policy = dice.choice(("primary", "partitionable"))
    group = LivingGroup(
        "abcd"[: dice.randint(3, 4)],
        policy=policy,
        delivery=dice.choice(("agreed", "agreed", "safe")),
        seed=seed,
        batch_max=batch_max,
        safe_share=dice.choice((0.0, 0.3)),
        selective_share=dice.choice((0.0, 0.3)),
        repeated_share=dice.choice((0.0, 0.0, 0.3)),
        clock=dice.choice(("virtual", "virtual", "local")),
        order=dice.choice(_ORDERS),
    )
    group.work(dice.randint(2, 4))
    for _ in range(dice.randint(1, 3)):
        _something_happens(group, dice)
        group.work(dice.randint(1, 3))
    return group.done()


def _something_happens(group: LivingGroup, dice: random.Random) -> None:
    component = group.components[0]
    names = [member.me.name for member in component.members]
    absent = sorted(set("abcde") - {member.me.name for part in group.components for member in part.members})
    some = dice.choice(names)
    what = dice.choice(("crash", "leave", "evict", "join", "part", "part", "order"))
    if what == "part" and not group.primary:
        if len(group.components) > 1:
            group.merge()
        else:
            group.split(*dice.sample(names, dice.randint(1, len(names) - 1)) if len(names) > 1 else "")
    elif what == "order":
        starvation = dice.choice(("none", "ageing:50us", "flush:2ms"))
        group.change_order(dice.choice(_ORDERS), dice.random() < 0.5, starvation)
    elif what == "join" and absent:
        group.join(dice.choice(absent), after=dice.randint(0, 3))
    elif len(names) > 2:
        if what == "leave":
            group.leave(some)
        elif what == "evict" and group.primary:
            group.evict(some)
        else:
            group.crash(some).work(dice.randint(0, 2)).notice()
