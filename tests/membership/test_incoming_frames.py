"""Which part of a member a frame is for."""

import pytest

from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import Frame
from support.stacks import epoch_of, founded


def test_a_frame_of_another_view_is_dropped() -> None:
    group = founded("ab")
    member = group.members["b"]
    channel = epoch_of(member).channel
    group.receive(group.members["a"].me, "b", Frame(channel + 2, 1, 0, 0, b"not a packet"))
    assert member.rejections == {} and group.views() == {"a": "ab", "b": "ab"}


def test_a_frame_of_this_view_goes_to_its_link() -> None:
    group = founded("ab")
    member, peer = group.members["b"], group.members["a"].me
    channel = epoch_of(member).channel
    group.receive(peer, "b", Frame(channel, 1, 0, 0, b"not a packet"))
    assert member.rejections == {"ForeignFrame": 1}
    assert peer in member.membership.trigger.evictions


def test_a_frame_of_an_earlier_incarnation_is_rejected() -> None:
    group = founded("ab")
    member = group.members["b"]
    frame = Frame(epoch_of(member).channel, 1, 0, 0, b"late")
    group.receive(ProcessId("a", 0), "b", frame)
    assert sum(member.rejections.values()) == 1
    assert not member.membership.trigger.evictions


@pytest.mark.parametrize(("role", "who"), [(Role.CLIENT, "a client"), (Role.OBSERVER, "an observer")])
def test_who_is_not_a_member_sends_no_frames_of_a_view(role: Role, who: str) -> None:
    group = founded("ab")
    member = group.members["b"]
    frames = [Frame(epoch_of(member).channel, number, 0, 0, b"x") for number in (1, 2)]
    member.receive(ProcessId("stranger"), frames, group.now, role)
    assert member.rejections == {f"not for {who} to send": 2}
