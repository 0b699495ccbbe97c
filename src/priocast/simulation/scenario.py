"""A scenario: every option of one simulated run, each with its unit in its name.

`draw` rolls all of them from one seed; `describe()` prints them. Written by hand, a scenario has no faults
and costs no time but what it says.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import ROUTINE
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.links.fifo_link import LinkOptions

MICROSECOND = 1_000
MILLISECOND = 1_000_000
LOSS_PERCENT_MAX = 30

Scalar = int | float | str | bool | None


class WorkloadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the applications do; the tuples have one entry a member.

    A member broadcasts `burst` messages at once, at times that are on average `burst / rate_per_second`
    apart. `priorities` are pairs of a priority and its weight in the mix. Consuming a message takes
    `consume_us`.
    """

    messages: tuple[int, ...]
    rate_per_second: tuple[int, ...]
    consume_us: tuple[int, ...]
    burst: int = 1
    priorities: tuple[tuple[int, int], ...] = ((ROUTINE, 1),)
    payload_bytes_min: int = 8
    payload_bytes_max: int = 64


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long a frame is on its way.

    That is `latency_us`, and on top of it a part of the given shape with the mean `latency_spread_us`. Before
    that, a sender's interface writes one frame after the other.
    """

    latency_us: int = 100
    latency_spread_us: int = 0
    latency_shape: Literal["constant", "uniform", "exponential"] = "constant"
    bandwidth_bytes_per_second: int | None = None


class ProcessorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """For how long a turn keeps a process busy, by what it took in and gave out."""

    frame_us: int = 0
    byte_ns: int = 0
    message_ns: int = 0


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not work for a while."""

    from_us: int
    for_us: int

    @property
    def until_us(self) -> int:
        """When it works again."""
        return self.from_us + self.for_us

    def covers(self, time_ns: int) -> bool:
        """Whether it is out of order at this time."""
        return self.from_us * MICROSECOND <= time_ns < self.until_us * MICROSECOND


class Pause(Outage, frozen=True, kw_only=True):
    """A process stands still: it reads no frame, fires no timer and consumes nothing."""

    member: str

    def __str__(self) -> str:
        return f"{self.member}@{self.from_us}+{self.for_us}us"


class Cut(Outage, frozen=True, kw_only=True):
    """Frames in one direction are lost, those in the other are not."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}>{self.target}@{self.from_us}+{self.for_us}us"


class FaultOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong until `healed_at_us`; nothing does from then on.

    A reordered frame takes up to `reordering_us` longer, and later frames may overtake it.
    """

    loss_percent: int = 0
    duplication_percent: int = 0
    reordering_percent: int = 0
    reordering_us: int = 0
    pauses: tuple[Pause, ...] = ()
    cuts: tuple[Cut, ...] = ()
    healed_at_us: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.loss_percent <= LOSS_PERCENT_MAX:
            raise InvalidOption(f"loss_percent is {self.loss_percent}: it must be 0 to {LOSS_PERCENT_MAX}")
        for outage in self.outages:
            if outage.until_us > self.healed_at_us:
                raise InvalidOption(f"{outage} lasts longer than healed_at_us, which is {self.healed_at_us}")

    @property
    def outages(self) -> list[Outage]:
        """All that does not work for a while."""
        return [*self.pauses, *self.cuts]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One run, entirely."""

    seed: int
    workload: WorkloadOptions
    order: str = "sequencer-ub"
    ordering: OrderingOptions = OrderingOptions()
    link: LinkOptions = LinkOptions()
    network: NetworkOptions = NetworkOptions()
    processor: ProcessorOptions = ProcessorOptions()
    faults: FaultOptions = FaultOptions()

    def __post_init__(self) -> None:
        workload = self.workload
        if not len(workload.messages) == len(workload.rate_per_second) == len(workload.consume_us) > 0:
            raise InvalidOption("messages, rate_per_second and consume_us need one entry for every member")

    @property
    def members(self) -> tuple[str, ...]:
        """The members by name, which are the first letters of the alphabet."""
        return tuple(chr(ord("a") + index) for index in range(len(self.workload.messages)))

    def flat(self) -> dict[str, Scalar]:
        """Every option by its full name."""
        return dict(_flat("", self))

    def describe(self) -> str:
        """Every option on a line of its own."""
        options = self.flat()
        width = max(map(len, options))
        members = f"{'members':{width}}  {' '.join(self.members)}"
        return "\n".join([members, *(f"{name:{width}}  {value}" for name, value in options.items())])


def _flat(prefix: str, options: msgspec.Struct) -> Iterator[tuple[str, Scalar]]:
    for name in options.__struct_fields__:
        value = getattr(options, name)
        if isinstance(value, Starvation):
            yield f"{prefix}{name}", str(value)
        elif isinstance(value, msgspec.Struct):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, tuple):
            parts = (":".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value)
            yield f"{prefix}{name}", " ".join(parts) or "none"
        else:
            yield f"{prefix}{name}", value
