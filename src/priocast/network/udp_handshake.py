"""Who is who in one group over UDP: greetings, and the processes that proved to be alive by them.

A datagram can be recorded and sent again, even to a process that has restarted since and remembers nothing.
So a life of a process is believed only when it has repeated a challenge that we drew, and then only what it
sealed after that:

    alice                                      bob
      │ ── challenge A ─────────────────────────▶ │   this may be an old datagram: bob only answers
      │ ◀─ challenge B, echo A ────────────────── │   alice knows bob to be alive
      │ ── challenge A, echo B, accepted ───────▶ │   bob knows alice to be alive
      │ ◀─ challenge B, echo A, accepted ──────── │   alice knows that bob takes her datagrams

Nothing is kept of a process before it is believed: all are given the same challenge, which is drawn anew
every minute. A peer that falls silent is greeted again; one that is silent for long is forgotten. No life can
come back after that by an old datagram: whatever challenge it ever repeated is forgotten before it is.
"""

import secrets
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

import msgspec

from priocast.core.errors import Rejected
from priocast.core.identity import NAME_LENGTH_MAX
from priocast.network.codec import hash_of
from priocast.network.rejections import Reason, Rejections
from priocast.network.replay_window import ReplayWindow
from priocast.network.udp_pace import Flow
from priocast.network.udp_security import DatagramKind, Life, Opener, Sealed, Sealer

PEERS_MAX = 256
_CHALLENGE_BYTES = 16
_CHALLENGE_SECONDS = 60.0
_FORGET_SECONDS = 120.0
_SILENCE_SECONDS = 1.0
PAUSE_SECONDS_FIRST = 0.1
PAUSE_SECONDS_MAX = 1.0

SocketAddress = tuple[Any, ...]


class Answer(IntEnum):
    """Whether whoever is greeted should answer; of those that all are greeted by, only who is new here."""

    NEVER = 0
    IF_NEW = 1
    ALWAYS = 2


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """What a GREETING says. `accepted`: we have seen you repeat our challenge."""

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
    challenge: Annotated[bytes, msgspec.Meta(min_length=_CHALLENGE_BYTES, max_length=_CHALLENGE_BYTES)]
    echo: Annotated[bytes, msgspec.Meta(max_length=_CHALLENGE_BYTES)]
    accepted: bool
    answer: Answer


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Greeting).decode


class Acquaintance:
    """A life of a peer that repeated our challenge; `confirmed` when it said that we repeated its own."""

    def __init__(self, name: str, life: bytes, opener: Opener, counter: int) -> None:
        self.name = name
        self.name_hash = hash_of(name)
        self.life = life
        self.incarnation = Life.unpacked(life).incarnation
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
        """What a datagram of this life says, unless it has said so before."""
        if not self.window.is_new(sealed.counter):
            raise Rejected(Reason.REPLAYED, f"number {sealed.counter} of {self.name}")
        content = self.opener.open(sealed)
        self.window.note(sealed.counter)
        self.heard_at = now
        return content


class Heard(NamedTuple):
    """What comes of a greeting: an answer to send, and a peer that can be reached from now on."""

    answer: bytes | None
    reached: Acquaintance | None


