"""State transfer: a new member gets the application's state as of a known place in the order.

The new member asks one that was there before for a piece at a time, so the group does not wait for it and a
donor that fails is replaced by another one. Meanwhile it keeps what is ordered; when the state is there, what
came before its position is left out and the rest follows.

    new member                                  donor
      │ ── FetchState, from this position on ──▶ │ asks its application for a snapshot, once it is that far
      │ ◀─ StateChunk … ─────────────────────── │
      │ ── FetchState, from this offset on ────▶ │
"""

from collections.abc import Callable
from hashlib import blake2b

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import (
    STATE_CHUNK_BYTES,
    STATE_PIECES_MAX,
    Control,
    FetchState,
    StateChunk,
)

STATE_BYTES_MAX = 1 << 30
_DIGEST_BYTES = 16


def digest_of(data: bytes) -> bytes:
    """What names a snapshot, and shows whether it arrived whole."""
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


class Snapshot(msgspec.Struct, frozen=True):
    """The application's state before the message at `position`."""

    position: int
    digest: bytes
    data: bytes


class Donor:
    """Gives the application's state to new members.

    `wanted` is the place from which on one is needed, `asked_at` when somebody last asked.
    """

    def __init__(self, kept_ns: int) -> None:
        self.wanted: int | None = None
        self._kept_ns = kept_ns
        self.asked_at = -(1 << 62)
        self._snapshot: Snapshot | None = None
        self._waiting: dict[ProcessId, FetchState] = {}

    def on_fetch(self, process: ProcessId, fetch: FetchState, now: int) -> list[StateChunk]:
        """What to answer; nothing until the application has given its state."""
        self.asked_at = now
        snapshot = self._snapshot
        if snapshot is None or snapshot.position < fetch.position:
            self.wanted = max(fetch.position, self.wanted or 0)
            self._waiting[process] = fetch
            return []
        return self._pieces(snapshot, fetch)

    def _pieces(self, snapshot: Snapshot, fetch: FetchState) -> list[StateChunk]:
        offset = fetch.offset if fetch.digest == snapshot.digest else 0
        return [
            StateChunk(
                snapshot.position,
                snapshot.digest,
                len(snapshot.data),
                start,
                snapshot.data[start : start + STATE_CHUNK_BYTES],
            )
            for start in range(
                offset,
                min(offset + fetch.pieces * STATE_CHUNK_BYTES, max(len(snapshot.data), 1)),
                STATE_CHUNK_BYTES,
            )
        ]

    def offer(self, position: int, data: bytes) -> list[tuple[ProcessId, StateChunk]]:
        """The application's state as it is before this position; return what to answer those who wait."""
        assert self.wanted is not None and position >= self.wanted
        self._snapshot = Snapshot(position, digest_of(data), data)
        self.wanted = None
        waiting, self._waiting = self._waiting, {}
        return [
            (process, chunk)
            for process, fetch in waiting.items()
            for chunk in self._pieces(self._snapshot, fetch)
        ]

    def tick(self, now: int) -> None:
        """Forget a snapshot that nobody asks for any more."""
        if now - self.asked_at > self._kept_ns:
            self._snapshot = self.wanted = None
            self._waiting.clear()


