"""The order `auto`: the protocol that a group starts with, and when another one justifies a change."""

import msgspec

from priocast.advice.advisor import Advice, advise
from priocast.advice.situation import Situation
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.protocols import check_order
from priocast.protocols.adaptive.policies import check_adaptation

AUTO = "auto"
BETTER = 1.5


def resolve_order(
    order: str, options: OrderingOptions, membership: MembershipOptions
) -> tuple[str, MembershipOptions]:
    """The protocol that a group starts with, and its membership options; `auto` is resolved for no load."""
    check_adaptation(options.adaptation)
    if order != AUTO:
        check_order(order, membership.primary, options.policy)
        return order, membership
    situation = situation_of(options, membership, membership.founders)
    return advise(situation).choice, msgspec.structs.replace(membership, adapts=True)


def situation_of(options: OrderingOptions, membership: MembershipOptions, members: int) -> Situation:
    """The situation of a group, as far as its options tell."""
    return Situation(
        members=members,
        priorities="group" if options.prioritised else "none",
        partitionable=not membership.primary,
        safe=membership.delivery == "safe",
    )


def is_clearly_better(advice: Advice, order: str) -> bool:
    """Whether the recommended protocol is better than the current one by enough to justify a change."""
    current, choice = advice.of(order), advice.of(advice.choice)
    if current is None or choice is None or current.order == choice.order or choice.excluded:
        return False
    if current.excluded or current.delivery_ms is None:
        return choice.delivery_ms is not None
    return choice.delivery_ms is not None and current.delivery_ms >= BETTER * choice.delivery_ms
