"""The order `auto`: what a group begins with, and when another class is so much better that it changes."""

import msgspec

from priocast.advice.advisor import Advice, advise
from priocast.advice.situation import Situation
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.protocols import check_order

AUTO = "auto"
BETTER = 1.5


def resolve_order(
    order: str, options: OrderingOptions, membership: MembershipOptions
) -> tuple[str, MembershipOptions]:
    """The order that a group begins with, checked, and how it lives; `auto` is what suits it without load."""
    if order != AUTO:
        check_order(order, membership.primary)
        return order, membership
    situation = situation_of(options, membership, membership.founders)
    return advise(situation).choice, msgspec.structs.replace(membership, adapts=True)


def situation_of(options: OrderingOptions, membership: MembershipOptions, members: int) -> Situation:
    """What is known of a group before it has any load."""
    return Situation(
        members=members,
        priorities="group" if options.prioritised else "none",
        partitionable=not membership.primary,
        safe=membership.delivery == "safe",
    )


def is_clearly_better(advice: Advice, order: str) -> bool:
    """Whether the choice is so much better than what a group has that a change is worth its while."""
    has, choice = advice.of(order), advice.of(advice.choice)
    if has is None or choice is None or has.order == choice.order or choice.excluded:
        return False
    if has.excluded or has.delivery_ms is None:
        return choice.delivery_ms is not None
    return choice.delivery_ms is not None and has.delivery_ms >= BETTER * choice.delivery_ms
