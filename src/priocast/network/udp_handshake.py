"""The handshake of one group over UDP: greetings, and the peers that have proved to be alive.

A datagram can be recorded and replayed, even to a process that has restarted since and remembers nothing. So
a session of a peer is trusted only once it has echoed a challenge of ours, and then only what it sealed after
that:

    alice                                      bob
      │ ── challenge A ─────────────────────────▶ │   this may be a replay: bob only replies
      │ ◀─ challenge B, echo A ────────────────── │   alice knows that bob is alive
      │ ── challenge A, echo B, accepted ───────▶ │   bob knows that alice is alive
      │ ◀─ challenge B, echo A, accepted ──────── │   alice knows that bob accepts her datagrams

No state is kept for a process before it is trusted: all get the same challenge, which changes every minute. A
silent peer is greeted again; after two minutes of silence it is forgotten. Replays cannot revive its session:
every challenge that it ever echoed has expired by then.
"""

import secrets
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, InvalidInput, Rejected
from priocast.core.identity import NAME_LENGTH_MAX, check_name
from priocast.network.codec import hash_of
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.replay_window import ReplayWindow
from priocast.network.udp_pace import Flow
from priocast.network.udp_security import DatagramKind, Opener, Sealed, Sealer, Session

PEERS_MAX = 256
_CHALLENGE_BYTES = 16
_CHALLENGE_SECONDS = 60.0
_FORGET_SECONDS = 120.0
_SILENCE_SECONDS = 1.0
PAUSE_SECONDS_FIRST = 0.1
PAUSE_SECONDS_MAX = 1.0

SocketAddress = tuple[Any, ...]


class ReplyPolicy(IntEnum):
    """Whether the receiver of a greeting should reply. `IF_NEW`: only if it has not confirmed us yet."""

    NEVER = 0
    IF_NEW = 1
    ALWAYS = 2


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """The content of a GREETING. `accepted`: the receiver has echoed our challenge."""

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
    challenge: Annotated[bytes, msgspec.Meta(min_length=_CHALLENGE_BYTES, max_length=_CHALLENGE_BYTES)]
    echo: Annotated[bytes, msgspec.Meta(max_length=_CHALLENGE_BYTES)]
    accepted: bool
    reply: ReplyPolicy


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Greeting).decode


class KnownPeer:
    """A session of a peer that echoed our challenge; `confirmed` once it has accepted our echo."""

    def __init__(self, name: str, session: bytes, opener: Opener, counter: int) -> None:
        self.name = name
        self.name_hash = hash_of(name)
        self.session = session
        self.incarnation = Session.unpacked(session).incarnation
        self.opener = opener
        self.window = ReplayWindow(counter)
        self.address: SocketAddress = ()
        self.challenge = b""
        self.confirmed = False
        self.flow = Flow()
        self.unreported_bytes = 0
        self.heard_at = 0.0
        self.greet_at = 0.0
        self.pause = PAUSE_SECONDS_FIRST

    def open(self, sealed: Sealed, now: float) -> bytes:
        """The content of a datagram of this session, unless it was received before."""
        if not self.window.is_new(sealed.counter):
            raise Rejected(Reason.REPLAYED, f"counter {sealed.counter} of {self.name}")
        content = self.opener.open(sealed)
        self.window.note(sealed.counter)
        self.heard_at = now
        return content


class GreetingOutcome(NamedTuple):
    """The result of a greeting: a reply to send, and a peer that is reachable from now on."""

    reply: bytes | None
    reached: KnownPeer | None


class PeerTable:
    """The peers that the process `name` knows in one group. It uses no sockets or clocks."""

    def __init__(
        self, group: str, group_key: bytes, name: str, incarnation: int, rejection_log: RejectionLog
    ) -> None:
        self.group = group
        self._key = group_key
        self.name = name
        self._rejection_log = rejection_log
        self.me = Session(hash_of(group), hash_of(name), incarnation, secrets.randbits(64))
        self.own_session = self.me.packed()
        self.sealer = Sealer(group_key, self.me)
        self.peers: dict[str, KnownPeer] = {}
        self._sessions: dict[bytes, KnownPeer] = {}
        self._challenges: list[bytes] = []
        self._challenge_until = 0.0
        self._draw_challenges()

    # Sent greetings

    def greeting(
        self, reply: ReplyPolicy = ReplyPolicy.ALWAYS, echo: bytes = b"", *, accepted: bool = False
    ) -> bytes:
        """Create a sealed greeting."""
        greeting = Greeting(self.name, self._challenges[0], echo, accepted, reply)
        return self.sealer.seal(DatagramKind.GREETING, _encode(greeting))

    def due(self, now: float) -> list[tuple[bytes, SocketAddress]]:
        """The greetings that are due: to peers that have not confirmed, or that are silent."""
        if now >= self._challenge_until:
            self._draw_challenges(self._challenges[0])
            self._challenge_until = now + _CHALLENGE_SECONDS
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
                greetings.append((self.greeting(echo=peer.challenge, accepted=True), peer.address))
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
        """A greeting was received."""
        peer = self._sessions.get(sealed.session)
        opener = Opener(self._key, sealed.session) if peer is None else peer.opener
        content = opener.open(sealed) if peer is None else peer.open(sealed, now)
        greeting = self._read(content, sealed)
        is_alive = greeting.echo in self._challenges
        if peer is None:
            if not is_alive:
                if greeting.echo:
                    self._rejection_log.record(Reason.OTHER_CHALLENGE, peer=greeting.name)
                return GreetingOutcome(self._reply(greeting, None), None)
            peer = KnownPeer(greeting.name, sealed.session, opener, sealed.counter)
            self._add(peer)
        peer.heard_at = now
        peer.challenge = greeting.challenge
        reached = None
        if is_alive:
            peer.address = source
            if greeting.accepted and not peer.confirmed:
                reached = peer
            peer.confirmed = greeting.accepted
        return GreetingOutcome(self._reply(greeting, peer), reached)

    def _read(self, content: bytes, sealed: Sealed) -> Greeting:
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
        known = self.peers.get(greeting.name)
        if known is not None and session.incarnation < known.incarnation:
            raise Rejected(Reason.OLD_INCARNATION, f"{session.incarnation} after {known.incarnation}")
        return greeting

    def _reply(self, greeting: Greeting, peer: KnownPeer | None) -> bytes | None:
        confirmed = peer is not None and peer.confirmed
        if greeting.reply is ReplyPolicy.NEVER or (greeting.reply is ReplyPolicy.IF_NEW and confirmed):
            return None
        expected = ReplyPolicy.NEVER if confirmed else ReplyPolicy.ALWAYS
        return self.greeting(expected, greeting.challenge, accepted=peer is not None)

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
        self._draw_challenges()

    def _draw_challenges(self, former: bytes | None = None) -> None:
        """Draw a new challenge. Echoes of `former` may be in flight, and are still accepted."""
        drawn = secrets.token_bytes(_CHALLENGE_BYTES)
        self._challenges = [drawn, former or drawn]
