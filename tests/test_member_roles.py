"""What a process may send to a member depends on its role."""

import pytest

from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL
from priocast.core.role import Role
from priocast.core.view import ViewId
from priocast.core.view_reason import ViewReason
from priocast.links.frame import Frame
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import (
    ClientReply,
    ClientRequest,
    EvictionNotice,
    FetchState,
    StabilityReport,
)
from support.stacks import epoch_of, founded

B = ProcessId("b")


@pytest.mark.parametrize("role", [Role.CLIENT, Role.OBSERVER])
def test_what_a_process_that_is_no_member_may_not_send(role: Role) -> None:
    """Even under a member's name and incarnation, it changes nothing and evicts nobody."""
    group = founded("abc")
    member = group.members["a"]
    assert member.view is not None and member.membership.decided is not None
    channel = epoch_of(member).channel
    forged = [
        frame_of(member.membership.decided),
        frame_of(EvictionNotice(member.me, ViewId(99, B), ViewReason())),
        frame_of(FetchState(member.view.id, 0, b"", 0, 1)),
        frame_of(StabilityReport(member.view.id, (1, 2, 3))),
        frame_of(ClientReply(1, 7, 0, "")),
        Frame(channel, 1, 0, 0, b"\xc1"),
        Frame(0, 0, 0, 0, b"\xc1"),
    ]
    member.receive(B, forged, group.now, role)
    [(reason, count)] = member.rejections.items()
    assert (reason, count) == (f"not for {'a client' if role is Role.CLIENT else 'an observer'} to send", 7)
    assert member.departed is None
    assert not member.snapshot_wanted
    group.run(500)
    assert set(group.views().values()) == {"abc"}


def test_a_request_that_cannot_be_read_evicts_no_member_of_the_clients_name() -> None:
    group = founded("abc")
    member = group.members["a"]
    unreadable = Frame(0, 0, 0, 0, b"\x92\xaeclient-request\x01")
    member.receive(B, [unreadable], group.now, Role.CLIENT)
    assert member.rejections == {"ForeignFrame": 1}
    group.run(500)
    assert set(group.views().values()) == {"abc"}


def test_clients_get_no_heartbeats_and_are_not_met() -> None:
    group = founded("ab")
    member = group.members["a"]
    group.letters.clear()
    member.reachable("shop", group.now, Role.CLIENT)
    member.reachable("watcher", group.now, Role.OBSERVER)
    member.tick(group.now)
    receivers = {name for name, _ in member.frames(group.now)}
    assert "watcher" in receivers
    assert "shop" not in receivers
    member.receive(ProcessId("shop"), [frame_of(ClientRequest(1, 7, TO_ALL, b"x"))], group.now, Role.CLIENT)
    assert "shop" not in member.membership.neighbours.incarnations
    group.wait_payloads("ab", "x")
