"""The reorder buffer: packets take effect in the order of their positions; others are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import B
from priocast.core.errors import PeerFault
from priocast.core.protocol import WINDOW_MAX
from priocast.protocols.flow.reorder_buffer import ReorderBuffer


@given(st.permutations(range(6)))
def test_packets_are_taken_in_the_order_of_their_positions(arrivals: list[int]) -> None:
    buffer: ReorderBuffer[int] = ReorderBuffer()
    taken: list[int] = []
    for position in arrivals:
        buffer.check(B, position, len(taken), len(taken))
        buffer.put(position, position)
        while (found := buffer.take(len(taken))) is not None:
            taken.append(found)
    assert taken == list(range(6))


def test_a_position_is_assigned_once() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer()
    buffer.put(5, "ahead")
    for position in (1, 5):
        with pytest.raises(PeerFault, match=f"b#1 orders position {position}; 2 is next"):
            buffer.check(B, position, expected=2, position_next=2)
    buffer.check(B, 2, expected=2, position_next=2)


def test_no_position_is_beyond_the_window_of_messages_that_are_here() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer()
    buffer.check(B, 3 + WINDOW_MAX, expected=9, position_next=3)
    with pytest.raises(PeerFault, match="which no window allows"):
        buffer.check(B, 4 + WINDOW_MAX, expected=9, position_next=3)
