"""Runs of groups with random faults and changes."""

import random

from pipeline.group_model import GroupModel
from pipeline.sample_runs import SampleRun

_ORDERS = ("sequencer-ub", "sequencer-bb")


def random_group(seed: int, batch_max: int = 1) -> SampleRun:
    """A correct run with random faults and changes."""
    rng = random.Random(seed)
    policy = rng.choice(("primary", "partitionable"))
    group = GroupModel(
        "abcd"[: rng.randint(3, 4)],
        policy=policy,
        delivery=rng.choice(("agreed", "agreed", "safe")),
        seed=seed,
        batch_max=batch_max,
        safe_share=rng.choice((0.0, 0.3)),
        selective_share=rng.choice((0.0, 0.3)),
        repeated_share=rng.choice((0.0, 0.0, 0.3)),
        clock=rng.choice(("virtual", "virtual", "local")),
        order=rng.choice(_ORDERS),
    )
    group.work(rng.randint(2, 4))
    for _ in range(rng.randint(1, 3)):
        _something_happens(group, rng)
        group.work(rng.randint(1, 3))
    return group.done()


def _something_happens(group: GroupModel, rng: random.Random) -> None:
    component = group.components[0]
    names = [member.me.name for member in component.members]
    absent = sorted(set("abcde") - {member.me.name for part in group.components for member in part.members})
    some = rng.choice(names)
    what = rng.choice(("crash", "leave", "evict", "join", "part", "part", "order"))
    if what == "part" and not group.primary:
        if len(group.components) > 1:
            group.merge()
        else:
            group.split(*rng.sample(names, rng.randint(1, len(names) - 1)) if len(names) > 1 else "")
    elif what == "order":
        starvation = rng.choice(("none", "ageing:50us", "flush:2ms"))
        group.change_order(rng.choice(_ORDERS), rng.random() < 0.5, starvation)
    elif what == "join" and absent:
        group.join(rng.choice(absent), after=rng.randint(0, 3))
    elif len(names) > 2:
        if what == "leave":
            group.leave(some)
        elif what == "evict" and group.primary:
            group.evict(some)
        else:
            group.crash(some).work(rng.randint(0, 2)).notice()
