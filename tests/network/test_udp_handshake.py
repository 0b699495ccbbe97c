"""Greetings between processes without sockets or clocks: who believes whom, and for how long."""

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
    """Let one greet the other until nobody answers any more; return all that was said, in turns."""
    said = [one.greeting()]
    listeners = [other, one]
    while True:
        answer = hear(listeners[0], said[-1], now).reply
        if answer is None:
            return said
        said.append(answer)
        listeners.reverse()


def data(sender: PeerTable) -> bytes:
    return sender.sealer.seal(DatagramKind.FRAMES, b"data")


def take(receiver: PeerTable, datagram: bytes, now: float = 0.0) -> bytes:
    sealed = read_header(memoryview(datagram))
    return receiver.find(sealed).open(sealed, now)


def refused(receiver: PeerTable, datagram: bytes) -> str:
    with pytest.raises(Rejected) as error:
        if read_header(memoryview(datagram)).kind is DatagramKind.GREETING:
            hear(receiver, datagram)
        else:
            take(receiver, datagram)
    return error.value.reason


def test_four_datagrams_and_each_believes_the_other() -> None:
    alice, bob = process("alice"), process("bob")
    assert len(meet(alice, bob)) == 4
    assert alice.peers["bob"].confirmed
    assert bob.peers["alice"].confirmed
    assert take(bob, data(alice)) == take(alice, data(bob)) == b"data"


def test_each_is_told_once_that_the_other_can_be_reached() -> None:
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


def test_a_greeting_to_all_is_answered_by_those_who_are_new_alone() -> None:
    alice, bob, carol = process("alice"), process("bob"), process("carol")
    meet(alice, bob)
    to_all = alice.greeting(ReplyPolicy.IF_NEW)
    assert hear(bob, to_all).reply is None
    assert hear(carol, to_all).reply is not None


def test_nothing_is_kept_of_a_process_that_repeated_no_challenge() -> None:
    bob = process("bob")
    for number in range(50):
        assert hear(bob, process(f"stranger{number}").greeting()).reply is not None
    assert not bob.peers


def test_data_of_a_process_that_was_not_met_is_refused() -> None:
    assert refused(process("bob"), data(process("alice"))) == "sender did not introduce itself"


def test_a_recorded_conversation_does_not_convince_a_process_that_restarted() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice)]
    restarted = process("bob", 2)
    assert hear(restarted, recorded[0]).reached is None
    assert hear(restarted, recorded[2]).reached is None
    assert restarted._rejection_log.counts == {"answer to another challenge": 1}
    assert refused(restarted, recorded[4]) == "sender did not introduce itself"


def test_a_recorded_conversation_is_of_no_use_with_the_same_process_either() -> None:
    alice, bob = process("alice"), process("bob")
    recorded = [*meet(alice, bob), data(alice)]
    take(bob, recorded[4])
    for datagram in (recorded[0], recorded[2], recorded[4]):
        assert refused(bob, datagram) == "replayed datagram"


def test_only_what_was_sealed_after_the_answer_is_taken() -> None:
    alice, bob = process("alice"), process("bob")
    before = data(alice)
    meet(alice, bob)
    assert refused(bob, before) == "replayed datagram"


def test_an_answer_can_come_late_but_not_after_two_minutes() -> None:
    for later, believed in ((70.0, True), (130.0, False)):
        alice, bob = process("alice"), process("bob")
        answer = hear(alice, bob.greeting()).reply
        assert answer is not None
        for now in range(0, int(later) + 1, 10):
            bob.due(float(now))
        hear(bob, answer, later)
        assert bool(bob.peers) == believed


@pytest.mark.parametrize("incarnation", [1, 2])
def test_a_new_life_takes_the_place_of_the_former(incarnation: int) -> None:
    alice, bob, again = process("alice"), process("bob"), process("alice", incarnation)
    recorded = [*meet(alice, bob), data(alice)]
    meet(again, bob)
    assert take(bob, data(again)) == b"data"
    assert bob.peers["alice"].session == again.own_session
    if incarnation > 1:
        assert refused(bob, recorded[4]) == refused(bob, recorded[2]) == "old incarnation"
    else:
        assert refused(bob, recorded[4]) == "sender did not introduce itself"
        assert hear(bob, recorded[2]).reached is None
    assert bob.peers["alice"].session == again.own_session


def test_a_lower_incarnation_is_refused_even_if_it_is_alive() -> None:
    alice, bob, old = process("alice", 2), process("bob"), process("alice", 1)
    meet(alice, bob)
    assert refused(bob, old.greeting()) == "old incarnation"
    assert refused(bob, data(old)) == "old incarnation"


def test_whoever_has_our_name_or_another_than_in_its_header_is_refused() -> None:
    bob = process("bob")
    assert refused(bob, process("bob").greeting()) == "a peer with our own name"
    liar = process("alice")
    liar.name = "carol"
    assert refused(bob, liar.greeting()) == "frame of another sender"
    assert refused(bob, liar.sealer.seal(DatagramKind.GREETING, b"\xc1")) == "malformed content"


def test_another_groups_key_is_of_no_use() -> None:
    assert refused(process("bob"), process("alice", key=bytes(32)).greeting()) == "not authentic"


def test_a_silent_peer_is_greeted_and_at_last_forgotten() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    assert bob.due(0.5) == []
    greetings = [now / 10 for now in range(10, 100) if bob.due(now / 10)]
    assert greetings[0] == 1.0
    assert 10 < len(greetings) < 20, "soon at first, then once a second"
    assert "alice" in bob.peers
    take(bob, data(alice), 10.0)
    assert bob.due(10.5) == []
    assert bob.due(12.0)[0][1] == HERE
    bob.due(131.0)
    assert not bob.peers
    assert refused(bob, data(alice)) == "sender did not introduce itself"


def test_a_peer_that_moved_is_answered_where_it_is_now() -> None:
    alice, bob = process("alice"), process("bob")
    meet(alice, bob)
    assert bob.knows(HERE)
    [(greeting, _)] = alice.due(5.0)
    hear(bob, greeting, 5.0, THERE)
    assert bob.knows(THERE)
    assert not bob.knows(HERE)


def test_the_peers_are_bounded_and_the_longest_silent_makes_room() -> None:
    bob = process("bob")
    for number in range(PEERS_MAX + 3):
        meet(process(f"p{number}"), bob, now=float(number) / 100)
    assert len(bob.peers) == len(bob._sessions) == PEERS_MAX
    assert "p2" not in bob.peers
    assert "p3" in bob.peers
    assert bob._rejection_log.counts == {"too many peers": 3}
