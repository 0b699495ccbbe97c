"""The UDP handshake without sockets or clocks: which peers are trusted, and for how long."""

import pytest

from priocast.core.errors import Rejected
from priocast.core.role import Role
from priocast.network.rejections import RejectionLog
from priocast.network.udp_handshake import PEERS_MAX, GreetingOutcome, PeerTable
from priocast.network.udp_peer import SocketAddress
from priocast.network.udp_security import DatagramKind, read_header

KEY = bytes(range(32))
HERE: SocketAddress = ("127.0.0.1", 1)
THERE: SocketAddress = ("127.0.0.1", 2)


def process(name: str, incarnation: int = 1, key: bytes = KEY) -> PeerTable:
    known = PeerTable("g", [key], name, incarnation, RejectionLog(name))
    known.due(0.0)
    return known


def hear(
    listener: PeerTable, datagram: bytes, now: float = 0.0, source: SocketAddress = HERE
) -> GreetingOutcome:
    return listener.on_greeting(read_header(memoryview(datagram)), source, now)


def meet(one: PeerTable, other: PeerTable, now: float = 0.0) -> list[bytes]:
    """Exchange greetings until neither side replies; return all of them, in order."""
    exchanged = [one.call(HERE)]
    listeners = [other, one]
    while True:
        answer = hear(listeners[0], exchanged[-1], now).reply
        if answer is None:
            return exchanged
        exchanged.append(answer)
        listeners.reverse()


def data(sender: PeerTable, receiver: PeerTable) -> bytes:
    return sender.sealer.seal(DatagramKind.FRAMES, b"data", receiver.own_session)


def take(receiver: PeerTable, datagram: bytes, now: float = 0.0) -> bytes:
    sealed = read_header(memoryview(datagram))
    peer = receiver.find(sealed)
    content = peer.open(sealed, receiver.own_session)
    peer.on_heard(sealed.counter, HERE, now)
    return content


def rejection_of(receiver: PeerTable, datagram: bytes) -> str:
    with pytest.raises(Rejected) as error:
        if read_header(memoryview(datagram)).kind in {DatagramKind.GREETING, DatagramKind.CALL}:
            hear(receiver, datagram)
        else:
            take(receiver, datagram)
    return error.value.reason


def test_after_four_datagrams_both_sides_trust_each_other() -> None:
    alice, bob = process("alice"), process("bob")
    assert len(meet(alice, bob)) == 4
    assert alice.peers["bob"].confirmed
    assert bob.peers["alice"].confirmed
    assert take(bob, data(alice, bob)) == take(alice, data(bob, alice)) == b"data"


def test_each_side_reports_once_that_the_other_is_reachable() -> None:
    alice, bob = process("alice"), process("bob")
    heard = [hear(bob, alice.call(HERE))]
    for listener in (alice, bob, alice):
        answer = heard[-1].reply
        assert answer is not None
        heard.append(hear(listener, answer))
    assert [each.reached.name if each.reached else "" for each in heard] == ["", "", "alice", "bob"]
    assert heard[-1].reply is None


def test_any_datagram_of_the_handshake_may_be_lost() -> None:
    for lost in range(4):
        alice, bob = process("alice"), process("bob")
        listeners, datagram = [bob, alice], alice.call(HERE)
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
    to_all = alice.call(None)
    assert hear(bob, to_all).reply is None
    assert hear(carol, to_all).reply is not None


def test_no_state_is_kept_for_a_process_without_an_echo() -> None:
    bob = process("bob")
    for number in range(50):
        assert hear(bob, process(f"stranger{number}").call(HERE)).reply is not None
    assert not bob.peers


def test_data_of_an_unknown_process_is_rejected() -> None:
    assert (
        rejection_of(process("bob"), data(process("alice"), process("bob")))
        == "sender did not introduce itself"
    )


def test_a_replayed_handshake_fails_with_a_restarted_process() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice, bob)]
    restarted = process("bob", 2)
    assert hear(restarted, recorded[0]).reached is None
    assert rejection_of(restarted, recorded[2]) == "not authentic", "it was for the earlier incarnation"
    assert rejection_of(restarted, recorded[4]) == "sender did not introduce itself"


