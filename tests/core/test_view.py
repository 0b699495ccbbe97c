"""Views: the coordinator, the id, and what is not a view."""

import msgspec
import pytest

from core.builders import A, B
from priocast.core.identity import ProcessId
from priocast.core.view import Part, View, ViewId


def test_the_first_member_coordinates() -> None:
    assert View(1, (B, A)).coordinator == B


def test_a_view_has_members() -> None:
    with pytest.raises(ValueError, match="has members"):
        View(1, ())


def test_two_incarnations_of_one_name_cannot_share_a_view() -> None:
    with pytest.raises(ValueError, match="are unique"):
        View(1, (ProcessId("a", 1), ProcessId("a", 2)))


@pytest.mark.parametrize("members", [(), (ProcessId("a", 1), ProcessId("a", 2))])
def test_what_is_not_a_view_cannot_be_decoded(members: tuple[ProcessId, ...]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode((1, members, ())), type=View)


def test_a_view_is_identified_by_its_number_and_its_coordinator() -> None:
    assert View(3, (B, A)).id == ViewId(3, B)
    assert str(ViewId(3, B)) == "3@b#1"
    assert ViewId(2, B) < ViewId(3, A) < ViewId(3, B)


def test_two_sides_of_a_partition_have_views_with_one_number_and_two_ids() -> None:
    assert View(2, (A,)).id != View(2, (B,)).id


def test_the_parts_of_a_view_survive_the_wire() -> None:
    view = View(3, (B, A), (Part(ViewId(2, B), (B,)), Part(None, (A,))))
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(view), type=View)
    assert received == view
    assert [part.view for part in received.parts] == [ViewId(2, B), None]
