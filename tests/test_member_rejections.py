"""What a member rejects is counted by reason, and a member that sends it is evicted."""

import tracemalloc

import pytest
from msgspec import structs
from msgspec.msgpack import encode

from priocast.core.identity import NUMBER_MAX, STEP_MAX, ProcessId
from priocast.core.protocol import Packet
from priocast.links.frame import Frame
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import (
    ChangeOrder,
    ClientReply,
    FlushRequest,
    Heartbeat,
    Ordering,
    StabilityReport,
)
from support.stacks import Neighbourhood, Unobserved, epoch_of, founded

B, C = ProcessId("b"), ProcessId("c")
STRANGER = ProcessId("stranger")


NOT_UTF_8 = b"\x92\xa5\xff\xfe\xff\xfe\xff\x01"
NO_MEMBERS = encode(("install", ((2, (), ()), (), ("sequencer-ub", True, "none"), ()), (0, {}, ())))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x93\xa5other\x01\x02", b"\x92\xa9heartbeat\x90", NOT_UTF_8, NO_MEMBERS],
)
def test_a_datagram_that_cannot_be_read(body: bytes) -> None:
    group = founded("abc")
    group.receive(STRANGER, "a", Frame(0, 0, 0, 0, body))
    assert group.members["a"].rejections == {"ForeignFrame": 1}
    group.run(300)
    assert set(group.views().values()) == {"abc"}, "a process that is not a member cannot be evicted"
    group.receive(B, "a", Frame(0, 0, 0, 0, body))
    group.wait_view("ac")
    assert (
        group.applications["a"]
        .reasons[-1]
        .startswith("b was evicted (fault): b#1 sent a datagram that cannot")
    )


@pytest.mark.parametrize("body", [b"\xc1", b"\x93\xa5other\x01\x02", b"\x92\xa6submit\x90", NOT_UTF_8])
def test_a_packet_that_cannot_be_read(body: bytes) -> None:
    group = founded("abc")
    channel = epoch_of(group.members["a"]).channel
    group.receive(C, "a", Frame(channel, 1, 0, 0, body))
    assert group.members["a"].rejections == {"ForeignFrame": 1}
    group.wait_view("ab")
    assert (
        group.applications["b"].reasons[-1].startswith("c was evicted (fault): c#1 sent a packet that cannot")
    )


def test_a_packet_of_another_protocol() -> None:
    group = founded("ab")
    tick = b"\x91\xa4tick"
    group.receive(B, "a", Frame(epoch_of(group.members["a"]).channel, 1, 0, 0, tick))
    assert group.members["a"].rejections == {"ForeignFrame": 1}


def test_frames_of_a_process_that_is_not_in_the_view() -> None:
    group = founded("ab")
    channel = epoch_of(group.members["a"]).channel
    group.receive(STRANGER, "a", Frame(channel, 1, 0, 0, b"hello"))
    assert group.members["a"].rejections == {"PeerFault": 1}


def test_frames_of_another_view_are_ignored() -> None:
    group = founded("ab")
    group.receive(B, "a", Frame(12345, 1, 0, 0, b"hello"))
    assert group.members["a"].rejections == {}
    assert set(group.views().values()) == {"ab"}


def test_frames_of_an_earlier_incarnation() -> None:
    group = founded("ab")
    group.start("c", 7)
    group.wait_view("abc")
    channel = epoch_of(group.members["a"]).channel
    earlier = ProcessId("c", 6)
    group.receive(earlier, "a", Frame(channel, 1, 0, 0, b"hello"))
    group.receive(earlier, "a", frame_of(StabilityReport(epoch_of(group.members["c"]).view.id, (0, 0, 0))))
    assert group.members["a"].rejections == {"earlier incarnation": 2}
    group.run(300)
    assert set(group.views().values()) == {"abc"}


def test_an_acknowledgement_of_what_was_never_sent() -> None:
    group = founded("abc")
    channel = epoch_of(group.members["a"]).channel
    group.receive(B, "a", Frame(channel, 0, 10**6, 0))
    assert group.members["a"].rejections == {"ForeignFrame": 1}
    group.wait_view("ac")


def test_a_reply_that_is_for_a_client() -> None:
    group = founded("ab")
    group.receive(B, "a", frame_of(ClientReply(1, 0, 0, "")))
    assert group.members["a"].rejections == {"reply to a member": 1}


@pytest.mark.parametrize("received", [(1, 2), (1, 2, 3, 4), ()])
def test_stability_reports_of_another_size(received: tuple[int, ...]) -> None:
    group = founded("abc")
    view = epoch_of(group.members["a"]).view.id
    group.receive(B, "a", frame_of(StabilityReport(view, received)))
    assert group.members["a"].rejections == {"PeerFault": 1}
    group.wait_view("ac", of="ac")


class FaultyObserver(Unobserved):
    """Fails when a packet of b arrives, as a defect of our own would."""

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        if peer == B:
            raise RuntimeError("a defect")


def test_an_error_of_our_own_in_handling_what_a_peer_sent_evicts_the_peer() -> None:
    group = Neighbourhood("abc")
    member = group.start("a", observer=FaultyObserver())
    group.wait_view("abc")
    group.broadcast("b", "one")
    with pytest.raises(RuntimeError):
        group.run_until(lambda: member.faults)
    ((peer, error),) = member.faults
    assert (peer, str(error)) == (B, "a defect") and member.departed is None
    assert member.rejections == {"internal error": 1}
    member.faults.clear()
    group.wait_view("ac", of="ac")
    assert "b was evicted (fault): RuntimeError in handling" in group.applications["c"].reasons[-1]


def test_long_names_take_no_memory() -> None:
    group = founded("ab")
    view = epoch_of(group.members["a"]).view.id
    tracemalloc.start()
    for number in range(40):
        name = f"{number}".ljust(1_400_000, "x")
        said = Heartbeat(1, None, (), 0, (ProcessId(name),), ())
        group.receive(STRANGER, "a", frame_of(said), frame_of(FlushRequest(view, ProcessId(name), 1, 1)))
    del said, name
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert group.members["a"].rejections == {"ForeignFrame": 80} and kept < 1_000_000


@pytest.mark.parametrize(
    "ordering",
    [
        Ordering("auto", True, "none"),
        Ordering("time-parts/count-parts/sequencer-ub", True, "none"),
        Ordering("sequencer-ub", True, "always"),
        Ordering("sequencer-ub", True, "ageing:0ms"),
    ],
)
def test_a_change_to_an_order_that_does_not_exist(ordering: Ordering) -> None:
    group = founded("abc")
    view = epoch_of(group.members["a"]).view.id
    group.receive(B, "a", frame_of(ChangeOrder(view, ordering)))
    assert group.members["a"].rejections == {"PeerFault": 1}
    group.wait_view("ac", of="ac")


@pytest.mark.parametrize("number", [(1 << 64) - 1, NUMBER_MAX, STEP_MAX + 1000])
def test_a_round_far_ahead_does_not_prevent_the_next_view_change(number: int) -> None:
    group = founded("abc")
    view = epoch_of(group.members["a"]).view
    said = Heartbeat(1, view.id, view.members, number, (), (0, 0, 0))
    config = group.members["a"].membership._config_hash
    group.receive(B, "a", frame_of(structs.replace(said, config=config)))
    assert group.members["a"].rejections in ({"FarAhead": 1}, {"ForeignFrame": 1})
    group.wait_view("ac", of="ac")
    group.kill("c")
    group.wait_view("a", of="a")
