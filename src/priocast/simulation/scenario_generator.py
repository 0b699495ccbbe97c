"""The draw: one seed rolls every option of a run, so a seed and a commit replay it.

The ranges are wide enough that every bound is met in some runs, and every fault heals, so that liveness can
be checked in all of them.

What has to do with the classes of orders is rolled with random of its own: a seed stays the same run, but for
its order, when there is a new class, and when a class is chosen. So is what only re-ordering looks at.
"""

from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import NAMED_LEVELS
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.links.fifo_link import LinkOptions
from priocast.membership.options import MembershipOptions
from priocast.protocols import find_protocol
from priocast.simulation.fault_generator import generate_faults, generate_new_orders, generate_order
from priocast.simulation.faults import MICROSECOND, FaultOptions
from priocast.simulation.scenario import NetworkOptions, ProcessorOptions, Scenario, WorkloadOptions
from priocast.simulation.seeded_random import SeededRandom

_SECOND_US = 1_000_000
#: Rare, for answers to all are many frames: a run of seven members (seed 106) took 2.7 times as long.
_DISTRIBUTED_PERCENT = 12
_BOUNDED_PERCENT = 25

Policy = Literal["primary", "partitionable"]
Delivery = Literal["agreed", "safe"]


class Choice(msgspec.Struct, frozen=True):
    """What is not left to the random; the rest of a run stays as it was.

    An order that is not for partitionable groups makes every group a primary one.
    """

    order: str | None = None
    policy: Policy | None = None
    delivery: Delivery | None = None

    def __post_init__(self) -> None:
        if self.order is None or find_protocol(self.order).PARTITIONABLE:
            return
        if self.policy == "partitionable":
            raise InvalidOption(
                f"{self.order} is not for groups that are partitionable: leave out one of both"
            )
        msgspec.structs.force_setattr(self, "policy", "primary")


ALL_GENERATED = Choice()


def generate_scenario(seed: int, choice: Choice = ALL_GENERATED) -> Scenario:
    """Roll every option but those that were chosen."""
    random = SeededRandom(seed)
    size = random.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7))
    membership = _generate_membership(random, size, choice)
    start_us = _generate_starts(random, size, membership.founders)
    failure_us = int(membership.failure_ms * 1_000)
    names = tuple(chr(ord("a") + index) for index in range(size))
    classes = SeededRandom(f"classes {seed}")
    ordering = _generate_class_options(classes, _generate_ordering(random))
    ordering = _generate_reordering(SeededRandom(f"re-ordering {seed}"), ordering)
    faults = generate_faults(random, names, membership, max(start_us))
    membership = _founded_once(membership, size, faults)
    drawn_order = generate_order(classes, membership)
    order = choice.order or drawn_order
    return Scenario(
        seed=seed,
        workload=_generate_workload(random, start_us, faults, membership),
        membership=membership,
        order=order,
        ordering=ordering,
        link=_generate_link(random),
        network=_generate_network(random, failure_us),
        processor=_generate_processor(random),
        faults=generate_new_orders(classes, faults, order, membership),
    )


