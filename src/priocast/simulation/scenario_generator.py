"""Generates a scenario from a seed: every option of a run, so that a seed and a commit reproduce it.

The ranges are wide enough that every bound is reached in some runs. Every fault heals, so liveness can be
checked in all runs.

Options of protocols come from random generators of their own. So adding or choosing a protocol changes the
order of a seed's run and nothing else. The same holds for the options that only re-ordering uses. Only in
runs of the adaptive order do rates change: the load of all others stays as it was.
"""

import msgspec

from priocast.core.priority import NAMED_LEVELS
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.links.frame import LinkOptions
from priocast.membership.options import MembershipOptions
from priocast.protocols import find_protocol, takes_policy
from priocast.simulation.choice import ALL_GENERATED, Choice, Delivery, Policy
from priocast.simulation.fault_generator import generate_faults, generate_new_orders, generate_order
from priocast.simulation.faults import MICROSECOND, FaultOptions
from priocast.simulation.load_phases import phases_by_turns
from priocast.simulation.scenario import NetworkOptions, ProcessorOptions, Scenario, WorkloadOptions
from priocast.simulation.seeded_random import SeededRandom
from priocast.simulation.service_generator import generate_service_scenario

_SECOND_US = 1_000_000
#: Rare, because answers to all members take many frames: seed 106, seven members, took 2.7 times as long.
_DISTRIBUTED_PERCENT = 12
_BOUNDED_PERCENT = 25
_STEADY_PERCENT = 30
#: How often a rate changes; the last one stays.
_PHASES = 8
ADAPTIVE = "adaptive"


def generate_scenario(seed: int, choice: Choice = ALL_GENERATED) -> Scenario:
    """Generate every option that is not fixed by `choice`."""
    if choice.qualities:
        scenario = generate_service_scenario(seed, choice.qualities)
        return msgspec.structs.replace(scenario, order=choice.order or scenario.order)
    random = SeededRandom(seed)
    drawn_size = random.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7))
    size = choice.members or drawn_size
    membership = _generate_membership(random, size, choice)
    start_us = _generate_starts(random, size, membership.founders)
    failure_us = int(membership.failure_ms * 1_000)
    names = tuple(chr(ord("a") + index) for index in range(size))
    protocol_random = SeededRandom(f"classes {seed}")
    ordering = _generate_protocol_options(protocol_random, _generate_ordering(random))
    ordering = _generate_reordering(SeededRandom(f"re-ordering {seed}"), ordering)
    ordering = _generate_silence(SeededRandom(f"silence {seed}"), ordering)
    faults = generate_faults(random, names, membership, max(start_us), choice.fault)
    membership = _founded_once(membership, size, faults)
    generated_order = generate_order(protocol_random, membership)
    order = choice.order or generated_order
    if not takes_policy(find_protocol(order), ordering.starvation):
        ordering = msgspec.structs.replace(ordering, starvation=Strict())
    workload = _generate_workload(random, start_us, faults, membership)
    if choice.load is not None:
        workload = _with_load(workload, choice.load)
    if order == ADAPTIVE:
        adaptation_random = SeededRandom(f"adaptation {seed}")
        ordering = _generate_adaptation(adaptation_random, ordering)
        workload = _generate_phases(adaptation_random, workload, faults)
    return Scenario(
        seed=seed,
        workload=workload,
        membership=membership,
        order=order,
        ordering=ordering,
        link=_generate_link(random),
        network=_generate_network(random, failure_us),
        processor=_generate_processor(random),
        faults=generate_new_orders(protocol_random, faults, order, membership),
    )


def _generate_protocol_options(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """Options that only some protocols use."""
    return msgspec.structs.replace(
        ordering,
        burst=random.choice((None, 1, random.log_uniform(1, 100))),
        bucket=random.choice((1, 16, random.log_uniform(1, 100))),
        part_ms=random.log_uniform(100, 50_000) / 1_000,
        part_count=random.log_uniform(1, 100),
    )


def _generate_reordering(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """Options that only the re-ordering protocols use; in most runs they are the defaults."""
    return msgspec.structs.replace(
        ordering,
        distributed=random.chance(_DISTRIBUTED_PERCENT),
        overtakes_max=random.log_uniform(1, 20) if random.chance(_BOUNDED_PERCENT) else None,
    )


def _generate_silence(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """How long a silent member of `all-ack` lets the others wait: up to a heartbeat."""
    return msgspec.structs.replace(ordering, acknowledge_ms=random.log_uniform(100, 20_000) / 1_000)


def _generate_adaptation(random: SeededRandom, ordering: OrderingOptions) -> OrderingOptions:
    """The adaptation policy: one that adapts quickly in most runs, because runs are short."""
    window = random.choice((1, 1, 2, 4, 8))
    adaptation = random.choice(
        (
            f"sliding-window:{window}",
            f"sliding-window:{window}",
            f"priority-window:{window}",
            f"steady-keeper:{window}",
            f"decay:{random.log_uniform(1, 200)}",
            f"schedule:{random.randint(20, 200)}ms;0ms a=9 b=1;{random.randint(1, 19)}ms b=5 c=5",
            "equal",
        )
    )
    return msgspec.structs.replace(ordering, adaptation=adaptation)


def _generate_phases(
    random: SeededRandom, workload: WorkloadOptions, faults: FaultOptions
) -> WorkloadOptions:
    """Rates that change a few times while the load lasts: what the adaptive order adapts to."""
    if random.chance(_STEADY_PERCENT):
        return workload
    phase_us = max(100_000, faults.healed_at_us) // random.randint(2, 6)
    percents = random.sample((400, 200, 100, 50, 20), random.randint(2, 4))
    phases = phases_by_turns(workload.rate_per_second, percents, phase_us, _PHASES)
    return msgspec.structs.replace(workload, phases=phases)


def _generate_starts(random: SeededRandom, size: int, founders: int) -> tuple[int, ...]:
    """Processes that do not found the group start later."""
    late = [random.log_uniform(1_000, 500_000) for _ in range(size - founders)]
    return (0,) * founders + tuple(late)


def _founded_once(membership: MembershipOptions, size: int, faults: FaultOptions) -> MembershipOptions:
    """Make all processes founders of a primary group if the others could found it a second time.

    The others are those that start late or restart and know nothing of the group. That they could found it
    again is a documented limit: see `docs/guarantees.md`. Their start times stay the same.
    """
    restarts = sum(end.back_after_us is not None for end in faults.ends)
    unaware = size - membership.founders + restarts
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
    """The load lasts about as long as the faults."""
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


def _with_load(workload: WorkloadOptions, percent: int) -> WorkloadOptions:
    """This percent of the messages, at this percent of the rates: the load lasts as long as before."""
    return msgspec.structs.replace(
        workload,
        messages=tuple(-(-count * percent // 100) for count in workload.messages),
        rate_per_second=tuple(max(1, rate * percent // 100) for rate in workload.rate_per_second),
    )


def _generate_ordering(random: SeededRandom) -> OrderingOptions:
    """The bounds are the defaults in most runs, and small enough to be reached in the others."""
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
    """The mean latency is much shorter than the failure timeout."""
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
