"""The assembler: batches by level, cut by bytes and by count, numbered without gaps."""

from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, levels, numbered
from priocast.core.assembler import Assembler
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, Batch

few_levels = st.sampled_from([0, 1, 224])
turns = st.lists(st.lists(st.tuples(few_levels, st.binary(max_size=20)), max_size=12), max_size=6)


def _assembled(turns: list[list[tuple[int, bytes]]], prioritised: bool) -> list[list[Batch]]:
    assembler = Assembler(A, prioritised)
    closed = []
    for messages in turns:
        for level, payload in messages:
            assembler.add(payload, level)
        assert assembler.count == len(messages)
        assert assembler.bytes == sum(len(payload) for _, payload in messages)
        closed.append(assembler.close())
        assert (assembler.count, assembler.bytes) == (0, 0)
    return closed


@given(turns)
def test_each_level_is_numbered_without_gaps_and_in_the_order_of_broadcast(
    turns: list[list[tuple[int, bytes]]],
) -> None:
    closed = _assembled(turns, prioritised=True)
    for level in {level for messages in turns for level, _ in messages}:
        batches = [batch for batches in closed for batch in batches if batch.level == level]
        assembled = [pair for batch in batches for pair in enumerate(batch.payloads(), batch.first)]
        broadcast = [payload for messages in turns for of_level, payload in messages if of_level == level]
        assert assembled == list(enumerate(broadcast))
        assert all(batch.sender == A and not batch.priorities for batch in batches)


@given(turns)
def test_the_most_urgent_batch_of_a_turn_comes_first(turns: list[list[tuple[int, bytes]]]) -> None:
    for batches in _assembled(turns, prioritised=True):
        in_order = [batch.level for batch in batches]
        assert in_order == sorted(in_order, reverse=True)


@given(turns)
def test_a_plain_group_keeps_one_order_and_remembers_the_priorities(
    turns: list[list[tuple[int, bytes]]],
) -> None:
    batches = [batch for batches in _assembled(turns, prioritised=False) for batch in batches]
    messages = [
        (batch.first + index, batch.priority_of(index), payload)
        for batch in batches
        for index, payload in enumerate(batch.payloads())
    ]
    flat = [message for turn in turns for message in turn]
    assert messages == [(number, level, payload) for number, (level, payload) in enumerate(flat)]
    assert all(batch.level == 0 and len(batch.priorities) == batch.count for batch in batches)


@given(st.lists(st.tuples(levels, st.integers(0, 5)), max_size=6), st.booleans())
def test_adding_many_is_adding_one_by_one(runs: list[tuple[int, int]], prioritised: bool) -> None:
    many, one_by_one = Assembler(A, prioritised), Assembler(A, prioritised)
    for level, count in runs:
        many.add_many(numbered(count), level)
        for payload in numbered(count):
            one_by_one.add(payload, level)
    assert (many.count, many.bytes) == (one_by_one.count, one_by_one.bytes)
    assert many.close() == one_by_one.close()


def test_nothing_makes_no_batch() -> None:
    assembler = Assembler(A, prioritised=True)
    assembler.add_many([], 7)
    assert assembler.close() == []


def test_a_batch_is_cut_by_count() -> None:
    assembler = Assembler(A, prioritised=True)
    assembler.add_many([b""] * (2 * BATCH_COUNT_MAX + 1), 0)
    assert [batch.count for batch in assembler.close()] == [BATCH_COUNT_MAX, BATCH_COUNT_MAX, 1]


def test_a_batch_is_cut_by_bytes_and_may_be_filled_to_the_last_one() -> None:
    assembler = Assembler(A, prioritised=True)
    half = bytes(BATCH_BYTES_CUT // 2)
    assembler.add_many([half, half, b"x", half, half], 0)
    assert [batch.count for batch in assembler.close()] == [2, 2, 1]


def test_a_payload_over_the_cut_travels_alone() -> None:
    assembler = Assembler(A, prioritised=False)
    for priority, size in ((1, 5), (2, BATCH_BYTES_CUT + 1), (3, 5)):
        assembler.add(bytes(size), priority)
    batches = assembler.close()
    assert [(batch.first, batch.count, list(batch.priorities)) for batch in batches] == [
        (0, 1, [1]),
        (1, 1, [2]),
        (2, 1, [3]),
    ]
