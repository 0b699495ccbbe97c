"""The end of a view: at any point, whoever goes on knows the same, and nothing is lost or doubled.

Every protocol of the registry, prioritised and plain, under every policy; and from one to another.
"""

import pytest
from hypothesis import given, settings

from priocast.core.starvation import Starvation
from priocast.protocols import PROTOCOLS
from protocols.lives import Life, live, lives
from protocols.test_properties import TWINS


@pytest.mark.parametrize("twin", TWINS.values(), ids=list(TWINS))
@pytest.mark.parametrize("order", PROTOCOLS)
def test_whoever_goes_on_from_view_to_view_keeps_every_guarantee(
    order: str, twin: tuple[bool, Starvation]
) -> None:
    @settings(max_examples=200)
    @given(lives([order], [twin]))
    def holds(life: Life) -> None:
        live(life)

    holds()


def test_the_order_may_change_from_view_to_view() -> None:
    @settings(max_examples=200)
    @given(lives(list(PROTOCOLS), list(TWINS.values())))
    def holds(life: Life) -> None:
        live(life)

    holds()
