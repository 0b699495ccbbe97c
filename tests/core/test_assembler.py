"""The assembler: batches by level, cut by bytes and by count, numbered without gaps."""

from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, levels, numbered
from priocast.core.assembler import Assembler
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, TO_ALL, Batch, Scope
from priocast.core.priority_queue import PriorityQueue
from priocast.core.starvation import FirstInFirstOut

few_levels = st.sampled_from([0, 1, 224])
SCOPES = [TO_ALL, Scope(safe=True), Scope(to=("b",)), Scope(client="k#1", request=2)]
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


def test_a_network_may_carry_longer_batches() -> None:
    assembler = Assembler(A, prioritised=True, batch_bytes=1000)
    assembler.add_many([bytes(400)] * 5, 0)
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


@given(
    st.lists(
        st.lists(
            st.tuples(few_levels, st.sampled_from(SCOPES), st.integers(0, 3), st.booleans()), max_size=8
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_messages_of_several_scopes_keep_their_order_and_their_scope(
    turns: list[list[tuple[int, Scope, int, bool]]], prioritised: bool
) -> None:
    assembler = Assembler(A, prioritised)
    numbers: dict[int, int] = {}
    for turn in turns:
        expected: dict[int, list[tuple[int, Scope, int]]] = {}
        for priority, scope, count, one_by_one in turn:
            if one_by_one and scope == TO_ALL:
                for payload in numbered(count):
                    assembler.add(payload, priority)
            else:
                assembler.add_many(numbered(count), priority, scope)
            level = priority if prioritised else 0
            for _ in range(count):
                number = numbers[level] = numbers.get(level, -1) + 1
                expected.setdefault(level, []).append((number, scope, priority))
        closed: dict[int, list[tuple[int, Scope, int]]] = {}
        for batch in assembler.close():
            closed.setdefault(batch.level, []).extend(
                (batch.first + index, batch.scope, batch.priority_of(index)) for index in range(batch.count)
            )
            assert len(batch.payloads()) == batch.count
        assert closed == expected


def test_messages_of_one_scope_that_follow_each_other_share_a_batch() -> None:
    assembler = Assembler(A, prioritised=True)
    for scope in (TO_ALL, TO_ALL, Scope(safe=True), Scope(safe=True), TO_ALL):
        assembler.add_many([b"x"], 7, scope)
    assembler.add(b"x", 7)
    batches = assembler.close()
    assert [(batch.first, batch.count, batch.scope.safe) for batch in batches] == [
        (0, 2, False),
        (2, 2, True),
        (4, 2, False),
    ]


def test_the_order_may_stop_and_begin_to_be_prioritised_between_two_turns() -> None:
    assembler = Assembler(A, prioritised=True)
    said = []
    for prioritised in (True, False, True):
        assembler.prioritised = prioritised
        assembler.add(b"x", 7)
        assembler.add(b"y", 0)
        said.append([(batch.level, batch.first, list(batch.priorities)) for batch in assembler.close()])
    assert said == [[(7, 0, []), (0, 0, [])], [(0, 1, [7, 0])], [(7, 1, []), (0, 3, [])]]


def test_what_was_said_before_the_order_changed_keeps_its_level_and_its_priority() -> None:
    # Found by the lives of `protocols/lives.py`: all shared the priorities of those that had their own.
    assembler = Assembler(A, prioritised=True)
    for number, prioritised in enumerate((True, False, True)):
        assembler.prioritised = prioritised
        assembler.add(b"%d" % number, 7)
        assembler.add_many([b"%d" % number], 0)
    closed = [(str(batch), batch.payloads(), list(batch.priorities)) for batch in assembler.close()]
    assert closed == [
        ("a#1/7/0+2", [b"0", b"2"], []),
        ("a#1/0/0+1", [b"0"], []),
        ("a#1/0/1+2", [b"1", b"1"], [7, 0]),
        ("a#1/0/3+1", [b"2"], []),
    ]


def test_requests_of_clients_stay_alone_although_they_look_alike() -> None:
    """Two requests of one number and different priorities have one scope; found by seed 1416."""
    assembler = Assembler(A, prioritised=False)
    scope = Scope(client="shop#1", request=1)
    assembler.add_many([b"x"], 66, scope)
    assembler.add_many([b"y"], 94, scope)
    batches = assembler.close()
    assert [(batch.count, batch.priorities) for batch in batches] == [(1, bytes([66])), (1, bytes([94]))]
    queue = PriorityQueue(FirstInFirstOut(), 10, 1000)
    for batch in batches:
        queue.put(batch, 0)
    assert [batch.count for batch in queue.drain()] == [1, 1]
