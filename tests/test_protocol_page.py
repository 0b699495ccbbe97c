"""The page about the protocols: what it says is what the docstrings say and what the simulator counts."""

from pathlib import Path

import pytest
from tools.message_costs import Arrival, send_one, steps
from tools.protocol_page import HEADINGS, LAYERED, documented, page

from priocast.protocols import PROTOCOLS, find_protocol

PAGE = Path(__file__).parents[1] / "docs" / "protocols.md"


def test_the_page_is_the_one_that_is_generated() -> None:
    assert page((*PROTOCOLS, *LAYERED)) == PAGE.read_text(), "make docs"


@pytest.mark.parametrize("order", [*PROTOCOLS, *LAYERED])
def test_every_protocol_says_all_that_the_page_shows(order: str) -> None:
    said = documented(find_protocol(order))
    assert set(said) == {"", *HEADINGS}
    assert all(said.values())


def test_a_message_through_the_sequencer_takes_a_hop_there_and_a_hop_on() -> None:
    found = send_one("sequencer-ub", members=3, sender=1)
    assert found.hops == 2
    assert list(steps(found.arrivals)) == [(1, "b", ["a"], "submit"), (2, "a", ["b", "c"], "ordered")]
    assert send_one("sequencer-ub", members=3, sender=0).hops == 1


def test_what_one_tells_several_at_once_is_one_step() -> None:
    arrivals = [Arrival(5_000, "a", "b", "x"), Arrival(5_000, "a", "c", "x"), Arrival(6_000, "b", "a", "y")]
    assert list(steps(arrivals)) == [(1, "a", ["b", "c"], "x"), (2, "b", ["a"], "y")]
