"""The advisor: which class of total order suits a group, what it predicts for each, and why.

Rules first: what a class cannot give excludes it, with a sentence. Of the others the one with the shortest
predicted delivery time is chosen; among those that are close to it, the simplest, which is the first of the
table. What the cost paper concluded for such a situation is told beside it, whether the choice agrees or not.

The prediction is deliberately simple. A message takes its hops, and the time of the frames that are handled
one after the other on its way. The busiest member's processor fills with the load. Where it would be too
busy, messages share frames, as many as have come meanwhile; what remains is the wait in a queue of that use.
Members that share processors have to wait for each other: there it is the work of all of them that counts.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from priocast.advice.costs import (
    BUSY,
    BYTE_NS,
    CLASSES,
    FRAME_BYTES,
    FRAME_US,
    SHARING_MAX,
    WAKE_US,
    ClassCosts,
)
from priocast.advice.situation import Situation
from priocast.core.protocol import Protocol
from priocast.protocols import PROTOCOLS

CLOSE = 1.1
_SMALL_GROUP = 8


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of one class: `used` is the busiest member's use of its processor, 1 is all of it.

    `delivery_ms` is None if the class is saturated. `excluded` says why it is out of the question, if it is.
    """

    order: str
    family: str
    hops: float
    frames: float
    delivery_ms: float | None
    capacity: float
    used: float
    excluded: str = ""

    @property
    def rank(self) -> tuple[bool, float]:
        """What is better comes first: what can be chosen, then the shorter time, or what stands more."""
        time = self.delivery_ms if self.delivery_ms is not None else 1e12 / self.capacity
        return bool(self.excluded), time


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice, the reasons for it, and what all classes were judged by, the best first."""

    situation: Situation
    choice: str
    why: list[str]
    ranking: list[Prediction]

    def of(self, order: str) -> Prediction | None:
        """What was predicted for a class, if it is one of those in the table."""
        return next((each for each in self.ranking if each.order == order), None)


class _Rule(msgspec.Struct, frozen=True):
    """A class is out of the question if this holds."""

    excludes: Callable[[Situation, type[Protocol]], bool]
    why: str


class _Conclusion(msgspec.Struct, frozen=True):
    """What the cost paper found for such situations.

    It had no frames that messages share: what is asked for is how busy a fixed sequencer would be without.
    """

    applies: Callable[[Situation, float], bool]
    families: tuple[str, ...]
    says: str


_RULES = (
    _Rule(
        lambda situation, protocol: situation.partitionable and not protocol.PARTITIONABLE,
        "it is not for partitionable groups",
    ),
    _Rule(
        lambda situation, protocol: situation.causal and protocol.NAME != "causal-history",
        "it keeps causal order of what applications have delivered only",
    ),
    _Rule(
        lambda situation, protocol: (
            situation.priorities == "group" and protocol.PRIORITIES_ACT == "sending" and situation.active > 1
        ),
        "its priorities act at each sender: what is urgent does not overtake what others have sent",
    ),
    _Rule(
        lambda situation, protocol: (
            situation.priorities == "group" and protocol.NAME == "causal-history" and not situation.causal
        ),
        "its priorities act among concurrent messages of one bucket only",
    ),
)

_CONCLUSIONS = (
    _Conclusion(
        lambda situation, used: situation.members <= _SMALL_GROUP and used < BUSY,
        ("fixed sequencer", "privilege"),
        "in small groups at moderate rates sequencers and token rings do well, and alike (section 5)",
    ),
    _Conclusion(
        lambda situation, used: situation.priorities == "group" and used < BUSY,
        ("fixed sequencer",),
        "the fixed sequencer prioritises best, as long as it is not saturated (section 4.5)",
    ),
    _Conclusion(
        lambda situation, used: used >= BUSY and situation.active < situation.members,
        ("privilege",),
        "at higher rates a token ring stands more than a sequencer (section 4.5)",
    ),
    _Conclusion(
        lambda situation, used: used >= BUSY and situation.active == situation.members,
        ("communication history",),
        "when all members send at high rates, communication history is the clear winner (sections 4.5 and 5)",
    ),
)


def advise(situation: Situation) -> Advice:
    """Choose a class for a group, and explain it."""
    ranking = sorted(
        (
            _judged(CLASSES[name], protocol, situation)
            for name, protocol in PROTOCOLS.items()
            if name in CLASSES
        ),
        key=lambda prediction: prediction.rank,
    )
    close = [each for each in ranking if _is_close(each, ranking[0])]
    choice = min(close, key=lambda each: list(CLASSES).index(each.order), default=ranking[0])
    return Advice(
        situation=situation, choice=choice.order, why=_why(situation, choice, ranking), ranking=ranking
    )


def predict(costs: ClassCosts, situation: Situation) -> Prediction:
    """What is expected of a class in a situation, whether it is excluded or not."""
    members, senders = situation.members, situation.active
    rate_us = situation.rate / 1e6
    hop_us = 500 * situation.rtt_ms + WAKE_US
    answered = max(1.0, rate_us * hop_us)
    hops, path = (costs.hops(members, senders), costs.path(members, senders)) if members > 1 else (0.0, 1.0)
    if costs.words and members > 1 and senders == members:
        hops = 1 + (hops - 1) / max(1.0, answered / members)
    work = _work(costs, situation, answered)
    sharing_max = max(1.0, min(SHARING_MAX, FRAME_BYTES / max(1, situation.payload_bytes)))
    left = BUSY - rate_us * work.message_us
    sharing = max(1.0, rate_us * (work.load + work.words) * FRAME_US / left) if left > 0 else SHARING_MAX
    frames_us = FRAME_US * (work.load / min(sharing, sharing_max) + work.words / min(sharing, SHARING_MAX))
    used = rate_us * (frames_us + work.message_us)
    delivery_us = max((hops + situation.safe) * hop_us + path * FRAME_US, work.alone_us)
    if used < 1:
        delivery_us += sharing * (frames_us + work.message_us) * used / (1 - used) / 2
    return Prediction(
        order=costs.order,
        family=costs.family,
        hops=hops,
        frames=costs.frames(members, senders) if members > 1 else 0.0,
        delivery_ms=delivery_us / 1000 if used < 1 else None,
        capacity=1e6 / (work.load * FRAME_US / sharing_max + work.message_us),
        used=used,
    )


class _Work(NamedTuple):
    """What a message takes of the busiest processor: frames of its own, words, time of the message itself.

    `alone_us` is what nothing but processors takes, if the message travels alone and members share them.
    """

    load: float
    words: float
    message_us: float
    alone_us: float = 0.0


def _work(costs: ClassCosts, situation: Situation, answered: float) -> _Work:
    """The work for a message, where one word answers so many of them."""
    members, senders = situation.members, situation.active
    byte_us = situation.payload_bytes * BYTE_NS / 1000
    words = 2 * (members - 1) / answered if costs.words else 0.0
    message_us = costs.message_us + costs.copies(members, senders) * byte_us
    if members == 1:
        return _Work(1.0, words, message_us)
    own = _Work(costs.load(members, senders), words, message_us)
    if situation.processors is None:
        return own
    frames, carried = costs.frames(members, senders), 2 * (members - 1)
    shared = situation.processors
    return _Work(
        max(own.load, (carried if costs.words else 2 * frames) / shared),
        max(own.words, members * words / shared),
        max(own.message_us, (members * costs.message_us + carried * byte_us) / shared),
        frames * (2 * FRAME_US + WAKE_US) / shared,
    )


def _judged(costs: ClassCosts, protocol: type[Protocol], situation: Situation) -> Prediction:
    reasons = [rule.why for rule in _RULES if rule.excludes(situation, protocol)]
    return msgspec.structs.replace(predict(costs, situation), excluded="; ".join(reasons))


def _is_close(prediction: Prediction, best: Prediction) -> bool:
    excluded, time = prediction.rank
    return prediction.delivery_ms is not None and excluded == best.rank[0] and time <= CLOSE * best.rank[1]


def _why(situation: Situation, choice: Prediction, ranking: list[Prediction]) -> list[str]:
    said = [_of_choice(situation, choice)]
    better = [each for each in ranking if each.delivery_ms is not None and each.rank[1] < choice.rank[1]]
    for each in better:
        because = each.excluded or f"of what is within {CLOSE - 1:.0%} the simplest is taken"
        said.append(f"{each.order} would take {each.delivery_ms:.2f} ms, but {because}")
    sequencer = CLASSES["sequencer-ub"].load(situation.members, situation.active)
    for conclusion in _CONCLUSIONS:
        if conclusion.applies(situation, situation.rate / 1e6 * sequencer * FRAME_US):
            agrees = "in line with" if choice.family in conclusion.families else "other than in"
            said.append(f"{agrees} the cost paper: {conclusion.says}")
    return said


def _of_choice(situation: Situation, choice: Prediction) -> str:
    if choice.excluded:
        return f"no class gives all that is asked for; {choice.order} comes closest, but {choice.excluded}"
    if choice.delivery_ms is None:
        return (
            f"every class is saturated by {situation.rate:,.0f} messages a second; {choice.order} stands "
            f"most: {choice.capacity:,.0f}"
        )
    return (
        f"{choice.order} ({choice.family}) delivers in {choice.delivery_ms:.2f} ms, uses {choice.used:.0%} "
        f"of its busiest member's processor, and sustains up to {choice.capacity:,.0f} messages a second"
    )
