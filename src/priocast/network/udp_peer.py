"""A peer over UDP: its session, its address, and which of its datagrams were received."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from priocast.core.errors import Rejected
from priocast.core.role import Role
from priocast.network.codec import hash_of
from priocast.network.rejections import Reason
from priocast.network.replay_window import ReplayWindow
from priocast.network.udp_pace import Flow
from priocast.network.udp_security import Opener, Sealed, Session

if TYPE_CHECKING:
    from priocast.network.udp_certificates import Pair

PAUSE_SECONDS_FIRST = 0.1
_CERTIFICATE_BYTES_MAX = 8192
_SIGNATURE_BYTES_MAX = 128
_PUBLIC_KEY_BYTES = 32

SocketAddress = tuple[Any, ...]


class SessionProof(msgspec.Struct, frozen=True, array_like=True):
    """The public key and the role of a session, signed with the key of the certificate."""

    certificate: Annotated[bytes, msgspec.Meta(max_length=_CERTIFICATE_BYTES_MAX)]
    public_key: Annotated[bytes, msgspec.Meta(min_length=_PUBLIC_KEY_BYTES, max_length=_PUBLIC_KEY_BYTES)]
    role: Role
    signature: Annotated[bytes, msgspec.Meta(max_length=_SIGNATURE_BYTES_MAX)]


class KnownPeer:
    """A session of a peer that echoed our challenge; `confirmed` once it has accepted our echo.

    `pair` holds the keys that we share with it alone, if there are certificates. `heard_at` is when it was
    last heard, `heard_here_at` when from its `address`.
    """

    def __init__(
        self, name: str, role: Role, session: bytes, opener: Opener, counter: int, pair: "Pair | None"
    ) -> None:
        self.name = name
        self.role = role
        self.pair = pair
        self.cipher = pair.seals if pair else None
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
        self.known_since = time.time()
        self.heard_at = 0.0
        self.heard_here_at = 0.0
        self.greet_at = 0.0
        self.pause = PAUSE_SECONDS_FIRST

    def open(self, sealed: Sealed, me: bytes) -> bytes:
        """The content of a datagram that this session sealed for `me`, unless it was received before."""
        if not self.window.is_new(sealed.counter):
            raise Rejected(Reason.REPLAYED, f"counter {sealed.counter} of {self.name}")
        return self.opener.open(sealed, me)

    def on_heard(self, counter: int, source: SocketAddress, now: float) -> None:
        """A datagram was opened, and is accepted."""
        self.window.note(counter)
        self.heard_at = now
        if source == self.address:
            self.heard_here_at = now