class Restoration:
    """A new member's wait for the state.

    It asks for one piece first, and for twice as many each time that all came quickly: what is on its way
    must not keep signs of life waiting. It asks again only when nothing came for a while, and turns to
    another donor when nothing came for long.
    """

    def __init__(
        self, view: ViewId, donors: list[ProcessId], position: int, failure_ns: int, now: int
    ) -> None:
        self._view = view
        self._donors = donors
        self._position = position
        self._quick_ns = failure_ns // 8
        self._retry_ns = failure_ns // 2
        self._patience_ns = 4 * failure_ns
        self._donor_index = 0
        self._moved_at = now
        self._asked_at = now
        self._pieces = 1
        self._begin(b"", 0)

    @property
    def progress(self) -> float:
        """How much of the state is here."""
        return len(self._data) / self._size if self._size else 0.0

    @property
    def donor(self) -> ProcessId | None:
        """The member that is asked now; None while there is nobody to ask."""
        return self._donors[self._donor_index % len(self._donors)] if self._donors else None

    def request(self, now: int) -> FetchState:
        """What to ask the donor."""
        self._asked_at = now
        self._asked_until = len(self._data) + self._pieces * STATE_CHUNK_BYTES
        return FetchState(self._view, self._position, self._digest, len(self._data), self._pieces)

    def replace_donors(self, donors: list[ProcessId], now: int) -> None:
        """The view has changed: these are the ones to ask."""
        present = self.donor
        self._donors = donors
        self._donor_index = donors.index(present) if present in donors else 0
        self._moved_at = now

    def tick(self, now: int) -> bool:
        """Turn to another donor if this one does not answer; return whether to ask again.

        Whoever has given nothing yet may have nothing to give, and is not waited for as long.
        """
        if now - self._moved_at >= (self._patience_ns if self._data else 2 * self._retry_ns):
            self._donor_index += 1
            self._moved_at = now
        elif now - max(self._asked_at, self._moved_at) < self._retry_ns:
            return False
        self._pieces = 1
        return True

    def on_chunk(self, process: ProcessId, chunk: StateChunk, now: int) -> Snapshot | None:
        """Take a piece; return the state when it is whole. Raises PeerFault if it turns out to be damaged."""
        if process != self.donor or chunk.position < self._position:
            return None
        if chunk.size > STATE_BYTES_MAX:
            raise PeerFault(f"{process} offers a state of {chunk.size:,} bytes, which is over the limit")
        if chunk.digest != self._digest:
            self._begin(chunk.digest, chunk.size)
        if chunk.offset != len(self._data) or chunk.size != self._size:
            return None
        self._data += chunk.data
        self._moved_at = now
        if len(self._data) < self._size:
            return None
        data = bytes(self._data)
        if len(data) != self._size or digest_of(data) != self._digest:
            self._begin(b"", 0)
            self._donor_index += 1
            raise PeerFault(f"{process} gave a state that is damaged: another member is asked")
        return Snapshot(chunk.position, chunk.digest, data)

    def wants_more(self, now: int) -> bool:
        """Whether all that was asked for has come, and more is needed."""
        if len(self._data) < self._asked_until:
            return False
        if now - self._asked_at < self._quick_ns:
            self._pieces = min(2 * self._pieces, STATE_PIECES_MAX)
        return True

    def _begin(self, digest: bytes, size: int) -> None:
        self._digest = digest
        self._size = size
        self._data = bytearray()
        self._asked_until = self._pieces * STATE_CHUNK_BYTES


class StateTransfer:
    """Both sides of one member: what it gives, and what it waits for."""

    def __init__(
        self,
        options: MembershipOptions,
        tell: Callable[[ProcessId, Control], None],
        restore: Callable[[Snapshot], None],
    ) -> None:
        self._options = options
        self._tell = tell
        self._restore = restore
        self.donor = Donor(4 * options.failure_ns)
        self.restoration: Restoration | None = None

    def begin(self, me: ProcessId, view: View, is_new: bool, position: int, now: int) -> bool:
        """A view begins; return whether this member, if it is new in the group, has to wait for the state."""
        if not is_new:
            if self.restoration is not None:
                self.restoration.replace_donors([member for member in view.members if member != me], now)
            return False
        donors = [member for part in view.parts if part.view for member in part.members]
        if not self._options.state or not donors:
            return False
        self.restoration = Restoration(view.id, donors, position, self._options.failure_ns, now)
        self._ask(self.restoration, now)
        return True

    def tick(self, now: int) -> None:
        """Do what is due."""
        self.donor.tick(now)
        if self.restoration is not None and self.restoration.tick(now):
            self._ask(self.restoration, now)

    def offer(self, position: int, data: bytes) -> None:
        """The application's state as it is before this position."""
        for process, chunk in self.donor.offer(position, data):
            self._tell(process, chunk)

    def on_fetch(self, process: ProcessId, fetch: FetchState, now: int) -> None:
        """A new member asks for the state."""
        for chunk in self.donor.on_fetch(process, fetch, now):
            self._tell(process, chunk)

    def on_chunk(self, process: ProcessId, chunk: StateChunk, now: int) -> None:
        """A piece of the state came."""
        if self.restoration is None:
            return
        snapshot = self.restoration.on_chunk(process, chunk, now)
        if snapshot is not None:
            self.restoration = None
            self._restore(snapshot)
        elif self.restoration.wants_more(now):
            self._ask(self.restoration, now)

    def is_asked(self, now: int) -> bool:
        """Whether somebody is fetching our state."""
        return self.donor.asked_at > now - self._options.failure_ns

    def _ask(self, restoration: Restoration, now: int) -> None:
        if restoration.donor is not None:
            self._tell(restoration.donor, restoration.request(now))
