"""The UDP handshake without sockets or clocks: which peers are trusted, and for how long."""

import pytest

from priocast.core.errors import Rejected
from priocast.network.rejections import RejectionLog
from priocast.network.udp_handshake import PEERS_MAX, GreetingOutcome, PeerTable, ReplyPolicy, SocketAddress
from priocast.network.udp_security import DatagramKind, read_header

KEY = bytes(range(32))
HERE: SocketAddress = ("127.0.0.1", 1)
THERE: SocketAddress = ("127.0.0.1", 2)


def process(name: str, incarnation: int = 1, key: bytes = KEY) -> PeerTable:
    known = PeerTable("g", key, name, incarnation, RejectionLog(name))
    known.due(0.0)
    return known


def hear(
    listener: PeerTable, datagram: bytes, now: float = 0.0, source: SocketAddress = HERE
) -> GreetingOutcome:
    return listener.on_greeting(read_header(memoryview(datagram)), source, now)


def meet(one: PeerTable, other: PeerTable, now: float = 0.0) -> list[bytes]:
    """Exchange greetings until neither side replies; return all of them, in order."""
    exchanged = [one.greeting()]
    listeners = [other, one]
    while True:
        answer = hear(listeners[0], exchanged[-1], now).reply
        if answer is None:
            return exchanged
        exchanged.append(answer)
        listeners.reverse()


def data(sender: PeerTable) -> bytes:
    return sender.sealer.seal(DatagramKind.FRAMES, b"data")


def take(receiver: PeerTable, datagram: bytes, now: float = 0.0) -> bytes:
    sealed = read_header(memoryview(datagram))
    return receiver.find(sealed).open(sealed, now)


def rejection_of(receiver: PeerTable, datagram: bytes) -> str:
    with pytest.raises(Rejected) as error:
        if read_header(memoryview(datagram)).kind is DatagramKind.GREETING:
            hear(receiver, datagram)
        else:
            take(receiver, datagram)
    return error.value.reason


def test_after_four_datagrams_both_sides_trust_each_other() -> None:
    alice, bob = process("alice"), process("bob")
    assert len(meet(alice, bob)) == 4
    assert alice.peers["bob"].confirmed
    assert bob.peers["alice"].confirmed
    assert take(bob, data(alice)) == take(alice, data(bob)) == b"data"


def test_each_side_reports_once_that_the_other_is_reachable() -> None:
    alice, bob = process("alice"), process("bob")
    heard = [hear(bob, alice.greeting())]
    for listener in (alice, bob, alice):
        answer = heard[-1].reply
        assert answer is not None
        heard.append(hear(listener, answer))
    assert [each.reached.name if each.reached else "" for each in heard] == ["", "", "alice", "bob"]
    assert heard[-1].reply is None


def test_any_datagram_of_the_handshake_may_be_lost() -> None:
    for lost in range(4):
        alice, bob = process("alice"), process("bob")
        listeners, datagram = [bob, alice], alice.greeting()
        for _ in range(lost):
            answer = hear(listeners[0], datagram).reply
            assert answer is not None
            datagram = answer
            listeners.reverse()
        for now in (0.2, 1.5):
            for one, other in ((alice, bob), (bob, alice)):
                for greeting, _ in one.due(now):
                    answer = hear(other, greeting, now).reply
                    assert answer is None or hear(one, answer, now)
        if not alice.peers:
            meet(alice, bob)
        assert alice.peers["bob"].confirmed
        assert bob.peers["alice"].confirmed


def test_only_new_peers_reply_to_a_multicast_greeting() -> None:
    alice, bob, carol = process("alice"), process("bob"), process("carol")
    meet(alice, bob)
    to_all = alice.greeting(ReplyPolicy.IF_NEW)
    assert hear(bob, to_all).reply is None
    assert hear(carol, to_all).reply is not None


def test_no_state_is_kept_for_a_process_without_an_echo() -> None:
    bob = process("bob")
    for number in range(50):
        assert hear(bob, process(f"stranger{number}").greeting()).reply is not None
    assert not bob.peers


def test_data_of_an_unknown_process_is_rejected() -> None:
    assert rejection_of(process("bob"), data(process("alice"))) == "sender did not introduce itself"


