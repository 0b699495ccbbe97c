"""The message store, and the validation of what senders submit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of
from priocast.core.errors import PeerFault
from priocast.core.message import Reference, reference_to
from priocast.core.view import View
from priocast.protocols.flow.message_store import MessageStore
from priocast.protocols.flow.submission_validator import SubmissionValidator


def test_messages_are_found_by_reference_with_the_id_of_the_last_packet() -> None:
    store = MessageStore()
    assert not store.has(Reference(A, 7, 0, 1))
    store.put(batch_of(2, level=7), (0, 1))
    store.put(batch_of(3, level=7, first=2), (0, 4))
    assert store.has(Reference(A, 7, 0, 5)) and not store.has(Reference(A, 7, 0, 6))
    assert not store.has(Reference(A, 8, 0, 1)) and not store.has(Reference(B, 7, 0, 1))
    _, packet_id = store.take(Reference(A, 7, 0, 1))
    assert packet_id == (0, 1)
    _, packet_id = store.take(Reference(A, 7, 1, 2))
    assert packet_id == (0, 4), "the second message of this reference arrived with the later packet"
    _, packet_id = store.take(Reference(A, 7, 3, 2))
    assert packet_id == (0, 4)


def test_short_batches_are_taken_as_one_and_long_ones_as_they_came() -> None:
    """A long one is not worth being decoded and encoded again."""
    store = MessageStore()
    batches = [batch_of(3, first=0), batch_of(4, first=3), batch_of(64, first=7), batch_of(100, first=71)]
    for number, batch in enumerate(batches):
        store.put(batch, (0, number))
    taken, packet_id = store.take(Reference(A, 0, 0, 171))
    assert [batch.count for batch in taken] == [7, 64, 100]
    assert [taken[1], taken[2], packet_id] == [batches[2], batches[3], (0, 3)]


@given(st.lists(st.integers(1, 5), min_size=1), st.data())
def test_messages_do_not_change_however_they_arrive_and_are_taken(
    counts: list[int], data: st.DataObject
) -> None:
    store = MessageStore()
    first, came = 10, []
    for number, count in enumerate(counts):
        batch = batch_of(count, level=3, first=first)
        assert reference_to(batch) == Reference(A, 3, first, count)
        store.put(batch, (0, number))
        came += batch.payloads()
        first += count
    taken: list[bytes] = []
    while len(taken) < len(came):
        count = data.draw(st.integers(1, len(came) - len(taken)))
        batches, _ = store.take(Reference(A, 3, 10 + len(taken), count))
        taken += [payload for batch in batches for payload in batch.payloads()]
    assert taken == came


def test_a_sender_sends_its_own_messages_in_order_and_within_its_credit() -> None:
    validator = SubmissionValidator(View(1, (A, B)), count_max=4)
    validator.check(A, batch_of(3, first=5))
    with pytest.raises(PeerFault, match="number 8 of that level is next"):
        validator.check(A, batch_of(1, first=9))
    with pytest.raises(PeerFault, match="submits a message of"):
        validator.check(B, batch_of(1, first=8))
    validator.ordered(Reference(A, 0, 5, 2))
    validator.check(A, batch_of(3, first=8))
    with pytest.raises(PeerFault, match="more than its credit of 4 messages"):
        validator.check(A, batch_of(1, first=11))
