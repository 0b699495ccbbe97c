"""The advisor: recommends an ordering protocol for a group, with predictions for all of them and reasons.

Rules come first: a protocol that lacks a required property is excluded, with the reason. Of the others, the
one with the shortest predicted delivery time is chosen; among those that are close to it, the simplest, which
is the first in the table. The cost paper's conclusion for such a situation is added, whether or not the
choice agrees with it.

The prediction is deliberately simple. A message takes the time of its hops, and of the frames that are
handled sequentially on its path. The load uses the busiest member's processor. Above a threshold messages
share frames: as many as arrive meanwhile. The waiting time in a queue with that utilisation is added. Where
members share processors, the work of all members counts.
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
from priocast.core.protocol import OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.protocols import PROTOCOLS

CLOSE = 1.1
_SMALL_GROUP = 8
_TIMESTAMPED = ("causal-history", "all-ack")


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction for one protocol.

    `used` is the utilisation of the busiest member's processor; 1 is all of it. `delivery_ms` is None if the
    protocol is saturated. `excluded` is the reason why it cannot be chosen, or empty.
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
    def sort_key(self) -> tuple[bool, float]:
        """Sorts the best first: not excluded, then by delivery time, or by capacity if saturated."""
        time = self.delivery_ms if self.delivery_ms is not None else 1e12 / self.capacity
        return bool(self.excluded), time


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The recommended protocol, the reasons, and the predictions for all protocols, best first."""

    situation: Situation
    choice: str
    why: list[str]
    ranking: list[Prediction]

    def of(self, order: str) -> Prediction | None:
        """The prediction for a protocol, if it is in the table."""
        return next((each for each in self.ranking if each.order == order), None)


class _Rule(msgspec.Struct, frozen=True):
    """A condition that excludes a protocol, and the reason."""

    excludes: Callable[[Situation, type[Protocol]], bool]
    why: str


class _Conclusion(msgspec.Struct, frozen=True):
    """A conclusion of the cost paper, and the situations that it applies to.

    Messages did not share frames there: `applies` gets the utilisation of a fixed sequencer without sharing.
    """

    applies: Callable[[Situation, float], bool]
    families: tuple[str, ...]
    says: str


_RULES = (
    _Rule(
        lambda situation, protocol: situation.partitionable and not protocol.PARTITIONABLE,
        "it does not support partitionable groups",
    ),
    _Rule(
        lambda situation, protocol: situation.causal and protocol.NAME not in _TIMESTAMPED,
        "it keeps causal order only of messages that applications have delivered",
    ),
    _Rule(
        lambda situation, protocol: (
            situation.priorities == "group" and protocol.PRIORITIES_ACT == "sending" and situation.active > 1
        ),
        "its priorities act at each sender: an urgent message does not overtake those of other senders",
    ),
    _Rule(
        lambda situation, protocol: (
            situation.priorities == "group" and protocol.NAME in _TIMESTAMPED and not situation.causal
        ),
        "its priorities act among concurrent messages of one bucket only",
    ),
)

_CONCLUSIONS = (
    _Conclusion(
        lambda situation, used: situation.members <= _SMALL_GROUP and used < BUSY,
        ("fixed sequencer", "privilege"),
        "in small groups at moderate rates, sequencers and token rings perform equally well (section 5)",
    ),
    _Conclusion(
        lambda situation, used: situation.priorities == "group" and used < BUSY,
        ("fixed sequencer",),
        "the fixed sequencer prioritises best while it is not saturated (section 4.5)",
    ),
    _Conclusion(
        lambda situation, used: used >= BUSY and situation.active < situation.members,
        ("privilege",),
        "at higher rates a token ring sustains more load than a sequencer (section 4.5)",
    ),
    _Conclusion(
        lambda situation, used: used >= BUSY and situation.active == situation.members,
        ("communication history",),
        "when all members send at high rates, communication history is the clear winner (sections 4.5 and 5)",
    ),
)


def advise(situation: Situation) -> Advice:
    """Recommend a protocol for a group, with reasons."""
    ranking = sorted(
        (
            _evaluated(CLASSES[name], protocol, situation)
            for name, protocol in PROTOCOLS.items()
            if name in CLASSES
        ),
        key=lambda prediction: prediction.sort_key,
    )
    close = [each for each in ranking if _is_close(each, ranking[0])]
    choice = min(close, key=lambda each: list(CLASSES).index(each.order), default=ranking[0])
    return Advice(
        situation=situation, choice=choice.order, why=_why(situation, choice, ranking), ranking=ranking
    )


