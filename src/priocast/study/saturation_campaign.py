"""The saturation study as one campaign: sizes, places, message sizes, a slow member, bursts.

It is a tuple of plans, because loads and numbers of messages that are sensible differ: a group between
regions or with large messages saturates at lower rates, and the simulator handles a frame once for each
member. Groups of more than 16 are measured for a few orders only: in most others every member answers every
message. All together takes about two hours on two idle processors.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from priocast.core.errors import InvalidOption
from priocast.protocols import PROTOCOLS
from priocast.study.saturation import (
    BURSTS,
    PLACES,
    PLAIN,
    PRIORITISED,
    PROCESSES,
    SLOW_MEMBER,
    SLOW_US,
    WAN,
    SaturationPlan,
)
from priocast.study.saturation_cells import PlannedCell

KIB = 1_024
#: One order of each kind, for groups whose simulation takes long.
_FEW = ("sequencer-ub", "token-ring", "agreement-skeen", "causal-history")
_BOTH = (PLAIN, PRIORITISED)
_LARGE = {"members": (64,), "messages": 512, "messages_max": 1_024}
_LARGEST = {"members": (256,), "messages": 256, "messages_max": 256}

_LAN = SaturationPlan(orders=tuple(PROTOCOLS), members=(4,), messages=1_000, messages_max=12_000)
_LAN_PLANS = (
    replace(_LAN, variants=_BOTH, messages=2_000, messages_max=50_000),
    replace(_LAN, members=(2, 8, 16), loads=(1_000, 16_000, 256_000, 1_000_000)),
    replace(_LAN, orders=_FEW, loads=(1_000, 64_000), **_LARGE),
    replace(_LAN, orders=_FEW[:2], loads=(4_000,), **_LARGEST),
    replace(_LAN, payload_bytes=(KIB,), loads=(1_000, 4_000, 16_000, 64_000, 128_000)),
    # At most 210 MB/s, and 50 MB of payloads in a run.
    replace(
        _LAN,
        payload_bytes=(16 * KIB, 64 * KIB),
        loads=(100, 400, 1_600, 3_200),
        messages=200,
        messages_max=800,
    ),
    # Around what the slow member handles: a thousand per second.
    replace(_LAN, shapes=(SLOW_MEMBER,), variants=_BOTH, loads=(250, 500, 1_000, 2_000, 4_000)),
    replace(_LAN, shapes=(BURSTS,), members=(4, 16), loads=(1_000, 16_000, 256_000, 1_000_000)),
)

_WAN = replace(_LAN, places=(WAN,), loads=(100, 1_000, 4_000), messages=500, messages_max=4_000)
_WAN_PLANS = (
    replace(_WAN, members=(2, 4, 16), loads=(100, 1_000, 4_000, 16_000), messages_max=8_000),
    replace(_WAN, loads=(64_000,), messages_max=16_000),
    replace(_WAN, orders=_FEW, loads=(200,), **_LARGE),
    replace(_WAN, orders=_FEW[:1], loads=(1_000,), **_LARGEST),
    replace(_WAN, payload_bytes=(KIB,)),
    replace(_WAN, payload_bytes=(64 * KIB,), loads=(10, 50, 200), messages=100, messages_max=400),
    replace(_WAN, shapes=(SLOW_MEMBER, BURSTS), loads=(500, 2_000), messages_max=2_000),
)

_PROCESSES = replace(
    _LAN, places=(PROCESSES,), loads=(1_000, 8_000, 64_000), messages=1_500, messages_max=20_000
)
_PROCESS_PLANS = (
    replace(_PROCESSES, members=(2, 4, 8, 16)),
    replace(_PROCESSES, loads=(256_000,), messages_max=50_000),
    replace(_PROCESSES, variants=(PLAIN,)),
    replace(_PROCESSES, payload_bytes=(KIB,), loads=(1_000, 16_000)),
    replace(_PROCESSES, payload_bytes=(64 * KIB,), loads=(100, 800), messages=200, messages_max=800),
    replace(_PROCESSES, shapes=(SLOW_MEMBER,), loads=(500, 1_000, 2_000), messages=1_000, messages_max=2_000),
    replace(_PROCESSES, shapes=(BURSTS,), loads=(1_000, 16_000)),
)

_QUICK = {"messages": 200, "messages_max": 2_000}
_QUICK_LAN = replace(_LAN, orders=_FEW, **_QUICK)
_QUICK_PROCESSES = replace(_PROCESSES, orders=_FEW[:1], loads=(1_000,), **_QUICK)
_QUICK_PLANS = (
    replace(_QUICK_LAN, members=(2, 8), loads=(1_000, 64_000)),
    replace(_QUICK_LAN, shapes=(SLOW_MEMBER, BURSTS), loads=(500, 4_000)),
    replace(_QUICK_LAN, payload_bytes=(KIB, 64 * KIB), loads=(100, 1_000)),
    replace(_WAN, orders=_FEW, loads=(100, 1_000), **_QUICK),
    replace(_QUICK_PROCESSES, members=(2, 4), variants=_BOTH),
    replace(_QUICK_PROCESSES, shapes=(SLOW_MEMBER, BURSTS)),
    replace(_QUICK_PROCESSES, payload_bytes=(64 * KIB,), loads=(100,)),
)


def campaign(
    seed: int, orders: Sequence[str] | None = None, places: Sequence[str] | None = None
) -> tuple[SaturationPlan, ...]:
    """All plans, or what they have of these orders and places."""
    return _part((*_LAN_PLANS, *_WAN_PLANS, *_PROCESS_PLANS), seed, orders, places)


def quick_campaign(
    seed: int, orders: Sequence[str] | None = None, places: Sequence[str] | None = None
) -> tuple[SaturationPlan, ...]:
    """A little of everything, for a couple of minutes, or what it has of these orders and places."""
    return _part(_QUICK_PLANS, seed, orders, places)


def _part(
    plans: Sequence[SaturationPlan], seed: int, orders: Sequence[str] | None, places: Sequence[str] | None
) -> tuple[SaturationPlan, ...]:
    chosen = SaturationPlan(orders=tuple(orders or PROTOCOLS), places=tuple(places or PLACES))
    part = []
    for plan in plans:
        in_orders = tuple(order for order in plan.orders if order in chosen.orders)
        in_places = tuple(place for place in plan.places if place in chosen.places)
        if in_orders and in_places:
            part.append(replace(plan, orders=in_orders, places=in_places, seed=seed))
    found = {order for plan in part for order in plan.orders}
    for order in orders or ():
        if order not in found:
            raise InvalidOption(f"the campaign has no group with the order {order!r} at these places")
    return tuple(part)


#: What a process of a simulated group takes for a message and for another member, in seconds: measured.
_MESSAGE_SECONDS, _MEMBER_SECONDS = 70e-6, 2.5e-3
_BYTE_SECONDS = 10e-9
#: What a group of processes takes to start and to end, each, and how much it delivers in a second.
_START_SECONDS, _PROCESS_SECONDS, _DELIVERIES = 1.5, 0.4, 60_000


def estimated_seconds(planned: Sequence[PlannedCell], jobs: int) -> float:
    """About how long it takes to measure these groups: processors of this machine differ by a factor."""
    simulated = sum(_seconds_of(each) for each in planned if each.cell.place != PROCESSES)
    alone = sum(_seconds_of(each) for each in planned if each.cell.place == PROCESSES)
    return simulated / max(1, jobs) + alone


def _seconds_of(planned: PlannedCell) -> float:
    cell = planned.cell
    messages = planned.plan.messages_of(cell) * cell.members
    if cell.place != PROCESSES:
        each = _MESSAGE_SECONDS + _BYTE_SECONDS * cell.payload_bytes
        return messages * cell.members * each + cell.members**2 * _MEMBER_SECONDS
    handled = 1_000_000 / SLOW_US if cell.shape == SLOW_MEMBER else _DELIVERIES / cell.members
    lasting = messages / min(cell.load, handled)
    return _START_SECONDS + _PROCESS_SECONDS * cell.members + lasting
