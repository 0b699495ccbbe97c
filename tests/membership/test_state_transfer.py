"""State transfer: chunk by chunk, from one donor or the next, complete or not at all."""

from typing import Literal

import msgspec
import pytest

from membership.builders import MILLISECOND, A, B, C, D
from priocast.core.errors import ForeignFrame, PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import Part, View, ViewId
from priocast.membership.datagrams import frame_of, read
from priocast.membership.options import MembershipOptions
from priocast.membership.outputs import SendControl
from priocast.membership.packets import STATE_BYTES_MAX, STATE_CHUNK_BYTES, FetchState, StateChunk
from priocast.membership.snapshot import Snapshot, digest_of
from priocast.membership.state_transfer import Donor, Restoration, StateTransfer

VIEW = ViewId(2, A)
FAILURE_NS = 100 * MILLISECOND
STATE = bytes(range(256)) * 400
assert len(STATE) > 4 * STATE_CHUNK_BYTES


def restoration(*donors: ProcessId, position: int = 10) -> Restoration:
    return Restoration(VIEW, list(donors or (A, B)), position, FAILURE_NS, 0)


def donor_with(state: bytes, position: int = 10) -> Donor:
    donor = Donor(4 * FAILURE_NS)
    donor.on_fetch(C, FetchState(VIEW, position, b"", 0, 1), 0)
    donor.offer(position, state)
    return donor


def transfer(wanting: Restoration, donors: dict[ProcessId, Donor], now: int = 0) -> Snapshot:
    """Let it ask until the state is complete."""
    for _ in range(1_000):
        now += MILLISECOND
        donor = wanting.donor
        assert donor is not None
        for chunk in donors[donor].on_fetch(C, wanting.request(now), now):
            snapshot = wanting.on_chunk(donor, chunk, now)
            if snapshot is not None:
                return snapshot
        wanting.wants_more(now)
    raise AssertionError("it never came")


@pytest.mark.parametrize("size", [0, 1, STATE_CHUNK_BYTES, STATE_CHUNK_BYTES + 1, len(STATE)])
def test_a_state_of_any_size_arrives_complete(size: int) -> None:
    snapshot = transfer(restoration(), {A: donor_with(STATE[:size])})
    assert snapshot == Snapshot(10, digest_of(STATE[:size]), STATE[:size])


def test_a_donor_asks_its_application_for_a_later_snapshot() -> None:
    donor = Donor(4 * FAILURE_NS)
    fetch = FetchState(VIEW, 10, b"", 0, 1)
    assert donor.on_fetch(C, fetch, 0) == [] and donor.wanted == 10
    answers = donor.offer(12, STATE)
    assert [process for process, _ in answers] == [C], "who waited is answered at once"
    assert donor.wanted is None
    assert donor.on_fetch(C, fetch, 0)[0].position == 12, "a later state is as good"
    assert donor.on_fetch(C, msgspec.structs.replace(fetch, position=13), 0) == [] and donor.wanted == 13


def test_a_snapshot_that_nobody_asks_for_is_forgotten() -> None:
    donor = donor_with(STATE)
    donor.tick(4 * FAILURE_NS)
    assert donor.on_fetch(C, FetchState(VIEW, 10, b"", 0, 1), 4 * FAILURE_NS)
    donor.tick(8 * FAILURE_NS + 1)
    assert donor.on_fetch(C, FetchState(VIEW, 10, b"", 0, 1), 9 * FAILURE_NS) == []


def test_it_asks_for_more_at_once_while_chunks_come_quickly() -> None:
    wanting, donor = restoration(), donor_with(STATE)
    asked = []
    for now in range(0, 5 * MILLISECOND, MILLISECOND):
        fetch = wanting.request(now)
        asked.append(fetch.chunks)
        for chunk in donor.on_fetch(C, fetch, now):
            wanting.on_chunk(A, chunk, now)
        wanting.wants_more(now)
    assert asked[:3] == [1, 2, 4]


