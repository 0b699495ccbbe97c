"""The state goes to members that are joining, and a snapshot is not taken as often as somebody asks."""

from contextlib import suppress

import msgspec
import pytest

from membership.builders import MILLISECOND, A, B, C, D
from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.view import Part, View, ViewId
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.outputs import SendControl
from priocast.membership.packets import FetchState, StateChunk
from priocast.membership.state_requests import SNAPSHOTS_PER_SECOND
from priocast.membership.state_transfer import StateTransfer

SECOND = 1000 * MILLISECOND
FOUNDED = View(1, (A, B), (Part(None, (A, B)),))
JOINED = View(2, (A, B, C), (Part(FOUNDED.id, (A, B)), Part(None, (C,))))
LATER = View(3, (A, B, C), (Part(JOINED.id, (A, B, C)),))


def fetch(view: View = JOINED, position: int = 10, offset: int = 0, chunks: int = 1) -> FetchState:
    return FetchState(view.id, position, b"", offset, chunks)


def donor(*views: View, state: bool = True) -> StateTransfer:
    """A after these views, the second of which begins at position 10."""
    transfer = StateTransfer(A, MembershipOptions(founders=2, state=state))
    for number, view in enumerate(views):
        assert transfer.on_view(view, number == 0, 10 * number, 0) == []
    return transfer


def reason(transfer: StateTransfer, process: ProcessId, request: FetchState, now: int = 0) -> str:
    with pytest.raises(Rejected) as rejected:
        transfer.on_fetch(process, request, now)
    assert transfer.donor.wanted is None
    return rejected.value.reason


def test_a_member_that_joins_gets_the_state() -> None:
    transfer = donor(FOUNDED, JOINED)
    assert transfer.on_fetch(C, fetch(), 0) == []
    assert transfer.donor.wanted == 10
    [sent] = transfer.on_snapshot(12, b"state")
    assert sent == SendControl(C, transfer.donor._chunks(C, transfer.donor._snapshots[b""], fetch())[0])
    assert isinstance(sent.control, StateChunk)


def test_members_that_have_a_part_of_the_state_get_the_rest() -> None:
    both = View(2, (A, B, C, D), (Part(FOUNDED.id, (A, B)), Part(None, (C, D))))
    transfer = donor(FOUNDED, both)
    with_base = msgspec.structs.replace(fetch(both), base=b"a half")
    for process, request in ((C, with_base), (D, fetch(both))):
        assert transfer.on_fetch(process, request, 0) == []
    assert transfer.donor.bases == [b"a half", b""]
    assert [each.to for each in transfer.on_snapshot(12, b"other half", b"a half")] == [C]
    assert transfer.donor.wanted == 10, "the other one waits"
    assert [each.to for each in transfer.on_snapshot(12, b"whole state")] == [D]
    assert transfer.donor.wanted is None and transfer.donor.bases == []
    [chunk] = transfer.on_fetch(C, with_base, 1)
    assert isinstance(chunk, SendControl) and chunk.control.data == b"other half"


def test_a_new_member_says_what_it_has_of_the_state() -> None:
    transfer = StateTransfer(C, MembershipOptions(founders=2, state=True))
    transfer.base = b"a half"
    [asked] = transfer.on_view(JOINED, True, 10, 0)
    assert isinstance(asked, SendControl) and isinstance(asked.control, FetchState)
    assert (asked.to, asked.control.base) == (A, b"a half")


def test_nobody_else_gets_it() -> None:
    for transfer in (donor(FOUNDED), donor(FOUNDED, JOINED), donor(FOUNDED, JOINED, LATER)):
        for process in (B, ProcessId("stranger"), ProcessId("c", 2)):
            assert reason(transfer, process, fetch(FOUNDED)) == "state for a process that is not joining"
        assert not transfer.is_asked(1), "so this member may leave"
    assert (
        reason(donor(FOUNDED, JOINED, state=False), C, fetch()) == "state for a process that is not joining"
    )


def test_it_may_ask_in_later_views_until_it_has_left() -> None:
    transfer = donor(FOUNDED, JOINED, LATER)
    transfer.on_fetch(C, fetch(), 0)
    transfer.on_view(View(4, (A, B), (Part(LATER.id, (A, B)),)), False, 30, 0)
    transfer.donor.wanted = None
    assert reason(transfer, C, fetch()) == "state for a process that is not joining"


def test_it_cannot_demand_one_snapshot_after_another() -> None:
    transfer = donor(FOUNDED, JOINED)
    for number in range(200):
        if number:
            assert reason(transfer, C, fetch(position=10 + number)) == "state at another position"
        transfer.on_fetch(C, fetch(), 10 * number * MILLISECOND)
        if transfer.donor.wanted is not None:
            assert number == 0, "one snapshot is enough for all requests"
            transfer.on_snapshot(10, b"state")


def test_snapshots_for_many_that_join_are_limited_in_rate() -> None:
    joiners = [ProcessId(f"j{number}") for number in range(10)]
    transfer, before, taken = donor(FOUNDED), FOUNDED, 0
    for number, joiner in enumerate(joiners, 1):
        view = View(
            before.number + 1,
            (*before.members, joiner),
            (Part(before.id, before.members), Part(None, (joiner,))),
        )
        transfer.on_view(view, False, 10 * number, 0)
        before = view
        with suppress(Rejected):
            transfer.on_fetch(joiner, fetch(view, 10 * number), number * MILLISECOND)
            taken += 1
            transfer.on_snapshot(10 * number, b"state")
    assert reason(transfer, joiners[-1], fetch(before, 100), 20 * MILLISECOND) == "state requested too often"
    assert taken == SNAPSHOTS_PER_SECOND
    transfer.on_fetch(joiners[-1], fetch(before, 100), SECOND + MILLISECOND)
    assert transfer.donor.wanted == 100, "it asks again, and gets it a second later"


def test_a_request_that_comes_before_the_view_is_answered_with_it() -> None:
    transfer = donor(FOUNDED)
    assert transfer.on_fetch(C, fetch(), 0) == []
    assert transfer.on_fetch(ProcessId("stranger"), fetch(), 0) == []
    assert transfer.donor.wanted is None
    assert transfer.on_view(JOINED, False, 10, 0) == []
    assert transfer.donor.wanted == 10
    assert [each.to for each in transfer.on_snapshot(10, b"state")] == [C]


def test_requests_from_before_a_view_are_bounded() -> None:
    transfer = donor(FOUNDED)
    for number in range(2 * MEMBERS_MAX):
        transfer.on_fetch(ProcessId(f"p{number}"), fetch(), 0)
    assert len(transfer._requests._early) == MEMBERS_MAX


def test_a_member_that_is_new_itself_gives_its_state_to_others_that_may_wait() -> None:
    transfer = StateTransfer(C, MembershipOptions(founders=2, state=True))
    transfer.on_view(JOINED, True, 10, 0)
    transfer.on_fetch(B, FetchState(ViewId(1, A), 5, b"", 0, 1), 0)
    assert transfer.donor.wanted == 5


def test_who_has_got_all_is_not_joining_any_more() -> None:
    transfer = donor(FOUNDED, JOINED)
    transfer.on_fetch(C, fetch(), 0)
    transfer.on_snapshot(10, b"state")
    transfer.on_tick(3600 * SECOND)
    assert reason(transfer, C, fetch(), 3600 * SECOND) == "state for a process that is not joining"
