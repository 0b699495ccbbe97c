"""The end of a view: at any point, all survivors know the same, and nothing is lost or duplicated.

Every protocol of the registry, prioritised and plain, under every starvation policy; and from one to another.
"""

import pytest
from hypothesis import given, settings

from priocast.core.message import TO_ALL
from priocast.core.protocol import OrderingOptions
from protocols.orders import ORDERED_TWINS, ORDERS, TWINS, patiently
from protocols.schedules import Broadcast
from protocols.view_sequences import ViewPlan, ViewSequence, check_views, view_sequences


@pytest.mark.parametrize(("order", "twin"), ORDERED_TWINS)
def test_survivors_keep_every_guarantee_from_view_to_view(order: str, twin: str) -> None:
    @settings(max_examples=patiently(16))
    @given(view_sequences([order], [TWINS[twin]]))
    def holds(sequence: ViewSequence) -> None:
        check_views(sequence)

    holds()


def test_the_order_may_change_from_view_to_view() -> None:
    @settings(max_examples=patiently(100))
    @given(view_sequences(ORDERS, list(TWINS.values())))
    def holds(sequence: ViewSequence) -> None:
        check_views(sequence)

    holds()


@pytest.mark.parametrize("assembled", [True, False])
@pytest.mark.parametrize("priority", [0, 100, 255])
@pytest.mark.parametrize("order", ORDERS)
def test_what_waits_through_three_orders_stays_in_order(order: str, priority: int, assembled: bool) -> None:
    """Found by lives: of what was broadcast before, in and after a plain view, the middle went first."""
    said = [Broadcast(member, each, (1, 2), TO_ALL) for member in (0, 1) for each in (priority, 100, 0)]
    views = [
        ViewPlan(order, OrderingOptions(prioritised=prioritised), list(said), 0b11, 0, 100, assembled)
        for prioritised in (True, False, True, False, True)
    ]
    check_views(ViewSequence(2, views))
