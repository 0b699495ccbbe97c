"""The handshake of one group over UDP: greetings, and the peers that have proved to be alive.

A datagram can be recorded and replayed, even to a process that has restarted since and remembers nothing. So
a session of a peer is trusted only once it has echoed a challenge of ours, and then only what it sealed after
that:

    alice                                      bob
      │ ── challenge A (a call) ────────────────▶ │   this may be a replay: bob only replies
      │ ◀─ challenge B, echo A ────────────────── │   alice knows that bob is alive
      │ ── challenge A, echo B, accepted ───────▶ │   bob knows that alice is alive
      │ ◀─ challenge B, echo A, accepted ──────── │   alice knows that bob accepts her datagrams

No state is kept for a process before it is trusted: the challenge is a keyed hash of the address that it is
sent to, under a secret that changes every minute. So an echo also proves that the peer can be reached at the
address that the echo comes from: a greeting that somebody copied, and sent from elsewhere, proves nothing. A
peer moves to another address only if it is not heard at the present one any more, or if the other one is
configured.

A silent peer is greeted again, and may be replaced by a session with a lower incarnation number; after two
minutes of silence it is forgotten. Replays cannot revive its session: every challenge that it ever echoed has
expired by then.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, InvalidInput, Rejected
from priocast.core.identity import NAME_LENGTH_MAX, check_name
from priocast.core.role import Role
from priocast.network.codec import hash_of
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.udp_peer import PAUSE_SECONDS_FIRST, KnownPeer, SessionProof, SocketAddress
from priocast.network.udp_security import DatagramKind, Opener, Sealed, Sealer, Session

if TYPE_CHECKING:  # importing it takes 100 ms, and is needed only with certificates
    from priocast.network.udp_certificates import OwnCertificate, Pair, PairKeys

PEERS_MAX = 256
_CHALLENGE_BYTES = 16
_SECRET_BYTES = 32
_CHALLENGE_SECONDS = 60.0
_FORGET_SECONDS = 120.0
_SILENCE_SECONDS = 1.0
_REJECTION_LENGTH_MAX = 200
PAUSE_SECONDS_MAX = 1.0


class ReplyPolicy(IntEnum):
    """Whether the receiver of a greeting should reply. `IF_NEW`: only if it has not confirmed us yet.

    `GREETING`: to a call, with a greeting and not with a call; it has the proof of our session now.
    """

    NEVER = 0
    IF_NEW = 1
    ALWAYS = 2
    GREETING = 3


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """The content of a GREETING or a CALL. `accepted`: the receiver has echoed our challenge.

    The challenge is empty if the greeting goes to several processes, whose addresses are not known.
    `rejection` is why the receiver is not accepted, if it is not. `proof` is in calls of processes with
    certificates.
    """

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
    challenge: Annotated[bytes, msgspec.Meta(max_length=_CHALLENGE_BYTES)]
    echo: Annotated[bytes, msgspec.Meta(max_length=_CHALLENGE_BYTES)]
    accepted: bool
    reply: ReplyPolicy
    role: Role
    rejection: Annotated[str, msgspec.Meta(max_length=_REJECTION_LENGTH_MAX)] = ""
    proof: SessionProof | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Greeting).decode


class GreetingOutcome(NamedTuple):
    """The result of a greeting: a reply to send, and a peer that is reachable from now on."""

    reply: bytes | None
    reached: KnownPeer | None


class PeerTable:
    """The peers that the process `name` knows in one group. It uses no sockets or clocks.

    `configured` are addresses at which peers are expected. `hears` says whether the group hears a process:
    then another one cannot have its name.
    """

    def __init__(
        self,
        group: str,
        group_keys: Sequence[bytes],
        name: str,
        incarnation: int,
        rejection_log: RejectionLog,
        role: Role = Role.MEMBER,
        certificate: "OwnCertificate | None" = None,
    ) -> None:
        self.group = group
        self._keys = group_keys
        self.name = name
        self._role = role
        self._rejection_log = rejection_log
        self.me = Session(hash_of(group), hash_of(name), incarnation, secrets.randbits(64))
        self.own_session = self.me.packed()
        self.sealer = Sealer(group_keys[0], self.me)
        self.pairs = certificate.pair_keys(group, self.own_session) if certificate else None
        self.configured: set[SocketAddress] = set()
        self.hears: Callable[[str], bool] = lambda _: False
        self.peers: dict[str, KnownPeer] = {}
        self._sessions: dict[bytes, KnownPeer] = {}
        self._secrets: list[bytes] = []
        self._secret_until = 0.0
        self._draw_secret()

    def change_keys(self, group_keys: Sequence[bytes]) -> None:
        """Seal with the first of these keys from now on, and open what any of them sealed."""
        self._keys = group_keys
        self.sealer.change_key(group_keys[0])
        for peer in self.peers.values():
            if peer.pair is None:
                peer.opener = Opener(group_keys, peer.session)

    def renew_certificate(self) -> None:
        """Our certificate was read again: forget the peers whose certificates are not trusted any more."""
        if self.pairs is None:
            return
        self.pairs.renew()
        for peer in list(self.peers.values()):
            objection = self.pairs.objection_to(peer.pair) if peer.pair else None
            if objection is not None:
                self._rejection_log.record(objection, peer=peer.name)
                self._forget(peer)

    # Sent greetings

    def call(self, address: SocketAddress | None) -> bytes:
        """Create a sealed greeting to whoever is at an address; None: to several, who reply if it is news."""
        challenge = b"" if address is None else self._challenges(address)[0]
        return self._call(challenge, ReplyPolicy.IF_NEW if address is None else ReplyPolicy.ALWAYS)

    def _call(self, challenge: bytes, reply: ReplyPolicy) -> bytes:
        proof = self.pairs.proof if self.pairs else None
        greeting = Greeting(self.name, challenge, b"", False, reply, self._role, "", proof)
        return self.sealer.seal(DatagramKind.CALL, _encode(greeting))

    def _greeting(
        self,
        session: bytes,
        address: SocketAddress,
        reply: ReplyPolicy,
        echo: bytes,
        *,
        accepted: bool,
        rejection: str = "",
    ) -> bytes:
        """Create a greeting that is sealed for one session."""
        challenge = self._challenges(address)[0]
        greeting = Greeting(self.name, challenge, echo, accepted, reply, self._role, rejection)
        pair = self._pair_of(session)
        cipher = pair.seals if pair else None
        return self.sealer.seal(DatagramKind.GREETING, _encode(greeting), session, cipher)

    def _pair_of(self, session: bytes) -> "Pair | None":
        """The keys that we share with a session; None without certificates."""
        peer = self._sessions.get(session)
        if peer is not None:
            return peer.pair
        return self.pairs.find(session) if self.pairs else None

    def due(self, now: float) -> list[tuple[bytes, SocketAddress]]:
        """The greetings that are due: to peers that have not confirmed, or that are silent."""
        if now >= self._secret_until:
            self._draw_secret(self._secrets[0])
            self._secret_until = now + _CHALLENGE_SECONDS
        greetings = []
        for peer in list(self.peers.values()):
            silent = now - peer.heard_at
            if silent > _FORGET_SECONDS:
                self._forget(peer)
            elif peer.confirmed and silent < _SILENCE_SECONDS:
                peer.pause = PAUSE_SECONDS_FIRST
            elif now >= peer.greet_at:
                peer.greet_at = now + peer.pause
                peer.pause = min(2 * peer.pause, PAUSE_SECONDS_MAX)
                if not peer.confirmed:
                    greeting = self._greeting(
                        peer.session, peer.address, ReplyPolicy.ALWAYS, peer.challenge, accepted=True
                    )
                    greetings.append((greeting, peer.address))
                if silent >= _SILENCE_SECONDS:  # it may have restarted, and could not open what was for it
                    greetings.append((self.call(peer.address), peer.address))
        return greetings

    def knows(self, address: SocketAddress) -> bool:
        """Whether a peer at this address has confirmed."""
        return any(peer.confirmed and peer.address == address for peer in self.peers.values())

    # Received datagrams

    def find(self, sealed: Sealed) -> KnownPeer:
        """The peer of the session in a datagram's header; raises if it is not trusted."""
        peer = self._sessions.get(sealed.session)
        if peer is None:
            session = Session.unpacked(sealed.session)
            known = [each.incarnation for each in self.peers.values() if each.name_hash == session.sender]
            old = known and session.incarnation < known[0]
            raise Rejected(Reason.OLD_INCARNATION if old else Reason.NOT_INTRODUCED)
        return peer

    def on_greeting(self, sealed: Sealed, source: SocketAddress, now: float) -> GreetingOutcome:
        """A greeting or a call was received."""
        if self.pairs is not None and sealed.kind is DatagramKind.CALL:
            return GreetingOutcome(self._answer_to_call(self.pairs, sealed, source, now), None)
        peer, pair = self._sessions.get(sealed.session), self._pair_of(sealed.session)
        opener = peer.opener if peer else pair.opener if pair else Opener(self._keys, sealed.session)
        content = (peer or opener).open(sealed, self.own_session)
        greeting = self._read(content, sealed, now)
        if peer is None and (rival := self._rival_of(greeting.name, source)):
            return GreetingOutcome(self._reject(greeting, sealed.session, source, rival), None)
        is_alive = bool(greeting.echo) and greeting.echo in self._challenges(source)
        if peer is None:
            if not is_alive:
                if greeting.echo:
                    self._rejection_log.record(Reason.OTHER_CHALLENGE, peer=greeting.name)
                return GreetingOutcome(self._reply(greeting, sealed.session, source, None), None)
            role = pair.role if pair else greeting.role
            peer = KnownPeer(greeting.name, role, sealed.session, opener, sealed.counter, pair)
            peer.address = source
            self._add(peer)
        elif source != peer.address and not (is_alive and self._may_move(peer, source, now)):
            self._rejection_log.record(Reason.OTHER_ADDRESS, peer=peer.name, address=str(source[0]))
            if not self._may_move(peer, source, now):
                return GreetingOutcome(None, None)
            return GreetingOutcome(self._reply(greeting, sealed.session, source, None), None)
        return self._accept(peer, greeting, sealed.counter, source, now, is_alive=is_alive)

    def _accept(
        self,
        peer: KnownPeer,
        greeting: Greeting,
        counter: int,
        source: SocketAddress,
        now: float,
        *,
        is_alive: bool,
    ) -> GreetingOutcome:
        """A peer that is known greets us from its address."""
        reached = None
        if is_alive:
            peer.address = source
            if greeting.accepted and not peer.confirmed:
                reached = peer
            peer.confirmed = greeting.accepted
        peer.on_heard(counter, source, now)
        if greeting.challenge:
            peer.challenge = greeting.challenge
        return GreetingOutcome(self._reply(greeting, peer.session, source, peer), reached)

    def _rival_of(self, name: str, source: SocketAddress) -> KnownPeer | None:
        """The peer that uses this name, if it is heard; a process at its address has taken its place."""
        known = self.peers.get(name)
        if known is None or not known.confirmed or known.address == source:
            return None
        return known if self.hears(name) else None

    def _reject(
        self, greeting: Greeting, session: bytes, source: SocketAddress, rival: KnownPeer
    ) -> bytes | None:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(rival.known_since))
        detail = f"by {rival.name} at {rival.address[0]}:{rival.address[1]}, known since {since} UTC"
        self._rejection_log.record(Reason.NAME_IN_USE, detail, peer=rival.name, address=str(source[0]))
        if greeting.reply is ReplyPolicy.NEVER:
            return None
        rejection = f"{Reason.NAME_IN_USE}: {detail}"[:_REJECTION_LENGTH_MAX]
        return self._greeting(
            session, source, ReplyPolicy.NEVER, greeting.challenge, accepted=False, rejection=rejection
        )

    def _answer_to_call(
        self, pairs: "PairKeys", sealed: Sealed, source: SocketAddress, now: float
    ) -> bytes | None:
        """Exchange proofs with a process that calls; anybody in the group may have repeated the call."""
        content = Opener(self._keys, sealed.session).open(sealed, self.own_session)
        greeting = self._read(content, sealed, now)
        pairs.introduce(sealed.session, greeting.name, greeting.proof)
        peer = self._sessions.get(sealed.session)
        if greeting.reply is ReplyPolicy.GREETING:
            return self._reply(greeting, sealed.session, source, peer)
        if greeting.reply is ReplyPolicy.IF_NEW and peer is not None and peer.confirmed:
            return None
        return self._call(self._challenges(source)[0], ReplyPolicy.GREETING)

    def _may_move(self, peer: KnownPeer, source: SocketAddress, now: float) -> bool:
        """Whether a peer may have moved to an address: it is not heard at the present one any more.

        Whoever copies datagrams cannot bring that about. A configured address is preferred to any other.
        """
        if source in self.configured and peer.address not in self.configured:
            return True
        return not peer.confirmed or now - peer.heard_here_at >= _SILENCE_SECONDS

    def _read(self, content: bytes, sealed: Sealed, now: float) -> Greeting:
        try:
            greeting = decode(_decode, content, "a peer", "a greeting")
            check_name(greeting.name, "member")
        except (ForeignFrame, InvalidInput) as error:
            raise Rejected(Reason.MALFORMED, str(error)) from error
        session = Session.unpacked(sealed.session)
        if hash_of(greeting.name) != session.sender:
            raise Rejected(Reason.OTHER_SENDER, f"the header is not from {greeting.name}")
        if greeting.name == self.name:
            raise Rejected(Reason.OWN_NAME, "give each process its own name")
        if greeting.rejection:
            raise Rejected(Reason.REJECTED_BY_PEER, greeting.rejection)
        known = self.peers.get(greeting.name)
        is_old = known is not None and session.incarnation < known.incarnation
        # A process whose clock was set back may have a lower number; one that is heard is not replaced.
        if known is not None and is_old and now - known.heard_at < _SILENCE_SECONDS:
            raise Rejected(Reason.OLD_INCARNATION, f"{session.incarnation} after {known.incarnation}")
        return greeting

    def _reply(
        self, greeting: Greeting, session: bytes, to: SocketAddress, peer: KnownPeer | None
    ) -> bytes | None:
        confirmed = peer is not None and peer.confirmed
        if greeting.reply is ReplyPolicy.NEVER or (greeting.reply is ReplyPolicy.IF_NEW and confirmed):
            return None
        expected = ReplyPolicy.NEVER if confirmed else ReplyPolicy.ALWAYS
        return self._greeting(session, to, expected, greeting.challenge, accepted=peer is not None)

    def _add(self, peer: KnownPeer) -> None:
        former = self.peers.get(peer.name)
        if former is not None:
            self._forget(former)
        elif len(self.peers) >= PEERS_MAX:
            self._rejection_log.record(Reason.TOO_MANY_PEERS, peer=peer.name)
            self._forget(min(self.peers.values(), key=lambda each: each.heard_at))
        self.peers[peer.name] = peer
        self._sessions[peer.session] = peer

    def _forget(self, peer: KnownPeer) -> None:
        del self.peers[peer.name]
        del self._sessions[peer.session]
        self._draw_secret()

    def _challenges(self, address: SocketAddress) -> list[bytes]:
        """The challenges that are valid for a process at an address, the present one first."""
        text = f"{address[0]} {address[1]}".encode()
        return [blake2b(text, digest_size=_CHALLENGE_BYTES, key=secret).digest() for secret in self._secrets]

    def _draw_secret(self, former: bytes | None = None) -> None:
        """Draw a new secret. Echoes of challenges under `former` may be in flight, and are still accepted."""
        drawn = secrets.token_bytes(_SECRET_BYTES)
        self._secrets = [drawn, former or drawn]
