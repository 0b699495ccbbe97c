"""What follows when something that a peer sent is wrong, or a step of this member fails."""

import pytest

from priocast.core.errors import PeerFault, Rejected
from priocast.core.identity import ProcessId
from priocast.core.protocol import Packet
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.fault_handler import FaultHandler
from support.stacks import Neighbourhood, Unobserved, epoch_of, founded

B, C = ProcessId("b"), ProcessId("c")


class FailingObserver(Unobserved):
    """Fails at this member's own packets, once it is `broken`, as a defect in a step of our own would."""

    broken = False

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        if self.broken and peer.name == "a":
            raise KeyError("a defect")


def broken_group() -> tuple[Neighbourhood, Member]:
    """A group of three, in which a step of a's own will fail."""
    observer = FailingObserver()
    group = Neighbourhood("abc")
    member = group.start("a", observer=observer)
    group.wait_view("abc")
    observer.broken = True
    return group, member


def test_an_error_without_any_fault_of_a_peer_stops_the_member() -> None:
    group, member = broken_group()
    group.broadcast("a", "one")
    with pytest.raises(KeyError, match="a defect"):
        member.turn(group.now)
    assert member.departed is None


def test_an_error_after_a_fault_of_a_peer_evicts_this_incarnation() -> None:
    group, member = broken_group()
    group.broadcast("a", "one")
    member.act(group.now)
    group.receive(C, "a", Frame(epoch_of(member).channel, 1, 0, 0, b"nonsense"))
    member.turn(group.now)
    assert member.departed is not None and not member.departed.voluntary
    assert str(member.departed).startswith("evicted: a was evicted (fault): KeyError")
    assert member.rejections == {"ForeignFrame": 1, "evicted itself": 1}
    [(peer, error)] = member.faults
    assert peer == member.me and isinstance(error, KeyError)
    assert member.unordered_messages().batches, "the next incarnation submits its messages again"


def handler_of(group: Neighbourhood) -> FaultHandler:
    return group.members["a"]._fault_handler


def test_only_the_first_member_at_fault_in_a_view_is_evicted() -> None:
    group = founded("abc")
    handler, trigger = handler_of(group), group.members["a"].membership.trigger
    handler.on_input(C, PeerFault("nonsense"), group.now)
    handler.on_input(B, KeyError("because of c"), group.now)
    assert [each.member for each in trigger.evictions.values()] == ["c"] and not handler.faults
    assert handler.rejections == {"PeerFault": 1, "internal error": 1}


def test_what_a_process_may_not_have_is_counted_by_its_reason() -> None:
    group = founded("abc")
    handler = handler_of(group)
    handler.on_input(B, Rejected("client quota"), group.now)
    assert handler.rejections == {"client quota": 1} and not handler.is_tainted


def test_a_view_without_a_fault_is_not_tainted_by_the_one_before() -> None:
    group = founded("abc")
    group.receive(C, "a", Frame(epoch_of(group.members["a"]).channel, 1, 0, 0, b"nonsense"))
    assert handler_of(group).is_tainted
    group.wait_view("ab", of="ab")
    assert not handler_of(group).is_tainted
