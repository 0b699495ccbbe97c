"""The priority queue: inspecting it without taking, and dropping without packing a batch."""

from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.starvation import Ageing, FirstInFirstOut, Starvation, Strict

POLICIES: list[Starvation] = [Strict(), Ageing(3), FirstInFirstOut()]


def _filled(policy: Starvation, entries: list[tuple[int, int]], cut: int) -> PriorityQueue:
    """A queue with batches of these levels and counts, one per time unit; some messages have left."""
    queue = PriorityQueue(policy, 1_000, 10**6)
    first: dict[int, int] = {}
    for now, (level, count) in enumerate(entries):
        queue.put(batch_of(count, level, first.get(level, 0)), now)
        first[level] = first.get(level, 0) + count
    if cut and queue:
        queue.take(cut)
    return queue


def _messages(batches: list[Batch]) -> list[tuple[int, int, bytes]]:
    return [
        (batch.level, batch.first + index, payload)
        for batch in batches
        for index, payload in enumerate(batch.payloads())
    ]


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=10)


@given(st.sampled_from(POLICIES), entries, st.integers(0, 3))
def test_leaving_returns_what_leaves(policy: Starvation, entries: list[tuple[int, int]], cut: int) -> None:
    queue = _filled(policy, entries, cut)
    count, size = queue.count, queue.bytes
    seen = [batch for _, _, batch in queue.leaving()]
    assert (queue.count, queue.bytes) == (count, size)
    assert _messages(seen) == _messages(queue.drain())


@given(st.sampled_from(POLICIES), entries, st.integers(0, 3), st.integers(1, 5))
def test_dropping_leaves_the_same_state_as_taking(
    policy: Starvation, entries: list[tuple[int, int]], cut: int, count: int
) -> None:
    one, other = _filled(policy, entries, cut), _filled(policy, entries, cut)
    while one:
        head, rank = one.head(), one.head_sort_key()
        assert rank == next(one.leaving())[0]
        taken = one.take(count)
        assert (head.sender, head.level, head.first) == (taken.sender, taken.level, taken.first)
        assert taken.count == min(count, head.count)
        other.drop(count)
        assert (other.count, other.bytes) == (one.count, one.bytes)
        assert [batch for *_, batch in other.leaving()] == [batch for *_, batch in one.leaving()]
    assert not other


def test_a_batch_that_joins_after_a_drop_is_not_lost() -> None:
    queue = PriorityQueue(Strict(), 100, 10**6)
    queue.put(batch_of(3), now=0)
    queue.drop(2)
    queue.put(batch_of(2, first=3), now=1)
    queue.put(batch_of(1, sender=B), now=2)
    drained = queue.drain()
    assert _messages(drained)[:3] == _messages([batch_of(3, first=2)])
    assert drained[-1].sender == B and drained[0].sender == A
