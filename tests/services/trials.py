"""Random runs of a small group that sends with a quality of service, each determined by its seed."""

import random
from collections.abc import Collection
from functools import partial

from priocast.core.quality import Quality, QualityKind
from priocast.simulation.omissions import Omissions
from services.judgement import judge_services
from services.lan import MS, Lan

SIZE = 4
MESSAGES = 12
DEGREE = 2
_LOSSY_UNTIL = 400 * MS


def violations(lan: Lan, kinds: Collection[QualityKind] | None = None) -> list[str]:
    """What is broken of the promises; with `kinds`, of every guarantee, promised or not."""
    return list(map(str, judge_services(lan.rows, lan.options.precision_ns, kinds)))


def broken(lan: Lan, kinds: Collection[QualityKind] | None = None) -> set[str]:
    """The guarantees that do not hold."""
    return {each.guarantee for each in judge_services(lan.rows, lan.options.precision_ns, kinds)}


def run_trial(
    quality: Quality,
    seed: int,
    *,
    bounded: bool,
    crashes: int = 1,
    held_max: int | None = None,
    others: tuple[Quality, ...] = (),
    together: int = 1,
) -> Lan:
    """A run on a LAN with network order and at most k omissions (`bounded`), or on a network without either.

    Half of the seeds address all members, the other half address random ones. With `held_max`, the
    application of member b takes nothing for a while, so that b rejects messages. With `others`, further
    qualities, there are more messages. So many messages are sent `together`, in one turn.
    """
    rnd = random.Random(seed)
    if bounded:
        lose = Omissions(seed, DEGREE, 0.4)
        lan = Lan(SIZE, seed=seed, omission_degree=DEGREE, lose=lose, held_max=held_max or 4096)
    else:
        lan = Lan(SIZE, seed=seed, ordered=False, omission_degree=None, held_max=held_max or 4096)
        lan.lose = lambda *_: lan.now < _LOSSY_UNTIL and rnd.random() < 0.15
    if held_max is not None:
        lan.stall(1, 200 * MS)
    for _ in range(MESSAGES * (5 if others else 1)):
        chosen = rnd.choice((quality, *others)) if others else quality
        send = partial(_send, lan, chosen, rnd, selective=seed % 2 == 1, together=together)
        lan.at(rnd.randint(50, 250) * MS, send)
    for _ in range(crashes):
        lan.at(rnd.randint(50, 300) * MS, lambda: _crash(lan, rnd))
    lan.run(4000)
    return lan


def _send(lan: Lan, quality: Quality, rnd: random.Random, selective: bool, together: int) -> None:
    sender = rnd.choice(lan.alive)
    members = list(lan.view.members)
    recipients = sorted(rnd.sample(members, rnd.randint(2, len(members)))) if selective else members
    if selective and quality.names:
        recipients = sorted({*recipients, *(each for each in members if each.name in quality.names)})
    priority = rnd.randint(0, 3) if quality.kind is QualityKind.TIGHT else 1
    units = rnd.choice([1, 1, 1, 3])
    to = [lan.ids.index(each) for each in recipients]
    index = lan.ids.index(sender)
    lan.send_together(together, index, quality, to=to, priority=priority, units=units)


def _crash(lan: Lan, rnd: random.Random) -> None:
    if len(lan.alive) > 2:
        lan.crash(lan.ids.index(rnd.choice(lan.alive)))