def predict(costs: ClassCosts, situation: Situation) -> Prediction:
    """The prediction for a protocol in a situation; exclusion is not considered."""
    members, senders = situation.members, situation.active
    rate_us = situation.rate / 1e6
    hop_us = 500 * situation.rtt_ms + WAKE_US
    answered = max(1.0, rate_us * hop_us)
    hops, path = (costs.hops(members, senders), costs.path(members, senders)) if members > 1 else (0.0, 1.0)
    if costs.null_messages and members > 1 and senders == members:
        hops = 1 + (hops - 1) / max(1.0, answered / members)
    work = _work(costs, situation, answered)
    sharing_max = max(1.0, min(SHARING_MAX, FRAME_BYTES / max(1, situation.payload_bytes)))
    left = BUSY - rate_us * work.message_us
    sharing = (
        max(1.0, rate_us * (work.load + work.null_frames) * FRAME_US / left) if left > 0 else SHARING_MAX
    )
    frames_us = FRAME_US * (
        work.load / min(sharing, sharing_max) + work.null_frames / min(sharing, SHARING_MAX)
    )
    used = rate_us * (frames_us + work.message_us)
    delivery_us = max((hops + situation.safe) * hop_us + path * FRAME_US, work.alone_us)
    if costs.waits_for_silent:
        delivery_us += _silence_us(situation)
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


def _silence_us(situation: Situation) -> float:
    """The mean time until every other member has sent something, if senders are independent and equal.

    A member that does not send acknowledges after `acknowledge_ms`, which bounds the time.
    """
    bound_us = 1000 * OrderingOptions().acknowledge_ms
    if situation.members == 1 or situation.active < situation.members or not situation.rate:
        return bound_us if situation.members > 1 else 0.0
    slowest = sum(1 / count for count in range(1, situation.members))
    return min(bound_us, slowest * situation.members * 1e6 / situation.rate)


class _Work(NamedTuple):
    """The work of a message at the busiest processor: its frames, null messages, time for the message itself.

    `alone_us` is the processor time of a message that travels alone, where members share processors.
    """

    load: float
    null_frames: float
    message_us: float
    alone_us: float = 0.0


def _work(costs: ClassCosts, situation: Situation, answered: float) -> _Work:
    """The work for a message, if one null message answers `answered` of them."""
    members, senders = situation.members, situation.active
    byte_us = situation.payload_bytes * BYTE_NS / 1000
    null_frames = 2 * (members - 1) / answered if costs.null_messages else 0.0
    message_us = costs.message_us + costs.copies(members, senders) * byte_us
    if members == 1:
        return _Work(1.0, null_frames, message_us)
    own = _Work(costs.load(members, senders), null_frames, message_us)
    if situation.processors is None:
        return own
    frames, carried = costs.frames(members, senders), 2 * (members - 1)
    shared = situation.processors
    return _Work(
        max(own.load, (carried if costs.null_messages else 2 * frames) / shared),
        max(own.null_frames, members * null_frames / shared),
        max(own.message_us, (members * costs.message_us + carried * byte_us) / shared),
        frames * (2 * FRAME_US + WAKE_US) / shared,
    )


def _evaluated(costs: ClassCosts, protocol: type[Protocol], situation: Situation) -> Prediction:
    reasons = [rule.why for rule in _RULES if rule.excludes(situation, protocol)]
    return msgspec.structs.replace(predict(costs, situation), excluded="; ".join(reasons))


def _is_close(prediction: Prediction, best: Prediction) -> bool:
    excluded, time = prediction.sort_key
    return (
        prediction.delivery_ms is not None
        and excluded == best.sort_key[0]
        and time <= CLOSE * best.sort_key[1]
    )


def _why(situation: Situation, choice: Prediction, ranking: list[Prediction]) -> list[str]:
    reasons = [_main_reason(situation, choice)]
    better = [
        each for each in ranking if each.delivery_ms is not None and each.sort_key[1] < choice.sort_key[1]
    ]
    for each in better:
        because = each.excluded or f"the simplest within {CLOSE - 1:.0%} of the best is chosen"
        reasons.append(f"{each.order} would take {each.delivery_ms:.2f} ms, but {because}")
    sequencer = CLASSES["sequencer-ub"].load(situation.members, situation.active)
    for conclusion in _CONCLUSIONS:
        if conclusion.applies(situation, situation.rate / 1e6 * sequencer * FRAME_US):
            agrees = "in line with" if choice.family in conclusion.families else "unlike"
            reasons.append(f"{agrees} the cost paper: {conclusion.says}")
    return reasons


def _main_reason(situation: Situation, choice: Prediction) -> str:
    if choice.excluded:
        return f"no protocol has all required properties; {choice.order} comes closest, but {choice.excluded}"
    if choice.delivery_ms is None:
        return (
            f"every protocol is saturated by {situation.rate:,.0f} messages per second; {choice.order} "
            f"sustains most: {choice.capacity:,.0f}"
        )
    return (
        f"{choice.order} ({choice.family}) delivers in {choice.delivery_ms:.2f} ms, uses {choice.used:.0%} "
        f"of its busiest member's processor, and sustains up to {choice.capacity:,.0f} messages per second"
    )
