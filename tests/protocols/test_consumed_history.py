"""Sets of messages as ranges, and histories without the messages that all members have consumed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.protocols.reorder.consumed_history import ConsumedHistory
from priocast.protocols.reorder.message_ranges import MessageRange
from priocast.protocols.reorder.message_sets import MessageSet

spans = st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda drawn: (drawn[0], sum(drawn)))
sets = st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), spans).map(MessageSet)


def _names(messages: MessageSet) -> set[tuple[int, int, int]]:
    return {(*stream, number) for stream, span in messages.spans.items() for number in range(*span)}


class TestMessageSets:
    @given(sets, sets)
    def test_intersection(self, one: MessageSet, other: MessageSet) -> None:
        assert _names(one & other) == _names(one) & _names(other)

    @given(sets, sets)
    def test_union_with_what_is_between(self, one: MessageSet, other: MessageSet) -> None:
        either = one | other
        assert _names(either) >= _names(one) | _names(other)
        for stream, span in either.spans.items():
            ends = [each.spans[stream] for each in (one, other) if stream in each.spans]
            assert span == (min(first for first, _ in ends), max(end for _, end in ends))

    @given(sets, st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 15)))
    def test_membership(self, messages: MessageSet, name: tuple[int, int, int]) -> None:
        assert (name in messages) == (name in _names(messages))

    @given(sets)
    def test_a_set_is_sent_as_ranges(self, messages: MessageSet) -> None:
        assert MessageSet.of(messages.ranges) == messages

    def test_a_range_names_its_sender_level_and_numbers(self) -> None:
        messages = MessageSet()
        messages.extend({(9, 2): (4, 5)})
        messages.extend({(9, 2): (5, 6)})
        assert (messages.ranges, str(messages.ranges[0])) == ((MessageRange(9, 2, 4, 2),), "2/9/4+2")
        with pytest.raises(AssertionError):
            messages.extend({(9, 2): (7, 8)})


class TestHistories:
    def test_what_all_have_consumed_is_collected(self) -> None:
        mine = ConsumedHistory(members=2)
        mine.add((0, 0), 3)
        mine.add((9, 1), 1)
        assert mine.messages == MessageSet({(0, 0): (0, 3), (9, 1): (0, 1)})
        mine.receive(0, mine.messages)
        assert mine.everywhere == MessageSet()
        mine.receive(1, MessageSet({(0, 0): (0, 2), (5, 1): (0, 1)}))
        assert mine.everywhere == MessageSet({(0, 0): (0, 2)})
        mine.collect(mine.everywhere)
        assert mine.messages == MessageSet({(0, 0): (2, 3), (9, 1): (0, 1)})
        assert mine.everywhere == MessageSet()

    def test_an_older_history_does_not_replace_a_newer_one(self) -> None:
        mine = ConsumedHistory(members=1)
        mine.add((0, 0), 3)
        mine.receive(0, MessageSet({(0, 0): (0, 3)}))
        mine.receive(0, MessageSet({(0, 0): (0, 1)}))
        assert mine.everywhere == MessageSet({(0, 0): (0, 3)})

    def test_what_was_collected_still_counts_as_consumed(self) -> None:
        mine = ConsumedHistory(members=1)
        mine.add((0, 0), 2)
        mine.collect(MessageSet({(0, 0): (0, 2)}))
        assert mine.messages == MessageSet()
        assert mine.includes(MessageSet({(0, 0): (1, 2)}))
        assert not mine.includes(MessageSet({(0, 0): (2, 3)}))
