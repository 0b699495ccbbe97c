"""PendingQueue: what waits here, less what another member gave its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of
from priocast.core.errors import PeerFault
from priocast.core.message import Reference
from priocast.core.starvation import FirstInFirstOut, Strict
from priocast.protocols.ring.pending_queue import PendingQueue


def _drained(candidates: PendingQueue) -> list[str]:
    return [str(batch) for batch in candidates.drain()]


def test_what_has_a_place_is_not_given_out_again() -> None:
    candidates = PendingQueue(Strict())
    candidates.put(batch_of(3), now=0)
    candidates.placed(B, Reference(A, 0, 0, 2))
    assert candidates.count == 1
    assert _drained(candidates) == ["a#1/0/2+1"]


def test_what_comes_after_its_place_does_not_wait() -> None:
    candidates = PendingQueue(Strict())
    candidates.placed(B, Reference(A, 0, 0, 2))
    candidates.put(batch_of(2), now=0)
    assert not candidates


def test_what_has_a_place_behind_something_else_is_forgotten_in_its_turn() -> None:
    candidates = PendingQueue(Strict())
    candidates.put(batch_of(2, level=1), now=0)
    candidates.put(batch_of(2, level=9), now=0)
    candidates.placed(B, batch_of(1, level=1))
    assert [str(batch) for _, _, batch in candidates.leaving()] == ["a#1/9/0+2", "a#1/1/1+1"]
    assert str(candidates.take(2)) == "a#1/9/0+2"
    assert candidates.count == 1
    assert _drained(candidates) == ["a#1/1/1+1"]


def test_a_message_gets_one_place_and_in_its_turn() -> None:
    candidates = PendingQueue(Strict())
    candidates.placed(B, Reference(A, 0, 0, 2))
    with pytest.raises(PeerFault, match=r"b#1 orders a#1/0/1\+1, where number 2 of that level is next"):
        candidates.placed(B, Reference(A, 0, 1, 1))
    with pytest.raises(PeerFault, match="where number 2 of that level is next"):
        candidates.placed(B, Reference(A, 0, 3, 1))


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 30), st.integers(1, 7))
def test_all_that_is_no_longer_here_is_told(counts: list[int], ordered: int, cut: int) -> None:
    told: list[Reference] = []
    candidates = PendingQueue(FirstInFirstOut(), told.append)
    first = 0
    for count in counts:
        candidates.put(batch_of(count, first=first), now=0)
        first += count
    if ordered := min(ordered, first):
        candidates.placed(B, Reference(A, 0, 0, ordered))
    taken = []
    while candidates:
        taken.append(candidates.take(cut))
    assert [batch.first + index for batch in taken for index in range(batch.count)] == list(
        range(ordered, first)
    )
    assert [each.first + index for each in told for index in range(each.count)] == list(range(first))