def test_it_asks_again_only_when_nothing_comes_and_then_another_donor() -> None:
    wanting = restoration()
    wanting.request(0)
    assert not wanting.tick(FAILURE_NS // 2 - 1) and wanting.tick(FAILURE_NS // 2)
    wanting.request(FAILURE_NS // 2)
    assert wanting.donor == A
    assert wanting.tick(4 * FAILURE_NS) and wanting.donor == B


def test_chunks_are_accepted_in_order_from_the_donor_that_was_asked() -> None:
    wanting, donor = restoration(), donor_with(STATE)
    chunks = donor.on_fetch(C, FetchState(VIEW, 10, b"", 0, 4), 0)
    assert wanting.on_chunk(B, chunks[0], 0) is None and wanting.progress == 0, "that is not the donor"
    assert wanting.on_chunk(A, chunks[1], 0) is None and wanting.progress == 0, "that is not the first chunk"
    wanting.on_chunk(A, chunks[0], 0)
    wanting.on_chunk(A, chunks[0], 0)
    assert wanting.progress == STATE_CHUNK_BYTES / len(STATE), "a chunk that comes twice counts once"


def test_a_state_from_before_the_join_is_not_accepted() -> None:
    wanting = restoration(position=10)
    chunk = StateChunk(9, digest_of(b"old"), 3, 0, b"old")
    assert wanting.on_chunk(A, chunk, 0) is None


def test_an_interrupted_transfer_continues_with_another_donor_of_the_same_state() -> None:
    wanting = restoration()
    for chunk in donor_with(STATE).on_fetch(C, wanting.request(0), 0):
        wanting.on_chunk(A, chunk, 0)
    begun = wanting.progress
    assert 0 < begun < 1
    wanting.tick(4 * FAILURE_NS)
    assert wanting.donor == B and wanting.progress == begun
    assert wanting.request(0).offset == STATE_CHUNK_BYTES, "what is here is not asked for again"
    assert transfer(wanting, {B: donor_with(STATE)}).data == STATE


def test_a_transfer_of_another_state_starts_again() -> None:
    wanting = restoration()
    for chunk in donor_with(STATE).on_fetch(C, wanting.request(0), 0):
        wanting.on_chunk(A, chunk, 0)
    wanting.replace_donors([B], 0)
    later = STATE[::-1]
    assert transfer(wanting, {B: donor_with(later, 15)}) == Snapshot(15, digest_of(later), later)


def test_a_damaged_state_is_rejected_and_another_donor_asked() -> None:
    wanting, donor = restoration(), donor_with(STATE[:100])
    (chunk,) = donor.on_fetch(C, wanting.request(0), 0)
    damaged = msgspec.structs.replace(chunk, data=chunk.data[:-1] + b"!")
    with pytest.raises(PeerFault, match="damaged: another member is asked"):
        wanting.on_chunk(A, damaged, 0)
    assert wanting.donor == B and wanting.progress == 0
    assert transfer(wanting, {B: donor}).data == STATE[:100]


def test_a_state_beyond_the_limit_is_rejected() -> None:
    chunk = StateChunk(10, digest_of(b""), STATE_BYTES_MAX + 1, 0, b"")
    with pytest.raises(ForeignFrame, match="cannot be read"):
        read(A, frame_of(chunk))


def test_when_the_view_changes_the_donor_is_kept_if_it_is_still_there() -> None:
    wanting = restoration(A, B)
    wanting.replace_donors([C, A], 0)
    assert wanting.donor == A
    wanting.replace_donors([B, C], 0)
    assert wanting.donor == B


def test_without_a_donor_it_waits_until_there_is_one() -> None:
    wanting = restoration()
    wanting.request(0)
    wanting.replace_donors([], 0)
    wanting.tick(20 * FAILURE_NS)
    assert wanting.donor is None
    wanting.replace_donors([B], 20 * FAILURE_NS)
    assert transfer(wanting, {B: donor_with(STATE)}, 20 * FAILURE_NS).data == STATE


def waiting_member(policy: Literal["primary", "partitionable"]) -> StateTransfer:
    """C, which has joined A and B and waits for the state."""
    waiting = StateTransfer(C, MembershipOptions(founders=2, policy=policy, state=True))
    joined = View(2, (A, B, C), (Part(ViewId(1, A), (A, B)), Part(None, (C,))))
    (request,) = waiting.on_view(joined, is_new=True, position=10, now=0)
    assert isinstance(request, SendControl) and request.to == A
    return waiting


def next_view(waiting: StateTransfer, *parts: Part) -> Restoration:
    """Install a view of these parts; return what it waits for now."""
    members = tuple(member for part in parts for member in part.members)
    waiting.on_view(View(9, members, parts), is_new=False, position=20, now=0)
    assert waiting.restoration is not None
    return waiting.restoration


def test_a_new_member_of_a_partitionable_group_can_lose_all_its_donors() -> None:
    waiting = waiting_member("partitionable")
    assert next_view(waiting, Part(VIEW, (B, C)), Part(None, (D,))).donors == [B]
    assert not waiting.has_lost_donors
    assert next_view(waiting, Part(VIEW, (C, D))).donors == [], "d joined after it, and may wait as well"
    assert waiting.has_lost_donors and waiting.on_tick(20 * FAILURE_NS) == []


def test_members_of_another_part_are_no_donors() -> None:
    waiting = waiting_member("partitionable")
    assert next_view(waiting, Part(ViewId(3, A), (A, D)), Part(VIEW, (C,))).donors == []
    assert waiting.has_lost_donors, "their state has nothing of what its part has ordered"


def test_a_new_member_of_a_primary_group_asks_whoever_is_left_and_does_not_give_up() -> None:
    waiting = waiting_member("primary")
    assert next_view(waiting, Part(VIEW, (C, D))).donors == [D]
    assert next_view(waiting, Part(VIEW, (C,))).donors == [] and not waiting.has_lost_donors
