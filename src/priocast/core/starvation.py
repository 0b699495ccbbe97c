"""How far a more urgent message may overtake a waiting one.

Each policy gives a waiting message a *rank* when it enters the queue; the lowest rank leaves first, and
equal ranks leave first in, first out. No policy has to touch what is already queued: a message that ages
by one level per step keeps its distance to everything else that ages alike, so

    priority + waited / step   orders like   priority - entered / step

and a periodic flush, which lets out all that is queued before anything that comes later, is the number of
the period in front of the priority. Both are from the techniques paper (sections 4 and 6.1), where they
walk or block the list.

What each bounds: let m enter the queue at time t.
- `Strict`: nothing. A steady stream of urgent messages starves the rest.
- `Ageing(step)`: only messages that are k levels more urgent and entered before t + k x step overtake m,
  hence nothing that entered after t + 255 x step.
- `PeriodicRelease(period)`: nothing that entered in a later period than m overtakes it.
- `FirstInFirstOut`: no message overtakes m. This is the plain twin of every protocol.

What a layer says through the order below it is not a message. That order is plain, and there it goes first.
"""

import re

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import HIGHEST

_LEVELS = 256
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+)(ns|us|ms|s)")


class Strict(msgspec.Struct, frozen=True, tag="none"):
    """The most urgent first, always."""

    def sort_key(self, priority: int, now: int) -> int:
        return -priority

    def __str__(self) -> str:
        return "none"


class Ageing(msgspec.Struct, frozen=True, tag="ageing"):
    """A waiting message becomes more urgent by one level per step."""

    step_ns: int

    def __post_init__(self) -> None:
        _check_duration("step_ns", self.step_ns)

    def sort_key(self, priority: int, now: int) -> int:
        return now - priority * self.step_ns

    def __str__(self) -> str:
        return f"ageing:{_format_duration(self.step_ns)}"


class PeriodicRelease(msgspec.Struct, frozen=True, tag="flush"):
    """At the end of every period all that is queued goes before anything that comes later."""

    period_ns: int

    def __post_init__(self) -> None:
        _check_duration("period_ns", self.period_ns)

    def sort_key(self, priority: int, now: int) -> int:
        return now // self.period_ns * _LEVELS - priority

    def __str__(self) -> str:
        return f"flush:{_format_duration(self.period_ns)}"


class FirstInFirstOut(msgspec.Struct, frozen=True, tag="fifo"):
    """No priorities at all."""

    def sort_key(self, priority: int, now: int) -> int:
        return -1 if priority > HIGHEST else 0

    def __str__(self) -> str:
        return "fifo"


Starvation = Strict | Ageing | PeriodicRelease | FirstInFirstOut


def parse_starvation(text: str) -> Starvation:
    """Read a policy that a person typed: `none`, `ageing:20ms` or `flush:500ms`."""
    name, _, duration = text.partition(":")
    match = _DURATION.fullmatch(duration)
    nanoseconds = int(match[1]) * _NANOSECONDS[match[2]] if match else 0
    if name == "none" and not duration:
        return Strict()
    if name == "ageing" and nanoseconds:
        return Ageing(nanoseconds)
    if name == "flush" and nanoseconds:
        return PeriodicRelease(nanoseconds)
    raise InvalidOption(
        f"{text!r} is not a starvation policy: use 'none', 'ageing:20ms' (one level up per 20 ms of "
        "waiting) or 'flush:500ms' (what is queued goes first every 500 ms)"
    )


def _check_duration(name: str, nanoseconds: int) -> None:
    if nanoseconds <= 0:
        raise InvalidOption(f"{name} is {nanoseconds}: it must be above 0")


def _format_duration(nanoseconds: int) -> str:
    unit = next(unit for unit in ("s", "ms", "us", "ns") if nanoseconds % _NANOSECONDS[unit] == 0)
    return f"{nanoseconds // _NANOSECONDS[unit]}{unit}"
