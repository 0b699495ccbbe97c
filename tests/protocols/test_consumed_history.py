"""Sets of messages as spans, and histories from which is left out what all have consumed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.protocols.reorder.consumed_history import ConsumedHistory
from priocast.protocols.reorder.message_sets import MessageSet, Run

spans = st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda drawn: (drawn[0], sum(drawn)))
sets = st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), spans).map(MessageSet)


def _names(messages: MessageSet) -> set[tuple[int, int, int]]:
    return {(*stream, number) for stream, span in messages.spans.items() for number in range(*span)}


class TestMessageSets:
    @given(sets, sets)
    def test_what_is_in_both(self, one: MessageSet, other: MessageSet) -> None:
        assert _names(one & other) == _names(one) & _names(other)

    @given(sets, sets)
    def test_what_is_in_either_and_between_them(self, one: MessageSet, other: MessageSet) -> None:
        either = one | other
        assert _names(either) >= _names(one) | _names(other)
        for stream, span in either.spans.items():
            ends = [each.spans[stream] for each in (one, other) if stream in each.spans]
            assert span == (min(first for first, _ in ends), max(end for _, end in ends))

    @given(sets, st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 15)))
    def test_what_is_in_a_set(self, messages: MessageSet, name: tuple[int, int, int]) -> None:
        assert (name in messages) == (name in _names(messages))

    @given(sets)
    def test_a_set_travels_as_runs(self, messages: MessageSet) -> None:
        assert MessageSet.of(messages.runs) == messages

    def test_a_run_says_whose_messages_it_names(self) -> None:
        messages = MessageSet()
        messages.add((9, 2, 4))
        messages.add((9, 2, 5))
        assert (messages.runs, str(messages.runs[0])) == ((Run(9, 2, 4, 2),), "2/9/4+2")
        with pytest.raises(AssertionError):
            messages.add((9, 2, 7))


class TestHistories:
    def test_what_all_have_consumed_is_left_out(self) -> None:
        mine = ConsumedHistory(members=2)
        mine.add((0, 0), 3)
        mine.add((9, 1), 1)
        assert mine.messages == MessageSet({(0, 0): (0, 3), (9, 1): (0, 1)})
        mine.hear(0, mine.messages)
        assert mine.everywhere == MessageSet()
        mine.hear(1, MessageSet({(0, 0): (0, 2), (5, 1): (0, 1)}))
        assert mine.everywhere == MessageSet({(0, 0): (0, 2)})
        mine.collect(mine.everywhere)
        assert mine.messages == MessageSet({(0, 0): (2, 3), (9, 1): (0, 1)})
        assert mine.everywhere == MessageSet()

    def test_what_was_heard_earlier_is_not_forgotten(self) -> None:
        mine = ConsumedHistory(members=1)
        mine.add((0, 0), 3)
        mine.hear(0, MessageSet({(0, 0): (0, 3)}))
        mine.hear(0, MessageSet({(0, 0): (0, 1)}))
        assert mine.everywhere == MessageSet({(0, 0): (0, 3)})

    def test_what_was_collected_was_consumed_all_the_same(self) -> None:
        mine = ConsumedHistory(members=1)
        mine.add((0, 0), 2)
        mine.collect(MessageSet({(0, 0): (0, 2)}))
        assert mine.messages == MessageSet()
        assert mine.includes(MessageSet({(0, 0): (1, 2)}))
        assert not mine.includes(MessageSet({(0, 0): (2, 3)}))
