"""A scenario: every option of one simulated run, each with its unit in its name.

`draw(seed)` rolls all of them from one seed, so a seed and a commit replay a run; `describe()` prints them.
Written by hand, a scenario has no faults and costs no time but what it says.
"""

from collections.abc import Iterator
from random import Random
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import NAMED_LEVELS, ROUTINE
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicFlush, Starvation, Strict
from priocast.links.fifo_link import LinkOptions
from priocast.protocols import PROTOCOLS
from priocast.simulation.dice import log_uniform

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND_US = 1_000_000
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


def draw(seed: int, order: str | None = None) -> Scenario:
    """Roll every option; `order` puts the very same run under another protocol."""
    dice = Random(seed)
    members = dice.choice((1, 2, 3, 3, 4, 4, 5, 5))
    workload = _draw_workload(dice, members)
    scenario = Scenario(
        seed=seed,
        workload=workload,
        ordering=_draw_ordering(dice),
        link=_draw_link(dice),
        network=_draw_network(dice),
        processor=_draw_processor(dice),
    )
    drawn_order = dice.choice(sorted(PROTOCOLS))
    busy_us = max(
        count * SECOND_US // rate
        for count, rate in zip(workload.messages, workload.rate_per_second, strict=True)
    )
    faults = _draw_faults(dice, scenario.members, max(20_000, min(busy_us, 2 * SECOND_US)))
    return msgspec.structs.replace(scenario, order=order or drawn_order, faults=faults)


def _chance(dice: Random, percent: int) -> bool:
    return dice.randrange(100) < percent


def _draw_workload(dice: Random, members: int) -> WorkloadOptions:
    levels = dice.sample(range(256), dice.randint(1, 4)) + dice.sample(
        list(NAMED_LEVELS.values()), dice.randint(0, 3)
    )
    count_max = log_uniform(dice, 10, 300)
    rate = log_uniform(dice, 50, 20_000)
    slow_us = log_uniform(dice, 10, 4_000)
    payload_bytes_max = log_uniform(dice, 16, 100_000 if _chance(dice, 5) else 1_000)
    return WorkloadOptions(
        messages=tuple(0 if _chance(dice, 10) else dice.randint(1, count_max) for _ in range(members)),
        rate_per_second=tuple(log_uniform(dice, max(10, rate // 8), rate) for _ in range(members)),
        consume_us=tuple(slow_us if _chance(dice, 25) else dice.randint(0, 200) for _ in range(members)),
        burst=1 if _chance(dice, 50) else log_uniform(dice, 2, 60),
        priorities=tuple((level, dice.randint(1, 10)) for level in dict.fromkeys(levels)),
        payload_bytes_min=dice.randint(0, min(64, payload_bytes_max)),
        payload_bytes_max=payload_bytes_max,
    )


def _draw_ordering(dice: Random) -> OrderingOptions:
    """The bounds are the defaults in most runs, and small enough to be met in the others."""
    step = log_uniform(dice, 50, 50_000) * MICROSECOND
    starvation: Starvation = dice.choice((Strict(), Strict(), Ageing(step), PeriodicFlush(step)))
    default = OrderingOptions()
    return OrderingOptions(
        prioritised=_chance(dice, 85),
        starvation=starvation,
        window=dice.choice((None, None, dice.randint(1, 4), log_uniform(dice, 5, 1_000))),
        window_ms=log_uniform(dice, 200, 50_000) / 1_000,
        window_bytes=log_uniform(dice, 500, 100_000) if _chance(dice, 15) else default.window_bytes,
        queue_max=log_uniform(dice, 2, 100) if _chance(dice, 40) else default.queue_max,
        queue_bytes_max=log_uniform(dice, 200, 20_000) if _chance(dice, 15) else default.queue_bytes_max,
        submit_max=log_uniform(dice, 1, 100) if _chance(dice, 40) else default.submit_max,
        submit_bytes_max=log_uniform(dice, 200, 20_000) if _chance(dice, 15) else default.submit_bytes_max,
    )


def _draw_link(dice: Random) -> LinkOptions:
    default = LinkOptions()
    return LinkOptions(
        window_bytes=log_uniform(dice, 500, 50_000) if _chance(dice, 20) else default.window_bytes,
        acknowledge_after_ns=log_uniform(dice, 100, 20_000) * MICROSECOND,
        acknowledge_after_frames=dice.choice((1, 2, 8, 8, 8, 32)),
    )


def _draw_network(dice: Random) -> NetworkOptions:
    latency_us = log_uniform(dice, 20, 20_000 if _chance(dice, 20) else 1_000)
    return NetworkOptions(
        latency_us=latency_us,
        latency_spread_us=latency_us * dice.randint(1, 40) // 10,
        latency_shape=dice.choice(("constant", "uniform", "exponential")),
        bandwidth_bytes_per_second=log_uniform(dice, 500_000, 100_000_000) if _chance(dice, 50) else None,
    )


def _draw_processor(dice: Random) -> ProcessorOptions:
    if _chance(dice, 20):
        return ProcessorOptions()
    return ProcessorOptions(
        frame_us=log_uniform(dice, 1, 500 if _chance(dice, 20) else 50),
        byte_ns=dice.randint(0, 5),
        message_ns=dice.randint(0, 2_000),
    )


def _draw_faults(dice: Random, members: tuple[str, ...], busy_us: int) -> FaultOptions:
    pauses = tuple(
        Pause(
            member=dice.choice(members),
            from_us=dice.randrange(busy_us),
            for_us=log_uniform(dice, 1_000, 400_000),
        )
        for _ in range(dice.choice((0, 0, 1, 2)))
    )
    directions = [(source, target) for source in members for target in members if source != target]
    drawn = dice.choices(directions, k=dice.choice((0, 0, 1, 3))) if directions else []
    cuts = tuple(
        Cut(
            source=source,
            target=target,
            from_us=dice.randrange(busy_us),
            for_us=log_uniform(dice, 1_000, 800_000),
        )
        for source, target in drawn
    )
    healed_at_us = busy_us * dice.randint(5, 15) // 10
    for outage in (*pauses, *cuts):
        healed_at_us = max(healed_at_us, outage.until_us)
    return FaultOptions(
        loss_percent=log_uniform(dice, 1, LOSS_PERCENT_MAX) if _chance(dice, 60) else 0,
        duplication_percent=log_uniform(dice, 1, 30) if _chance(dice, 40) else 0,
        reordering_percent=log_uniform(dice, 1, 50) if _chance(dice, 40) else 0,
        reordering_us=log_uniform(dice, 50, 20_000),
        pauses=pauses,
        cuts=cuts,
        healed_at_us=healed_at_us,
    )