def test_a_replayed_handshake_fails_with_the_same_process() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice, bob)]
    take(bob, recorded[4])
    for datagram in (recorded[0], recorded[2], recorded[4]):
        assert rejection_of(bob, datagram) == "replayed datagram"


def test_only_datagrams_sealed_after_the_echo_are_accepted() -> None:
    alice, bob = process("alice"), process("bob")
    before = data(alice, bob)
    meet(alice, bob)
    assert rejection_of(bob, before) == "replayed datagram"


def test_an_echo_may_be_late_but_not_after_two_minutes() -> None:
    for later, believed in ((70.0, True), (130.0, False)):
        alice, bob = process("alice"), process("bob")
        answer = hear(alice, bob.call(HERE)).reply
        assert answer is not None
        for now in range(0, int(later) + 1, 10):
            bob.due(float(now))
        hear(bob, answer, later)
        assert bool(bob.peers) == believed


@pytest.mark.parametrize("incarnation", [1, 2])
def test_a_new_incarnation_replaces_the_former(incarnation: int) -> None:
    alice, bob, again = process("alice"), process("bob"), process("alice", incarnation)
    recorded = [*meet(alice, bob), data(alice, bob)]
    meet(again, bob)
    assert take(bob, data(again, bob)) == b"data"
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
    assert rejection_of(bob, old.call(HERE)) == "old incarnation"
    assert rejection_of(bob, data(old, bob)) == "old incarnation"


def test_greetings_with_our_name_or_another_name_than_the_header_are_rejected() -> None:
    bob = process("bob")
    assert rejection_of(bob, process("bob").call(HERE)) == "a peer with our own name"
    liar = process("alice")
    liar.name = "carol"
    assert rejection_of(bob, liar.call(HERE)) == "frame of another sender"
    assert rejection_of(bob, liar.sealer.seal(DatagramKind.CALL, b"\xc1")) == "malformed content"


def test_greetings_under_another_key_are_rejected() -> None:
    assert rejection_of(process("bob"), process("alice", key=bytes(32)).call(HERE)) == "not authentic"


def test_a_silent_peer_is_greeted_and_finally_forgotten() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    assert bob.due(0.5) == []
    greetings = [now / 10 for now in range(10, 100) if bob.due(now / 10)]
    assert greetings[0] == 1.0
    assert 10 < len(greetings) < 20, "quickly at first, then once a second"
    assert "alice" in bob.peers
    take(bob, data(alice, bob), 10.0)
    assert bob.due(10.5) == []
    assert bob.due(12.0)[0][1] == HERE
    bob.due(131.0)
    assert not bob.peers
    assert rejection_of(bob, data(alice, bob)) == "sender did not introduce itself"


def answer(listener: PeerTable, datagram: bytes | None, now: float, source: SocketAddress) -> bytes | None:
    assert datagram is not None
    return hear(listener, datagram, now, source).reply


def test_a_peer_that_moved_is_believed_once_it_has_answered_from_its_new_address() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    [(call, _)] = alice.due(5.0)
    challenge = answer(bob, call, 5.0, THERE)
    assert bob.knows(HERE), "the call alone may be a copy"
    assert bob._rejection_log.counts == {"greeting from another address": 1}
    echo = answer(alice, challenge, 5.0, HERE)
    answer(alice, answer(bob, echo, 5.0, THERE), 5.0, HERE)
    assert bob.peers["alice"].address == THERE
    [(greeting, _)] = alice.due(6.0)
    answer(bob, greeting, 6.0, THERE)
    assert bob.knows(THERE)