def test_a_replayed_handshake_fails_with_a_restarted_process() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice)]
    restarted = process("bob", 2)
    assert hear(restarted, recorded[0]).reached is None
    assert hear(restarted, recorded[2]).reached is None
    assert restarted._rejection_log.counts == {"answer to another challenge": 1}
    assert rejection_of(restarted, recorded[4]) == "sender did not introduce itself"


def test_a_replayed_handshake_fails_with_the_same_process() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice)]
    take(bob, recorded[4])
    for datagram in (recorded[0], recorded[2], recorded[4]):
        assert rejection_of(bob, datagram) == "replayed datagram"


def test_only_datagrams_sealed_after_the_echo_are_accepted() -> None:
    alice, bob = process("alice"), process("bob")
    before = data(alice)
    meet(alice, bob)
    assert rejection_of(bob, before) == "replayed datagram"


def test_an_echo_may_be_late_but_not_after_two_minutes() -> None:
    for later, believed in ((70.0, True), (130.0, False)):
        alice, bob = process("alice"), process("bob")
        answer = hear(alice, bob.greeting()).reply
        assert answer is not None
        for now in range(0, int(later) + 1, 10):
            bob.due(float(now))
        hear(bob, answer, later)
        assert bool(bob.peers) == believed


@pytest.mark.parametrize("incarnation", [1, 2])
def test_a_new_incarnation_replaces_the_former(incarnation: int) -> None:
    alice, bob, again = process("alice"), process("bob"), process("alice", incarnation)
    recorded = [*meet(alice, bob), data(alice)]
    meet(again, bob)
    assert take(bob, data(again)) == b"data"
    assert bob.peers["alice"].session == again.own_session
    if incarnation > 1:
        assert rejection_of(bob, recorded[4]) == rejection_of(bob, recorded[2]) == "old incarnation"
    else:
        assert rejection_of(bob, recorded[4]) == "sender did not introduce itself"
        assert hear(bob, recorded[2]).reached is None
    assert bob.peers["alice"].session == again.own_session


def test_a_lower_incarnation_is_rejected_even_if_it_is_alive() -> None:
    alice, bob, old = process("alice", 2), process("bob"), process("alice", 1)
    meet(alice, bob)
    assert rejection_of(bob, old.greeting()) == "old incarnation"
    assert rejection_of(bob, data(old)) == "old incarnation"


def test_greetings_with_our_name_or_another_name_than_the_header_are_rejected() -> None:
    bob = process("bob")
    assert rejection_of(bob, process("bob").greeting()) == "a peer with our own name"
    liar = process("alice")
    liar.name = "carol"
    assert rejection_of(bob, liar.greeting()) == "frame of another sender"
    assert rejection_of(bob, liar.sealer.seal(DatagramKind.GREETING, b"\xc1")) == "malformed content"


def test_greetings_under_another_key_are_rejected() -> None:
    assert rejection_of(process("bob"), process("alice", key=bytes(32)).greeting()) == "not authentic"


def test_a_silent_peer_is_greeted_and_finally_forgotten() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    assert bob.due(0.5) == []
    greetings = [now / 10 for now in range(10, 100) if bob.due(now / 10)]
    assert greetings[0] == 1.0
    assert 10 < len(greetings) < 20, "quickly at first, then once a second"
    assert "alice" in bob.peers
    take(bob, data(alice), 10.0)
    assert bob.due(10.5) == []
    assert bob.due(12.0)[0][1] == HERE
    bob.due(131.0)
    assert not bob.peers
    assert rejection_of(bob, data(alice)) == "sender did not introduce itself"


def test_a_peer_that_moved_is_answered_at_its_new_address() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    assert bob.knows(HERE)
    [(greeting, _)] = alice.due(5.0)
    hear(bob, greeting, 5.0, THERE)
    assert bob.knows(THERE)
    assert not bob.knows(HERE)


def test_the_number_of_peers_is_bounded_and_the_most_silent_is_dropped() -> None:
    bob = process("bob")
    for number in range(PEERS_MAX + 3):
        meet(process(f"p{number}"), bob, now=float(number) / 100)
    assert len(bob.peers) == len(bob._sessions) == PEERS_MAX
    assert "p2" not in bob.peers
    assert "p3" in bob.peers
    assert bob._rejection_log.counts == {"too many peers": 3}
