"""Credit: what one sender may have in flight."""

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
    st.tuples(st.sampled_from(["send", "order"]), few_levels, st.integers(1, 30), st.integers(0, 15)),
    max_size=40,
)


def _messages(batches: list[Batch]) -> list[tuple[int, int]]:
    """Level and number of each message; decoding the blocks checks their content."""
    return [
        (batch.level, batch.first + index) for batch in batches for index, _ in enumerate(batch.payloads())
    ]


@given(actions, st.booleans())
def test_in_flight_is_what_was_sent_and_is_not_ordered(
    actions: list[tuple[str, int, int, int]], reserved: bool
) -> None:
    credit = InFlight(LIMIT, 900, reserved)
    in_flight: dict[int, deque[int]] = {0: deque(), 100: deque(), 255: deque()}  # per message, its bytes
    exhausted = dict.fromkeys(in_flight, False)
    numbers = dict.fromkeys(in_flight, 0)
    sent: list[tuple[int, int]] = []
    for action, level, count, size in actions:
        if action == "send":
            first, numbers[level] = numbers[level], numbers[level] + count
            batch = pack(B, level, first, [bytes(size)] * count)
            credit.sent(batch)
            sent += _messages([batch])
            in_flight[level].extend([len(batch.block) // count] * count)
        elif placed := min(count, len(in_flight[level])):
            credit.ordered(batch_of(placed, level))
            for _ in range(placed):
                in_flight[level].popleft()
        total = sum(len(messages) for messages in in_flight.values())
        assert credit.count == total
        # A message of a cut batch counts for its share of the block, rounded: exact when nothing is left.
        bytes_about = sum(sum(messages) for messages in in_flight.values())
        assert bytes_about <= credit.bytes <= bytes_about + 10 * total
        placed_below = {of_level: numbers[of_level] - len(in_flight[of_level]) for of_level in in_flight}
        assert _messages(credit.unordered()) == [
            (of_level, number) for of_level, number in sent if number >= placed_below[of_level]
        ]
        for of_level in in_flight:
            full = credit.bytes >= limits_by_class(900, reserved)[class_of(of_level)]
            room = 0 if full else limits_by_class(LIMIT, reserved)[class_of(of_level)] - total
            exhausted[of_level] = room < (REOPENS_AT if exhausted[of_level] else 1)
            assert credit.room(of_level) == (0 if exhausted[of_level] else room)


def test_an_exhausted_share_reopens_when_a_part_of_it_is_free() -> None:
    credit = InFlight(LIMIT, 10**6, reserved=False)
    credit.sent(batch_of(LIMIT))
    rooms = [credit.room(0)]
    for _ in range(REOPENS_AT):
        credit.ordered(batch_of(1))
        rooms.append(credit.room(0))
    assert rooms == [0] * REOPENS_AT + [REOPENS_AT]


def test_a_position_for_a_message_that_was_never_sent_is_a_peer_fault() -> None:
    # Found in review: this raised a KeyError or an IndexError instead of a PeerFault.
    credit = InFlight(40, 600, reserved=True)
    with pytest.raises(PeerFault, match="never sent"):
        credit.ordered(batch_of(1, level=7))
    credit.sent(batch_of(1, level=7))
    with pytest.raises(PeerFault, match="never sent"):
        credit.ordered(batch_of(2, level=7))


def test_unordered_messages_are_returned_as_they_were_sent() -> None:
    credit = InFlight(100, 10**6, reserved=False)
    scope = Scope(safe=True)
    plain = pack(B, 0, 3, [b"a", b"b", b"c"], bytes([7, 8, 9]), scope)
    credit.sent(plain)
    credit.sent(batch_of(2, level=5, sender=B))
    credit.ordered(pack(B, 0, 3, [b"a"]))
    assert credit.unordered() == [
        pack(B, 0, 4, [b"b", b"c"], bytes([8, 9]), scope),
        batch_of(2, level=5, sender=B),
    ]
    assert credit.count == 4, "reading changes nothing"
