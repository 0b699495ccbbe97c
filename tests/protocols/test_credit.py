"""Credit: what one sender may have under way."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import B, batch_of
from priocast.core.errors import PeerFault
from priocast.core.message import Batch, Scope, pack
from priocast.core.priority import class_of, limits_by_class
from priocast.protocols.flow.credit import REOPENING_DIVISOR, InFlight

LIMIT = 96
REOPENS_AT = LIMIT // REOPENING_DIVISOR

few_levels = st.sampled_from([0, 100, 255])
actions = st.lists(
    st.tuples(st.sampled_from(["send", "place"]), few_levels, st.integers(1, 30), st.integers(0, 15)),
    max_size=40,
)


def _messages(batches: list[Batch]) -> list[tuple[int, int]]:
    """Level and number of each message; opening the blocks shows that they hold what they should."""
    return [
        (batch.level, batch.first + index) for batch in batches for index, _ in enumerate(batch.payloads())
    ]


@given(actions, st.booleans())
def test_outstanding_is_what_was_sent_and_not_placed(
    actions: list[tuple[str, int, int, int]], reserved: bool
) -> None:
    outstanding = InFlight(LIMIT, 900, reserved)
    in_flight: dict[int, deque[int]] = {0: deque(), 100: deque(), 255: deque()}  # per message, its bytes
    exhausted = dict.fromkeys(in_flight, False)
    numbers = dict.fromkeys(in_flight, 0)
    sent: list[tuple[int, int]] = []
    for action, level, count, size in actions:
        if action == "send":
            first, numbers[level] = numbers[level], numbers[level] + count
            batch = pack(B, level, first, [bytes(size)] * count)
            outstanding.sent(batch)
            sent += _messages([batch])
            in_flight[level].extend([len(batch.block) // count] * count)
        elif placed := min(count, len(in_flight[level])):
            outstanding.placed(batch_of(placed, level))
            for _ in range(placed):
                in_flight[level].popleft()
        total = sum(len(messages) for messages in in_flight.values())
        assert outstanding.count == total
        # A message of a cut batch counts for its share of the block, rounded: exact when nothing is left.
        bytes_about = sum(sum(messages) for messages in in_flight.values())
        assert bytes_about <= outstanding.bytes <= bytes_about + 10 * total
        placed_below = {of_level: numbers[of_level] - len(in_flight[of_level]) for of_level in in_flight}
        assert _messages(outstanding.unordered()) == [
            (of_level, number) for of_level, number in sent if number >= placed_below[of_level]
        ]
        for of_level in in_flight:
            full = outstanding.bytes >= limits_by_class(900, reserved)[class_of(of_level)]
            room = 0 if full else limits_by_class(LIMIT, reserved)[class_of(of_level)] - total
            exhausted[of_level] = room < (REOPENS_AT if exhausted[of_level] else 1)
            assert outstanding.room(of_level) == (0 if exhausted[of_level] else room)


def test_a_used_up_share_reopens_when_a_part_of_it_is_free() -> None:
    outstanding = InFlight(LIMIT, 10**6, reserved=False)
    outstanding.sent(batch_of(LIMIT))
    rooms = [outstanding.room(0)]
    for _ in range(REOPENS_AT):
        outstanding.placed(batch_of(1))
        rooms.append(outstanding.room(0))
    assert rooms == [0] * REOPENS_AT + [REOPENS_AT]


def test_a_place_for_a_message_that_was_never_sent_is_the_sequencers_fault() -> None:
    # Found by reading: this was a KeyError or an IndexError, as if the fault were ours.
    outstanding = InFlight(40, 600, reserved=True)
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(1, level=7))
    outstanding.sent(batch_of(1, level=7))
    with pytest.raises(PeerFault, match="never sent"):
        outstanding.placed(batch_of(2, level=7))


def test_what_has_no_place_yet_is_given_back_as_it_was_sent_without_what_has_one() -> None:
    outstanding = InFlight(100, 10**6, reserved=False)
    scope = Scope(safe=True)
    plain = pack(B, 0, 3, [b"a", b"b", b"c"], bytes([7, 8, 9]), scope)
    outstanding.sent(plain)
    outstanding.sent(batch_of(2, level=5, sender=B))
    outstanding.placed(pack(B, 0, 3, [b"a"]))
    assert outstanding.unordered() == [
        pack(B, 0, 4, [b"b", b"c"], bytes([8, 9]), scope),
        batch_of(2, level=5, sender=B),
    ]
    assert outstanding.count == 4, "asking changes nothing"
