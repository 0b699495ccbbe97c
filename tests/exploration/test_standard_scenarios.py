"""Every protocol of the registry, exhaustively, in the smallest groups; `explore --all` sees more."""

import pytest

from exploration.scenarios import assert_holds
from priocast.protocols import PROTOCOLS, all_orders


@pytest.mark.parametrize("order", PROTOCOLS)
def test_two_members_and_every_end_of_their_view(order: str) -> None:
    seen = assert_holds(order, "a:low b:high", view_ends=True)
    assert seen.states > 40
    assert seen.view_ends == 3 * seen.states


@pytest.mark.parametrize("order", PROTOCOLS)
def test_two_members_whose_inputs_gather(order: str) -> None:
    assert assert_holds(order, "b:low b:high", free_turns=True).states > 50


@pytest.mark.parametrize("order", [order for order in all_orders(["sequencer-ub"]) if "/" in order])
def test_layers(order: str) -> None:
    """Their timers are later than everything else: exploration has no clock."""
    assert_holds(order, "a:low b:high")


def test_three_members_with_three_messages() -> None:
    seen = assert_holds("reorder", "a:low b:middle c:high", processes=3)
    assert seen.states > 10_000
