"""The qualities of service: how much agreement, order and timeliness a message pays for (xAMp, Table 3).

    quality             delivered to                                      order
    best_effort(n)      at least n recipients, unless the sender fails    FIFO
    best_effort_to(…)   the named recipients, unless the sender fails     FIFO
    at_least(n)         at least n recipients                             FIFO
    at_least_to(…)      the named recipients                              FIFO
    RELIABLE            all recipients                                    FIFO
    CAUSAL              all recipients                                    causal
    ATOMIC              all recipients or none                            total and causal
    TIGHT               all recipients or none                            total and causal, urgent ones first
    delta(ms)           all recipients or none                            by the time of sending

`best_effort(0)` sends a message once and waits for no answer.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.identity import Name, check_name

_COUNT_MAX = 256


class QualityKind(StrEnum):
    """The protocol that carries a message."""

    BEST_EFFORT = "best-effort"
    AT_LEAST = "at-least"
    RELIABLE = "reliable"
    CAUSAL = "causal"
    ATOMIC = "atomic"
    TIGHT = "tight"
    DELTA = "delta"


class Quality(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One quality of service. Create it with the functions of this module.

    `count` recipients must get the message, or those with these `names`; all of them if neither is given.
    `acknowledged`: the decision about an atomic message is acknowledged by every recipient, so that none has
    to ask for it. `within_ms` is the time after which a delta message is delivered.
    """

    kind: QualityKind
    count: Annotated[int, msgspec.Meta(ge=0, le=_COUNT_MAX)] | None = None
    names: Annotated[tuple[Name, ...], msgspec.Meta(max_length=_COUNT_MAX)] = ()
    acknowledged: bool = False
    within_ms: Annotated[float, msgspec.Meta(gt=0, le=60_000)] | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether the parameters are those of this kind of quality, as the functions here set them."""
        partial = self.kind in (QualityKind.BEST_EFFORT, QualityKind.AT_LEAST)
        is_counted, is_named = self.count is not None, bool(self.names)
        is_agreed = self.kind in (QualityKind.ATOMIC, QualityKind.TIGHT)
        lowest = 1 if self.kind is QualityKind.AT_LEAST else 0
        return (
            (is_counted != is_named if partial else not (is_counted or is_named))
            and (self.count is None or self.count >= lowest)
            and (self.within_ms is not None) == (self.kind is QualityKind.DELTA)
            and (is_agreed or not self.acknowledged)
        )

    def __str__(self) -> str:
        match self:
            case Quality(count=int(count)):
                return f"{self.kind}:{count}"
            case Quality(names=names) if names:
                return f"{self.kind}:{','.join(names)}"
            case Quality(within_ms=float(within)):
                return f"{self.kind}:{within:g}ms"
            case Quality(kind=QualityKind.ATOMIC, acknowledged=True):
                return f"{self.kind}:acknowledged"
        return str(self.kind)


def best_effort(count: int) -> Quality:
    """At least `count` recipients get the message unless the sender fails; with 0, no answer is awaited."""
    return Quality(QualityKind.BEST_EFFORT, count=_checked(count, 0))


def best_effort_to(*names: str) -> Quality:
    """The recipients with these names get the message unless the sender fails."""
    return Quality(QualityKind.BEST_EFFORT, names=_named(names))


def at_least(count: int) -> Quality:
    """At least `count` recipients get the message if any does, even if the sender fails.

    The sender itself does not count, unless there are not so many others.
    """
    return Quality(QualityKind.AT_LEAST, count=_checked(count, 1))


def at_least_to(*names: str) -> Quality:
    """The recipients with these names get the message if any does, even if the sender fails."""
    return Quality(QualityKind.AT_LEAST, names=_named(names))


def atomic(*, acknowledged: bool = False) -> Quality:
    """All recipients deliver the message or none does, in the same order everywhere."""
    return Quality(QualityKind.ATOMIC, acknowledged=acknowledged)


def delta(within_ms: float) -> Quality:
    """All recipients deliver the message `within_ms` after it was sent, ordered by the time of sending."""
    if isinstance(within_ms, bool) or not isinstance(within_ms, int | float) or not 0 < within_ms <= 60_000:
        raise InvalidOption(f"within_ms is {within_ms!r}: it must be above 0 and at most 60000")
    return Quality(QualityKind.DELTA, within_ms=float(within_ms))


def parse_quality(text: str) -> Quality:
    """The quality in a text such as `reliable`, `at-least:3`, `best-effort:a,b` or `delta:20ms`."""
    kind, _, detail = text.partition(":")
    counted = detail.isdecimal()
    match kind:
        case "reliable" | "causal" | "tight" if not detail:
            return {"reliable": RELIABLE, "causal": CAUSAL, "tight": TIGHT}[kind]
        case "atomic" if detail in ("", "acknowledged"):
            return atomic(acknowledged=bool(detail))
        case "unreliable" if not detail:
            return UNRELIABLE
        case "best-effort" if detail:
            return best_effort(int(detail)) if counted else best_effort_to(*detail.split(","))
        case "at-least" if detail:
            return at_least(int(detail)) if counted else at_least_to(*detail.split(","))
        case "delta" if detail:
            return _parsed_delta(detail)
    raise InvalidOption(
        f"{text!r} is not a quality: use best-effort:N, best-effort:NAME,…, at-least:N, at-least:NAME,…, "
        "reliable, causal, atomic, tight, delta:MILLISECONDS or unreliable"
    )


def _parsed_delta(detail: str) -> Quality:
    try:
        return delta(float(detail.removesuffix("ms")))
    except ValueError:
        raise InvalidOption(f"{detail!r} is not a number of milliseconds") from None


def _checked(count: int, lowest: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not lowest <= count <= _COUNT_MAX:
        raise InvalidOption(
            f"the number of recipients is {count!r}: it must be an integer from {lowest} to {_COUNT_MAX}"
        )
    return count


def _named(names: tuple[str, ...]) -> tuple[str, ...]:
    if not 0 < len(names) <= _COUNT_MAX:
        raise InvalidOption(f"{len(names)} recipients are named: name 1 to {_COUNT_MAX}")
    return tuple(dict.fromkeys(check_name(name, "member") for name in names))


UNRELIABLE = best_effort(0)
RELIABLE = Quality(QualityKind.RELIABLE)
CAUSAL = Quality(QualityKind.CAUSAL)
ATOMIC = Quality(QualityKind.ATOMIC)
TIGHT = Quality(QualityKind.TIGHT, acknowledged=True)
