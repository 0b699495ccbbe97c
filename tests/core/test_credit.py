"""Credit: what one sender may have under way."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import B, batch_of
from priocast.core.credit import REOPENING_DIVISOR, Outstanding
from priocast.core.errors import PeerFault
from priocast.core.message import pack
from priocast.core.priority import class_of, limits_by_class

LIMIT = 96
REOPENS_AT = LIMIT // REOPENING_DIVISOR

few_levels = st.sampled_from([0, 100, 255])
actions = st.lists(
    st.tuples(st.sampled_from(["send", "place"]), few_levels, st.integers(1, 30), st.integers(0, 15)),
    max_size=40,
)


@given(actions, st.booleans())
def test_outstanding_is_what_was_sent_and_not_placed(
    actions: list[tuple[str, int, int, int]], reserved: bool
) -> None:
    outstanding = Outstanding(LIMIT, 900, reserved)
    under_way: dict[int, deque[int]] = {0: deque(), 100: deque(), 255: deque()}  # per message, its bytes
    exhausted = dict.fromkeys(under_way, False)
    for action, level, count, size in actions:
        if action == "send":
            batch = pack(B, level, 0, [bytes(size)] * count)
            outstanding.sent(batch)
            under_way[level].extend([len(batch.block) // count] * count)
        elif placed := min(count, len(under_way[level])):
            outstanding.placed(batch_of(placed, level))
            for _ in range(placed):
                under_way[level].popleft()
        total = sum(len(messages) for messages in under_way.values())
        assert outstanding.count == total
        # A message of a cut batch counts for its share of the block, rounded: exact when nothing is left.
        bytes_about = sum(sum(messages) for messages in under_way.values())
        assert bytes_about <= outstanding.bytes <= bytes_about + 10 * total
        for of_level in under_way:
            full = outstanding.bytes >= limits_by_class(900, reserved)[class_of(of_level)]
            room = 0 if full else limits_by_class(LIMIT, reserved)[class_of(of_level)] - total
            exhausted[of_level] = room < (REOPENS_AT if exhausted[of_level] else 1)
            assert outstanding.room(of_level) == (0 if exhausted[of_level] else room)


def test_a_used_up_share_reopens_when_a_part_of_it_is_free() -> None:
    outstanding = Outstanding(LIMIT, 10**6, reserved=False)
    outstanding.sent(batch_of(LIMIT))
    rooms = [outstanding.room(0)]
    for _ in range(REOPENS_AT):
        outstanding.placed(batch_of(1))
        rooms.append(outstanding.room(0))
    assert rooms == [0] * REOPENS_AT + [REOPENS_AT]


def test_a_place_for_a_message_that_was_never_sent_is_the_sequencers_fault() -> None:
    # Found by reading: this was a KeyError or an IndexError, as if the fault were ours.
    outstanding = Outstanding(40, 600, reserved=True)
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(1, level=7))
    outstanding.sent(batch_of(1, level=7))
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(2, level=7))