def test_a_copied_greeting_moves_nobody_even_if_it_arrives_first() -> None:
    for seconds in (0.0, 5.0):  # whether alice is heard at her address or not
        alice, bob = process("alice"), process("bob")
        meet(alice, bob)
        peer = alice.peers["bob"]
        peer.confirmed = False  # so that the next greeting has an echo
        [(greeting, _), *_] = alice.due(seconds + 0.2)
        for _ in range(3):
            hear(bob, greeting, seconds + 0.2, THERE)
            assert bob.peers["alice"].address == HERE
        assert bob._rejection_log.counts == {"greeting from another address": 3}
        hear(bob, greeting, seconds + 0.2, HERE)
        assert bob.peers["alice"].heard_here_at == seconds + 0.2, "the original is still accepted"
        assert rejection_of(bob, greeting) == "replayed datagram"


def test_a_copied_echo_does_not_introduce_a_peer_at_another_address() -> None:
    alice, bob = process("alice"), process("bob")
    challenge = hear(bob, alice.call(HERE)).reply
    assert challenge is not None
    echo = hear(alice, challenge).reply
    assert echo is not None
    assert hear(bob, echo, 0.0, THERE).reached is None
    assert not bob.peers
    assert bob._rejection_log.counts == {"answer to another challenge": 1}
    hear(bob, echo)
    assert bob.peers["alice"].address == HERE


def test_a_relay_is_left_for_the_configured_address() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    bob.peers["alice"].address = THERE  # somebody passed on everything from there
    bob.peers["alice"].heard_here_at = 0.0
    alice.peers["bob"].confirmed = False
    [(greeting, _)] = alice.due(0.2)
    hear(bob, greeting, 0.2)
    assert bob.peers["alice"].address == THERE
    bob.configured.add(HERE)
    hear(bob, greeting, 0.2)
    assert bob.peers["alice"].address == HERE
    alice.peers["bob"].confirmed = False
    alice.peers["bob"].challenge = bob._challenges(THERE)[0]  # and again
    [(greeting, _)] = alice.due(0.6)
    hear(bob, greeting, 0.6, THERE)
    assert bob.peers["alice"].address == HERE, "while it is heard there"


def test_what_was_sealed_for_another_peer_is_not_accepted() -> None:
    alice, bob, carol = process("alice"), process("bob"), process("carol")
    for one, other in ((alice, bob), (alice, carol), (bob, carol)):
        meet(one, other)
    for kind in (DatagramKind.FRAMES, DatagramKind.FRAGMENTS, DatagramKind.RECEIVED, DatagramKind.GREETING):
        copied = bob.sealer.seal(kind, b"", carol.own_session)
        assert rejection_of(alice, copied) == "not authentic"
    assert take(carol, data(bob, carol)) == b"data"


def test_peers_tell_their_roles() -> None:
    alice, bob = process("alice"), PeerTable("g", [KEY], "bob", 1, RejectionLog("bob"), Role.CLIENT)
    meet(alice, bob)
    assert alice.peers["bob"].role is Role.CLIENT
    assert bob.peers["alice"].role is Role.MEMBER


def test_a_group_changes_its_key_without_losing_a_datagram() -> None:
    old, new = KEY, bytes(32)
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    for of_alice, of_bob in (
        ([old], [old, new]),
        ([old, new], [old, new]),
        ([new, old], [old, new]),
        ([new, old], [new, old]),
        ([new, old], [new]),
        ([new], [new]),
    ):
        in_flight = data(alice, bob), data(bob, alice)
        alice.change_keys(of_alice)
        bob.change_keys(of_bob)
        if old in of_bob:
            assert take(bob, in_flight[0]) == b"data"
        if old in of_alice:
            assert take(alice, in_flight[1]) == b"data"
        assert take(bob, data(alice, bob)) == take(alice, data(bob, alice)) == b"data"
    late = process("carol", key=old)
    assert rejection_of(bob, late.call(HERE)) == "not authentic"
    assert len(meet(process("carol", key=new), bob)) == 4


def test_the_number_of_peers_is_bounded_and_the_most_silent_is_dropped() -> None:
    bob = process("bob")
    for number in range(PEERS_MAX + 3):
        meet(process(f"p{number}"), bob, now=float(number) / 100)
    assert len(bob.peers) == len(bob._sessions) == PEERS_MAX
    assert "p2" not in bob.peers
    assert "p3" in bob.peers
    assert bob._rejection_log.counts == {"too many peers": 3}
