"""Generates a scenario of the qualities of service from a seed: a LAN, a load, and faults that it tolerates.

The faults are those that the qualities are made for: omissions up to the omission degree, crashes that leave
a majority, and times at which the medium is inaccessible. A run in which something else is broken names it.
"""

import msgspec

from priocast.membership.options import MembershipOptions
from priocast.simulation.faults import Crash, FaultOptions, Inaccessibility, NetworkFault, NetworkFaultKind
from priocast.simulation.scenario import LanOptions, Scenario, ServiceLoad, WorkloadOptions
from priocast.simulation.seeded_random import SeededRandom
from priocast.simulation.service_workload import planned_sends

EVERY_QUALITY = (
    "unreliable",
    "best-effort:2",
    "best-effort:b,c",
    "at-least:2",
    "at-least:b,c",
    "reliable",
    "causal",
    "atomic",
    "atomic:acknowledged",
    "tight",
    "delta:150",
)
"""One of each kind, as the menu has them."""

_SIZE = 4
_MESSAGES = 4
_FROM_US = 400_000
_FOR_US = 200_000
_HEALED_AFTER_US = 400_000
_RESPONSE_US = 10_000
#: Longer than all rounds of a transmission together: without inaccessibility control, members would fail.
INACCESSIBLE_US = 60_000
_ACCESSIBLE_US = 30_000
_LAN = LanOptions(omission_degree=2, delay_us=5_000, inaccessibility_us=INACCESSIBLE_US)
_HEARTBEAT_MS = 20
_FAILURE_MS = 150


class ServiceFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Which faults a generated run has.

    There are `crashes_min` to `crashes`. With `no_room`, one member is slow and rejects messages.
    `inaccessible_us` is how long the medium is inaccessible at most, 0 if never. `broken` is a property of
    the LAN that does not hold.
    """

    omissions: bool = True
    crashes: int = 2
    crashes_min: int = 0
    inaccessible_us: int = INACCESSIBLE_US
    no_room: bool = False
    broken: NetworkFaultKind | None = None


TOLERATED = ServiceFaults()


def generate_service_scenario(
    seed: int, qualities: tuple[str, ...], faults: ServiceFaults = TOLERATED
) -> Scenario:
    """A run in which every member sends a few messages with these qualities."""
    random = SeededRandom(f"qualities {seed}")
    load = ServiceLoad(
        messages=_MESSAGES * (3 if len(qualities) > 1 else 1),
        qualities=qualities,
        from_us=_FROM_US,
        for_us=_FOR_US,
        addressed_percent=random.choice((0, 50, 100)),
        response_us=_RESPONSE_US,
        held_max=2 if faults.no_room else 4096,
    )
    consume_us = [0] * _SIZE
    if faults.no_room:
        consume_us[random.randrange(_SIZE)] = 20_000
    scenario = Scenario(
        seed=seed,
        workload=WorkloadOptions(
            messages=(3,) * _SIZE,
            rate_per_second=(10,) * _SIZE,
            consume_us=tuple(consume_us),
            start_us=(0,) * _SIZE,
        ),
        membership=MembershipOptions(founders=_SIZE, heartbeat_ms=_HEARTBEAT_MS, failure_ms=_FAILURE_MS),
        lan=_LAN,
        services=load,
    )
    return msgspec.structs.replace(
        scenario,
        faults=FaultOptions(
            omission_percent=40 if faults.omissions else 0,
            crashes=_crashes(random, scenario, random.randint(faults.crashes_min, faults.crashes)),
            inaccessible=_inaccessibility(random, faults.inaccessible_us),
            network=_broken(faults.broken),
            healed_at_us=_FROM_US + _FOR_US + _HEALED_AFTER_US,
        ),
    )


def _crashes(random: SeededRandom, scenario: Scenario, count: int) -> tuple[Crash, ...]:
    """Shortly after a message was sent: while it is transmitted, or while others decide about it."""
    crashes = []
    for member in random.sample(scenario.members, count):
        sender = random.choice(scenario.members)
        sent = random.choice(planned_sends(scenario, sender))
        at_us = sent.time // 1_000 + random.log_uniform(100, 40_000)
        crashes.append(Crash(member=member if random.chance(50) else sender, at_us=at_us))
    return tuple(crashes)


def _inaccessibility(random: SeededRandom, longest_us: int) -> tuple[Inaccessibility, ...]:
    if not longest_us:
        return ()
    step_us = longest_us + 2 * _ACCESSIBLE_US
    return tuple(
        Inaccessibility(
            from_us=_FROM_US + index * step_us + random.randrange(_ACCESSIBLE_US),
            for_us=random.randint(longest_us // 4, longest_us),
        )
        for index in range(random.randint(0, max(1, _FOR_US // step_us)))
    )


def _broken(kind: NetworkFaultKind | None) -> tuple[NetworkFault, ...]:
    if kind is None:
        return ()
    return (NetworkFault(kind=kind, percent=30, from_us=_FROM_US, for_us=_FOR_US),)