def _generate_class_options(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """What only some classes look at."""
    return msgspec.structs.replace(
        ordering,
        burst=random.choice((None, 1, random.log_uniform(1, 100))),
        bucket=random.choice((1, 16, random.log_uniform(1, 100))),
        part_ms=random.log_uniform(100, 50_000) / 1_000,
        part_count=random.log_uniform(1, 100),
    )


def _generate_reordering(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """What only the classes that re-order queues look at; in most runs it is the default."""
    return msgspec.structs.replace(
        ordering,
        distributed=random.chance(_DISTRIBUTED_PERCENT),
        overtakes_max=random.log_uniform(1, 20) if random.chance(_BOUNDED_PERCENT) else None,
    )


def _generate_starts(random: SeededRandom, size: int, founders: int) -> tuple[int, ...]:
    """Who does not found the group comes late."""
    late = [random.log_uniform(1_000, 500_000) for _ in range(size - founders)]
    return (0,) * founders + tuple(late)


def _founded_once(membership: MembershipOptions, size: int, faults: FaultOptions) -> MembershipOptions:
    """Let all found a primary group that others could found again: those who come late or have forgotten it.

    What they can do is not promised against: see `docs/guarantees.md`. They come when they come all the same.
    """
    comings_back = sum(end.back_after_us is not None for end in faults.ends)
    unaware = size - membership.founders + comings_back
    if membership.primary and unaware >= membership.founders:
        return msgspec.structs.replace(membership, founders=size)
    return membership


def _generate_membership(random: SeededRandom, size: int, choice: Choice) -> MembershipOptions:
    policy: Policy = "partitionable" if random.chance(35) else "primary"
    delivery: Delivery = "safe" if random.chance(25) else "agreed"
    policy, delivery = choice.policy or policy, choice.delivery or delivery
    heartbeat_ms = random.randint(20, 50)
    failure_ms = max(3 * heartbeat_ms, random.log_uniform(100, 400))
    state_percent = random.randrange(100)
    founders_min = size // 2 + 1 if policy == "primary" else 1
    founders = size if random.chance(75) else random.randint(founders_min, size)
    return MembershipOptions(
        founders=founders,
        policy=policy,
        delivery=delivery,
        heartbeat_ms=heartbeat_ms,
        failure_ms=failure_ms,
        slow_ms=failure_ms * random.choice((1, 1, 2, 3)),
        state=state_percent < (60 if policy == "primary" else 20),
    )


def _generate_workload(
    random: SeededRandom, start_us: tuple[int, ...], faults: FaultOptions, membership: MembershipOptions
) -> WorkloadOptions:
    """The load lasts about as long as the faults do."""
    size = len(start_us)
    levels = random.sample(range(256), random.randint(1, 4)) + random.sample(
        list(NAMED_LEVELS.values()), random.randint(0, 3)
    )
    count_max = random.log_uniform(10, 120)
    busy_us = max(100_000, faults.healed_at_us) * random.randint(5, 12) // 10
    slow_us = random.log_uniform(10, 4_000)
    payload_bytes_max = random.log_uniform(16, 20_000 if random.chance(5) else 1_000)
    burst = 1 if random.chance(50) else random.log_uniform(2, 40)
    messages = tuple(0 if random.chance(10) else random.randint(1, count_max) for _ in range(size))
    return WorkloadOptions(
        messages=messages,
        rate_per_second=tuple(
            max(1, max(burst, count) * _SECOND_US * random.randint(10, 40) // 10 // busy_us)
            for count in messages
        ),
        consume_us=tuple(slow_us if random.chance(25) else random.randint(0, 200) for _ in range(size)),
        start_us=start_us,
        broadcast_from_us=random.choice((0, 0, 50_000)),
        burst=burst,
        priorities=tuple((level, random.randint(1, 10)) for level in dict.fromkeys(levels)),
        payload_bytes_min=random.randint(0, min(64, payload_bytes_max)),
        payload_bytes_max=payload_bytes_max,
        safe_percent=random.choice((0, 0, 0, 10, 50)),
        addressed_percent=random.choice((0, 0, 0, 10, 50)),
        state_bytes=random.log_uniform(1, 1_000_000 if random.chance(10) else 10_000),
        client_requests=random.randint(3, 20) if membership.primary and random.chance(20) else 0,
        client_patience_us=random.log_uniform(5_000, 300_000),
    )


def _generate_ordering(random: SeededRandom) -> OrderingOptions:
    """The bounds are the defaults in most runs, and small enough to be met in the others."""
    step = random.log_uniform(50, 50_000) * MICROSECOND
    starvation: Starvation = random.choice((Strict(), Strict(), Ageing(step), PeriodicRelease(step)))
    default = OrderingOptions()
    return OrderingOptions(
        prioritised=random.chance(85),
        starvation=starvation,
        window=random.choice((None, None, random.randint(1, 4), random.log_uniform(5, 1_000))),
        window_ms=random.log_uniform(200, 50_000) / 1_000,
        window_bytes=random.log_uniform(500, 100_000) if random.chance(15) else default.window_bytes,
        queue_max=random.log_uniform(2, 100) if random.chance(40) else default.queue_max,
        queue_bytes_max=random.log_uniform(200, 20_000) if random.chance(15) else default.queue_bytes_max,
        submit_max=random.log_uniform(1, 100) if random.chance(40) else default.submit_max,
        submit_bytes_max=random.log_uniform(200, 20_000) if random.chance(15) else default.submit_bytes_max,
    )


def _generate_link(random: SeededRandom) -> LinkOptions:
    default = LinkOptions()
    window_bytes = random.log_uniform(500, 50_000) if random.chance(20) else default.window_bytes
    return LinkOptions(
        window_bytes=window_bytes,
        acknowledge_after_ns=random.log_uniform(100, 20_000) * MICROSECOND,
        acknowledge_after_frames=random.choice((1, 2, 8, 8, 8, 32)),
    )


def _generate_network(random: SeededRandom, failure_us: int) -> NetworkOptions:
    """On average a frame is under way for much less than the time after which its sender is suspected."""
    latency_us = random.log_uniform(20, failure_us // 20 if random.chance(20) else 1_000)
    return NetworkOptions(
        latency_us=latency_us,
        latency_spread_us=min(latency_us * random.randint(1, 40) // 10, failure_us // 20),
        latency_shape=random.choice(("constant", "uniform", "exponential")),
        bandwidth_bytes_per_second=random.log_uniform(2_000_000, 100_000_000) if random.chance(50) else None,
    )


def _generate_processor(random: SeededRandom) -> ProcessorOptions:
    if random.chance(20):
        return ProcessorOptions()
    return ProcessorOptions(
        frame_us=random.log_uniform(1, 100 if random.chance(20) else 20),
        byte_ns=random.randint(0, 5),
        message_ns=random.randint(0, 2_000),
    )
