"""The draw: one seed rolls every option of a run, so a seed and a commit replay it.

The ranges are wide enough that every bound is met in some runs, and every fault heals, so that liveness can
be checked in all of them.
"""

from random import Random

import msgspec

from priocast.core.priority import NAMED_LEVELS
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicFlush, Starvation, Strict
from priocast.links.fifo_link import LinkOptions
from priocast.protocols import PROTOCOLS
from priocast.simulation.dice import log_uniform
from priocast.simulation.scenario import (
    LOSS_PERCENT_MAX,
    MICROSECOND,
    Cut,
    FaultOptions,
    NetworkOptions,
    Pause,
    ProcessorOptions,
    Scenario,
    WorkloadOptions,
)

_SECOND_US = 1_000_000


def draw(seed: int, order: str | None = None) -> Scenario:
    """Roll every option; `order` puts the very same run under another protocol."""
    dice = Random(seed)
    members = dice.choice((1, 2, 3, 3, 4, 4, 5, 5))
    workload = _draw_workload(dice, members)
    network = _draw_network(dice)
    scenario = Scenario(
        seed=seed,
        workload=workload,
        ordering=_draw_ordering(dice),
        link=_draw_link(dice),
        network=network,
        processor=_draw_processor(dice),
    )
    drawn_order = dice.choice(sorted(PROTOCOLS))
    busy_us = max(
        count * _SECOND_US // rate
        for count, rate in zip(workload.messages, workload.rate_per_second, strict=True)
    )
    faults = _draw_faults(dice, scenario.members, max(20_000, min(busy_us, 2 * _SECOND_US)))
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
    window_bytes = log_uniform(dice, 500, 50_000) if _chance(dice, 20) else default.window_bytes
    return LinkOptions(
        window_bytes=window_bytes,
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