class Acquaintances:
    """The processes that this one knows in one group; nothing here knows of sockets or clocks."""

    def __init__(self, group: str, group_key: bytes, name: str, incarnation: int, gate: Rejections) -> None:
        self.group = group
        self._key = group_key
        self._name = name
        self._gate = gate
        self.me = Life(hash_of(group), hash_of(name), incarnation, secrets.randbits(64))
        self.own_life = self.me.packed()
        self.sealer = Sealer(group_key, self.me)
        self.peers: dict[str, Acquaintance] = {}
        self._lives: dict[bytes, Acquaintance] = {}
        self._challenges: list[bytes] = []
        self._challenge_until = 0.0
        self._draw_challenges()

    # Greetings that go out

    def greeting(self, answer: Answer = Answer.ALWAYS, echo: bytes = b"", *, accepted: bool = False) -> bytes:
        """A greeting, sealed."""
        words = Greeting(self._name, self._challenges[0], echo, accepted, answer)
        return self.sealer.seal(DatagramKind.GREETING, _encode(words))

    def due(self, now: float) -> list[tuple[bytes, SocketAddress]]:
        """The greetings that are due: to peers that have not confirmed, or from which nothing is heard."""
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
        """Whether somebody at this address has confirmed."""
        return any(peer.confirmed and peer.address == address for peer in self.peers.values())

    # Datagrams that come in

    def find(self, sealed: Sealed) -> Acquaintance:
        """The life that a datagram names, which must be one that we believe."""
        peer = self._lives.get(sealed.life)
        if peer is None:
            life = Life.unpacked(sealed.life)
            known = [each.incarnation for each in self.peers.values() if each.name_hash == life.sender]
            old = known and life.incarnation < known[0]
            raise Rejected(Reason.OLD_INCARNATION if old else Reason.NOT_INTRODUCED)
        return peer

    def on_greeting(self, sealed: Sealed, source: SocketAddress, now: float) -> Heard:
        """Somebody greets us."""
        peer = self._lives.get(sealed.life)
        opener = Opener(self._key, sealed.life) if peer is None else peer.opener
        content = opener.open(sealed) if peer is None else peer.open(sealed, now)
        greeting = self._read(content, sealed)
        is_alive = greeting.echo in self._challenges
        if peer is None:
            if not is_alive:
                if greeting.echo:
                    self._gate.note(Reason.OTHER_CHALLENGE, peer=greeting.name)
                return Heard(self._answer(greeting, None), None)
            peer = Acquaintance(greeting.name, sealed.life, opener, sealed.counter)
            self._meet(peer)
        peer.heard_at = now
        peer.challenge = greeting.challenge
        reached = None
        if is_alive:
            peer.address = source
            if greeting.accepted and not peer.confirmed:
                reached = peer
            peer.confirmed = greeting.accepted
        return Heard(self._answer(greeting, peer), reached)

    def _read(self, content: bytes, sealed: Sealed) -> Greeting:
        try:
            greeting = _decode(content)
        except msgspec.MsgspecError as error:
            raise Rejected(Reason.MALFORMED, f"a greeting cannot be read: {error}") from error
        life = Life.unpacked(sealed.life)
        if hash_of(greeting.name) != life.sender:
            raise Rejected(Reason.OTHER_SENDER, f"the header is not that of {greeting.name}")
        if greeting.name == self._name:
            raise Rejected(Reason.OWN_NAME, "give each process its own name")
        known = self.peers.get(greeting.name)
        if known is not None and life.incarnation < known.incarnation:
            raise Rejected(Reason.OLD_INCARNATION, f"{life.incarnation} after {known.incarnation}")
        return greeting

    def _answer(self, greeting: Greeting, peer: Acquaintance | None) -> bytes | None:
        confirmed = peer is not None and peer.confirmed
        if greeting.answer is Answer.NEVER or (greeting.answer is Answer.IF_NEW and confirmed):
            return None
        wanted = Answer.NEVER if confirmed else Answer.ALWAYS
        return self.greeting(wanted, greeting.challenge, accepted=peer is not None)

    def _meet(self, peer: Acquaintance) -> None:
        former = self.peers.get(peer.name)
        if former is not None:
            self._forget(former)
        elif len(self.peers) >= PEERS_MAX:
            self._gate.note(Reason.TOO_MANY_PEERS, peer=peer.name)
            self._forget(min(self.peers.values(), key=lambda each: each.heard_at))
        self.peers[peer.name] = peer
        self._lives[peer.life] = peer

    def _forget(self, peer: Acquaintance) -> None:
        del self.peers[peer.name]
        del self._lives[peer.life]
        self._draw_challenges()

    def _draw_challenges(self, former: bytes | None = None) -> None:
        """Draw a new challenge; answers to the former one may be under way, unless it must not count."""
        drawn = secrets.token_bytes(_CHALLENGE_BYTES)
        self._challenges = [drawn, former or drawn]
