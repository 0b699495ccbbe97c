"""The pending queue: what waits here, without what another member has ordered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of
from priocast.core.errors import PeerFault
from priocast.core.message import Reference
from priocast.core.starvation import FirstInFirstOut, Strict
from priocast.protocols.ring.pending_queue import PendingQueue


def _drained(pending: PendingQueue) -> list[str]:
    return [str(batch) for batch in pending.drain()]


def test_ordered_messages_leave_the_queue() -> None:
    pending = PendingQueue(Strict())
    pending.put(batch_of(3), now=0)
    pending.ordered(B, Reference(A, 0, 0, 2))
    assert pending.count == 1
    assert _drained(pending) == ["a#1/0/2+1"]


def test_messages_that_arrive_after_their_position_do_not_wait() -> None:
    pending = PendingQueue(Strict())
    pending.ordered(B, Reference(A, 0, 0, 2))
    pending.put(batch_of(2), now=0)
    assert not pending


def test_ordered_messages_behind_others_leave_later() -> None:
    pending = PendingQueue(Strict())
    pending.put(batch_of(2, level=1), now=0)
    pending.put(batch_of(2, level=9), now=0)
    pending.ordered(B, batch_of(1, level=1))
    assert [str(batch) for _, _, batch in pending.leaving()] == ["a#1/9/0+2", "a#1/1/1+1"]
    assert str(pending.take(2)) == "a#1/9/0+2"
    assert pending.count == 1
    assert _drained(pending) == ["a#1/1/1+1"]


def test_a_message_is_ordered_once_and_in_order() -> None:
    pending = PendingQueue(Strict())
    pending.ordered(B, Reference(A, 0, 0, 2))
    with pytest.raises(PeerFault, match=r"b#1 orders a#1/0/1\+1; number 2 of that level is next"):
        pending.ordered(B, Reference(A, 0, 1, 1))
    with pytest.raises(PeerFault, match="number 2 of that level is next"):
        pending.ordered(B, Reference(A, 0, 3, 1))


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 30), st.integers(1, 7))
def test_all_messages_that_leave_are_reported(counts: list[int], ordered: int, cut: int) -> None:
    told: list[Reference] = []
    pending = PendingQueue(FirstInFirstOut(), told.append)
    first = 0
    for count in counts:
        pending.put(batch_of(count, first=first), now=0)
        first += count
    if ordered := min(ordered, first):
        pending.ordered(B, Reference(A, 0, 0, ordered))
    taken = []
    while pending:
        taken.append(pending.take(cut))
    assert [batch.first + index for batch in taken for index in range(batch.count)] == list(
        range(ordered, first)
    )
    assert [each.first + index for each in told for index in range(each.count)] == list(range(first))
