"""Certificates over UDP: no member can pose as another, although all have the group's key."""

from pathlib import Path

import msgspec
import pytest

from priocast.core.errors import Rejected, UnusableKey
from priocast.core.role import Role
from priocast.network.keys import Authority, make_authority, make_member_certificate
from priocast.network.rejections import RejectionLog
from priocast.network.revocation import revoke_certificates
from priocast.network.security import TlsSecurity
from priocast.network.udp_certificates import OwnCertificate
from priocast.network.udp_handshake import Greeting, PeerTable, ReplyPolicy
from priocast.network.udp_peer import SessionProof, SocketAddress
from priocast.network.udp_security import DatagramKind, Sealer, Session, read_header

KEY = bytes(range(32))
ALICE: SocketAddress = ("127.0.0.1", 1)
BOB: SocketAddress = ("127.0.0.1", 2)
MALLORY: SocketAddress = ("127.0.0.1", 3)


class Group:
    """Processes of the group g with certificates; each has its files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = make_authority(directory)
        self.revoked = directory / "revoked.crl"
        revoke_certificates(self.revoked, self.authority, [])
        self.files: dict[str, TlsSecurity] = {}
        self.own: dict[str, OwnCertificate] = {}

    def process(
        self, name: str, group: str = "g", role: Role = Role.MEMBER, authority: Authority | None = None
    ) -> PeerTable:
        made = make_member_certificate(self.directory, authority or self.authority, name, [group], role=role)
        self.files[name] = TlsSecurity(made.certificate, made.key, self.authority.certificate, self.revoked)
        self.own[name] = own = OwnCertificate(self.files[name], name, role)
        known = PeerTable("g", [KEY], name, 1, RejectionLog(name), role, own)
        known.due(0.0)
        return known


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path)


def hear(listener: PeerTable, datagram: bytes, source: SocketAddress, now: float = 0.0) -> bytes | None:
    return listener.on_greeting(read_header(memoryview(datagram)), source, now).reply


def meet(one: PeerTable, other: PeerTable, now: float = 0.0) -> list[bytes]:
    """Exchange greetings until neither side replies; return all of them, in order."""
    exchanged = [one.call(BOB)]
    listeners, sources = [other, one], [ALICE, BOB]
    while (answer := hear(listeners[0], exchanged[-1], sources[0], now)) is not None:
        exchanged.append(answer)
        listeners.reverse()
        sources.reverse()
    return exchanged


def take(receiver: PeerTable, datagram: bytes) -> bytes:
    sealed = read_header(memoryview(datagram))
    return receiver.find(sealed).open(sealed, receiver.own_session)


def data(sender: PeerTable, to: str) -> bytes:
    peer = sender.peers[to]
    return sender.sealer.seal(DatagramKind.FRAMES, b"data", peer.session, peer.cipher)


def reason(listener: PeerTable, datagram: bytes, source: SocketAddress = MALLORY) -> str:
    with pytest.raises(Rejected) as rejected:
        hear(listener, datagram, source)
    assert not listener.peers
    return rejected.value.reason


def test_proofs_are_exchanged_in_calls_and_the_rest_is_sealed_for_the_pair(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob", role=Role.CLIENT)
    kinds = [datagram[3] for datagram in meet(alice, bob)]
    assert kinds == [DatagramKind.CALL] * 2 + [DatagramKind.GREETING] * 3
    assert alice.peers["bob"].confirmed and bob.peers["alice"].confirmed
    assert (alice.peers["bob"].role, bob.peers["alice"].role) == (Role.CLIENT, Role.MEMBER)
    assert take(bob, data(alice, "bob")) == take(alice, data(bob, "alice")) == b"data"


def test_the_groups_key_alone_seals_nothing_for_another_member(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    meet(alice, bob)
    forged = Sealer(KEY, alice.me)
    forged.counter = 1000
    for kind in (DatagramKind.FRAMES, DatagramKind.FRAGMENTS, DatagramKind.RECEIVED, DatagramKind.SHARED):
        to = b"" if kind is DatagramKind.SHARED else bob.own_session
        with pytest.raises(Rejected, match="not authentic"):
            take(bob, forged.seal(kind, b"evil", to))
    greeting = msgspec.msgpack.encode(
        Greeting("alice", bytes(16), bob._challenges(MALLORY)[0], True, ReplyPolicy.ALWAYS, Role.MEMBER)
    )
    with pytest.raises(Rejected, match="not authentic"):
        hear(bob, forged.seal(DatagramKind.GREETING, greeting, bob.own_session), MALLORY)
    assert bob.peers["alice"].address == ALICE
    assert take(bob, data(alice, "bob")) == b"data"


def test_a_member_that_repeats_the_proof_of_another_is_not_believed(group: Group) -> None:
    alice, bob, mallory = group.process("alice"), group.process("bob"), group.process("mallory")
    meet(alice, mallory)
    assert alice.pairs is not None
    forged = Sealer(KEY, alice.me)
    forged.counter = 1000
    call = Greeting("alice", bytes(16), b"", False, ReplyPolicy.ALWAYS, Role.MEMBER, "", alice.pairs.proof)
    answer = hear(bob, forged.seal(DatagramKind.CALL, msgspec.msgpack.encode(call)), MALLORY)
    assert answer is not None and answer[3] == DatagramKind.CALL
    assert not bob.peers, "the proof can be repeated"
    echo = Greeting("alice", bytes(16), bob._challenges(MALLORY)[0], True, ReplyPolicy.ALWAYS, Role.MEMBER)
    content = msgspec.msgpack.encode(echo)
    assert reason(bob, forged.seal(DatagramKind.GREETING, content, bob.own_session)) == "not authentic"
    pair = mallory.peers["alice"].cipher
    sealed = forged.seal(DatagramKind.GREETING, content, bob.own_session, pair)
    assert reason(bob, sealed) == "not authentic"
    assert len(meet(alice, bob)) == 5
    assert bob.peers["alice"].address == ALICE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"public_key": bytes(31) + b"\x09"}, "not authentic"),
        ({"role": Role.OBSERVER}, "not authentic"),
        ({"signature": b""}, "not authentic"),
        ({"certificate": b"nonsense"}, "certificate of another authority"),
    ],
)
def test_a_proof_that_was_altered(change: dict[str, object], expected: str, group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    assert alice.pairs is not None
    alice.pairs.proof = msgspec.structs.replace(alice.pairs.proof, **change)
    assert reason(bob, alice.call(BOB)) == expected


UNREADABLE = {
    "no such version": (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x03"),
    "no such key": (b"\x2a\x86\x48\xce\x3d\x02\x01", b"\x2a\x87\x48\xce\x3d\x02\x01"),
    "an extension twice": (b"\x55\x1d\x11", b"\x55\x1d\x13"),
    "an extension that is none": (b"\x55\x1d\x11", b"\x55\x1d\x12"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_certificate_that_cannot_be_read(case: str, group: Group) -> None:
    """Nothing but a rejection comes of it, although the library raises errors that are no `ValueError`."""
    alice, bob = group.process("alice"), group.process("bob")
    assert alice.pairs and bob.pairs
    before, after = UNREADABLE[case]
    damaged = bob.pairs.proof.certificate.replace(before, after)
    assert damaged != bob.pairs.proof.certificate
    proof = msgspec.structs.replace(bob.pairs.proof, certificate=damaged)
    with pytest.raises(Rejected, match="certificate of another authority"):
        alice.pairs.introduce(bob.own_session, "bob", proof)


def test_a_member_cannot_displace_the_sessions_of_others(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    assert alice.pairs and bob.pairs
    group.process("mallory")
    alice.pairs.introduce(bob.own_session, "bob", bob.pairs.proof)
    for number in range(600):
        session = Session(alice.me.group, 1, 1, number).packed()
        shown = group.own["mallory"].pair_keys("g", session)
        alice.pairs.introduce(session, "mallory", shown.proof)
    assert alice.pairs.find(bob.own_session)
    assert len(alice.pairs._pairs) < 20


def test_a_proof_of_another_session_or_none(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    again = PeerTable("g", [KEY], "alice", 2, RejectionLog("alice"), Role.MEMBER, group.own["alice"])
    assert alice.pairs is not None and again.pairs is not None
    again.pairs.proof = alice.pairs.proof
    assert reason(bob, again.call(BOB)) == "not authentic"
    plain = PeerTable("g", [KEY], "carol", 1, RejectionLog("carol"))
    assert reason(bob, plain.call(BOB)) == "no certificate"
    greeting = plain._greeting(bob.own_session, BOB, ReplyPolicy.ALWAYS, b"", accepted=False)
    assert reason(bob, greeting) == "sender did not introduce itself"


def test_certificates_of_others_are_rejected(group: Group, tmp_path: Path) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    (tmp_path / "other").mkdir()
    stranger = make_authority(tmp_path / "other")
    assert reason(bob, group.process("carol", group="h").call(BOB)) == "certificate is not for this group"
    assert (
        reason(bob, group.process("dave", authority=stranger).call(BOB)) == "certificate of another authority"
    )
    liar = PeerTable("g", [KEY], "erin", 1, RejectionLog("erin"), Role.MEMBER, group.own["alice"])
    assert reason(bob, liar.call(BOB)) == "certificate of another member"
    revoke_certificates(group.revoked, group.authority, [group.files["alice"].certificate])
    group.own["bob"].reload(["g"])
    assert reason(bob, alice.call(BOB)) == "revoked certificate"


def test_a_revoked_peer_is_forgotten_when_the_list_is_read_again(group: Group) -> None:
    alice, bob, carol = (group.process(name) for name in ("alice", "bob", "carol"))
    meet(alice, bob)
    meet(carol, bob)
    revoke_certificates(group.revoked, group.authority, [group.files["alice"].certificate])
    group.own["bob"].reload(["g"])
    bob.renew_certificate()
    assert list(bob.peers) == ["carol"]
    assert bob._rejection_log.counts == {"revoked certificate": 1}
    with pytest.raises(Rejected, match="sender did not introduce itself"):
        take(bob, data(alice, "bob"))
    assert take(bob, data(carol, "bob")) == b"data"


def test_the_groups_key_changes_under_certified_peers(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    meet(alice, bob)
    alice.change_keys([bytes(32)])
    assert take(bob, data(alice, "bob")) == b"data", "the keys of the pair stay"


def test_a_process_that_restarts_is_believed_again(group: Group) -> None:
    alice, bob = group.process("alice"), group.process("bob")
    meet(alice, bob)
    again = PeerTable("g", [KEY], "alice", 2, RejectionLog("alice"), Role.MEMBER, group.own["alice"])
    [(call, _)] = bob.due(5.0)
    answer = hear(again, call, BOB)
    assert answer is not None
    listeners, sources = [bob, again], [ALICE, BOB]
    while answer is not None:
        answer = hear(listeners[0], answer, sources[0], 5.0)
        listeners.reverse()
        sources.reverse()
    assert bob.peers["alice"].incarnation == 2
    assert take(bob, data(again, "bob")) == b"data"


def test_a_certificate_for_other_groups_is_not_read(group: Group) -> None:
    group.process("alice")
    with pytest.raises(UnusableKey, match="does not include group 'h'"):
        group.own["alice"].reload(["h"])
    assert isinstance(group.own["alice"].pair_keys("g", Session(1, 2, 3, 4).packed()).proof, SessionProof)
