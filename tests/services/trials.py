"""Random runs of a small group that sends with one quality of service, each determined by its seed."""

import random
from collections import defaultdict
from copy import copy
from functools import partial
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.quality import Quality, QualityKind
from priocast.services.packets import TransmissionId
from services.lan import MS, Lan, Omissions

SIZE = 4
MESSAGES = 12
DEGREE = 2
_LOSSY_UNTIL = 400 * MS


class Sent(NamedTuple):
    """A message that was sent, and what its sender had sent and delivered before."""

    quality: Quality
    sender: ProcessId
    recipients: tuple[ProcessId, ...]
    priority: int
    units: int
    at: int
    sent_before: tuple[TransmissionId, ...]
    delivered_before: tuple[TransmissionId, ...]


class Trial(NamedTuple):
    """One run and what was sent in it."""

    lan: Lan
    quality: Quality
    sent: dict[TransmissionId, Sent]

    @property
    def crashed(self) -> list[ProcessId]:
        """The processes that failed."""
        return [each for each in self.lan.ids if each not in self.lan.alive]

    def holders(self, message: TransmissionId) -> list[ProcessId]:
        """The processes that delivered a message, including those that failed later."""
        return [each for each in self.lan.ids if (message, 0) in self.lan.delivered[each]]


def run_trial(
    quality: Quality,
    seed: int,
    *,
    bounded: bool,
    crashes: int = 1,
    held_max: int | None = None,
    others: tuple[Quality, ...] = (),
    together: int = 1,
) -> Trial:
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
        lan.consume_at[lan.ids[1]] = 200 * MS
    trial = Trial(lan, quality, {})
    for _ in range(MESSAGES * (5 if others else 1)):
        chosen = rnd.choice((quality, *others)) if others else quality
        send = partial(_send, trial, chosen, rnd, selective=seed % 2 == 1, together=together)
        lan.at(rnd.randint(50, 250) * MS, send)
    for _ in range(crashes):
        lan.at(rnd.randint(50, 300) * MS, lambda: _crash(lan, rnd))
    lan.run(4000)
    return trial


def only(trial: Trial, *qualities: Quality) -> Trial:
    """The part of a run that is about the messages of these qualities."""
    lan = copy(trial.lan)
    mine = {message for message, sent in trial.sent.items() if sent.quality in qualities}
    lan.delivered = {
        process: [each for each in delivered if each[0] in mine]
        for process, delivered in lan.delivered.items()
    }
    lan.payloads = defaultdict(list, {key: found for key, found in lan.payloads.items() if key[1] in mine})
    lan.times = {key: at for key, at in lan.times.items() if key[1] in mine}
    sent = {
        message: sent._replace(
            sent_before=tuple(each for each in sent.sent_before if each in mine),
            delivered_before=tuple(each for each in sent.delivered_before if each in mine),
        )
        for message, sent in trial.sent.items()
        if message in mine
    }
    return Trial(lan, qualities[0], sent)


def _send(trial: Trial, quality: Quality, rnd: random.Random, selective: bool, together: int) -> None:
    lan = trial.lan
    sender = rnd.choice(lan.alive)
    members = list(lan.view.members)
    recipients = sorted(rnd.sample(members, rnd.randint(2, len(members)))) if selective else members
    if selective and quality.names:
        recipients = sorted({*recipients, *(each for each in members if each.name in quality.names)})
    priority = rnd.randint(0, 3) if quality.kind is QualityKind.TIGHT else 1
    units = rnd.choice([1, 1, 1, 3])
    delivered = tuple(dict.fromkeys(each for each, _ in lan.delivered[sender]))
    to = [lan.ids.index(each) for each in recipients]
    index = lan.ids.index(sender)
    messages = lan.send_together(together, index, quality, to=to, priority=priority, units=units)
    for message in messages:
        before = tuple(each for each, sent in trial.sent.items() if sent.sender == sender)
        trial.sent[message] = Sent(
            quality, sender, tuple(recipients), priority, units, lan.now, before, delivered
        )


def _crash(lan: Lan, rnd: random.Random) -> None:
    if len(lan.alive) > 2:
        lan.crash(lan.ids.index(rnd.choice(lan.alive)))
