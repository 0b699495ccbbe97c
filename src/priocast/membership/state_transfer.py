"""State transfer: a new member gets the application's state as of a known position in the order.

The new member asks an older one for a few chunks at a time, so the group does not wait for it, and a donor
that fails is replaced by another one. Meanwhile it keeps what is ordered. When the state is complete,
messages before its position are skipped and the rest follows.

Only members of the same part of a group can be donors: the state of another part does not contain what this
part has ordered. In a partitionable group, a new member that has lost all its donors withdraws and rejoins,
which also gives it its messages back.

    new member                                  donor
      │ ── FetchState, from this position on ──▶ │ asks its application for a snapshot once it is that far
      │ ◀─ StateChunk … ─────────────────────── │
      │ ── FetchState, from this offset on ────▶ │
"""

from priocast.core.errors import PeerFault, Rejected
from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.membership.options import MembershipOptions
from priocast.membership.outputs import MembershipOutput, RestoreState, SendControl
from priocast.membership.packets import STATE_CHUNK_BYTES, STATE_CHUNKS_MAX, FetchState, StateChunk
from priocast.membership.snapshot import Snapshot, digest_of
from priocast.membership.state_requests import StateRequests


class Donor:
    """Gives the application's state to new members.

    `wanted` is the lowest position at which a snapshot is needed, `asked_at` when somebody last asked. There
    is a snapshot for each *base*: what a new member has already.
    """

    def __init__(self, kept_ns: int) -> None:
        self.wanted: int | None = None
        self._kept_ns = kept_ns
        self.asked_at = -(1 << 62)
        self._snapshots: dict[bytes, Snapshot] = {}
        self._waiting: dict[ProcessId, FetchState] = {}
        self._served: dict[ProcessId, None] = {}

    def needs_snapshot(self, fetch: FetchState) -> bool:
        """Whether a request needs a snapshot that the application has not been asked for."""
        if self.wanted is not None and fetch.base in self.bases:
            return self.wanted < fetch.position
        snapshot = self._snapshots.get(fetch.base)
        return snapshot is None or snapshot.position < fetch.position

    @property
    def bases(self) -> list[bytes]:
        """What those who wait for a snapshot have already."""
        return list(dict.fromkeys(fetch.base for fetch in self._waiting.values()))

    def on_fetch(self, process: ProcessId, fetch: FetchState, now: int) -> list[StateChunk]:
        """The chunks to answer with; none until the application has given its state."""
        self.asked_at = now
        snapshot = self._snapshots.get(fetch.base)
        if snapshot is None or snapshot.position < fetch.position:
            self.wanted = max(fetch.position, self.wanted or 0)
            self._waiting[process] = fetch
            return []
        return self._chunks(process, snapshot, fetch)

    def _chunks(self, process: ProcessId, snapshot: Snapshot, fetch: FetchState) -> list[StateChunk]:
        offset = fetch.offset if fetch.digest == snapshot.digest else 0
        if offset + fetch.chunks * STATE_CHUNK_BYTES >= len(snapshot.data):
            self._served[process] = None
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
                min(offset + fetch.chunks * STATE_CHUNK_BYTES, max(len(snapshot.data), 1)),
                STATE_CHUNK_BYTES,
            )
        ]

    def offer(self, position: int, data: bytes, base: bytes = b"") -> list[tuple[ProcessId, StateChunk]]:
        """The application gives its state before this position; return the answers to those who wait.

        Those who have `base` get this. If it is the whole state, it is kept once, whoever gets it.
        """
        assert self.wanted is not None and position >= self.wanted
        offered = Snapshot(position, digest_of(data), data)
        snapshot = next((each for each in self._snapshots.values() if each == offered), offered)
        self._snapshots[base] = snapshot
        waiting = {process: fetch for process, fetch in self._waiting.items() if fetch.base == base}
        self._waiting = {process: fetch for process, fetch in self._waiting.items() if fetch.base != base}
        if not self._waiting:
            self.wanted = None
        return [
            (process, chunk)
            for process, fetch in waiting.items()
            for chunk in self._chunks(process, snapshot, fetch)
        ]

    def tick(self, now: int) -> list[ProcessId]:
        """Forget a snapshot that nobody asks for any more; return the members that got all of it."""
        if now - self.asked_at <= self._kept_ns:
            return []
        self.wanted = None
        self._snapshots.clear()
        self._waiting.clear()
        served, self._served = list(self._served), {}
        return served


class Restoration:
    """A new member's wait for the state.

    It asks for one chunk first, and for twice as many each time all of them came quickly: chunks in flight
    must not delay heartbeats. It asks again only when nothing came for a while, and asks another donor when
    nothing came for long.
    """

    def __init__(
        self,
        view: ViewId,
        donors: list[ProcessId],
        position: int,
        failure_ns: int,
        now: int,
        base: bytes = b"",
    ) -> None:
        self._base = base
        self._view = view
        self.donors = donors
        self._position = position
        self._quick_ns = failure_ns // 8
        self._retry_ns = failure_ns // 2
        self._patience_ns = 4 * failure_ns
        self._donor_index = 0
        self._moved_at = now
        self._asked_at = now
        self._chunks_wanted = 1
        self._begin(b"", 0)

    @property
    def progress(self) -> float:
        """The fraction of the state that has been received."""
        return len(self._data) / self._size if self._size else 0.0

    @property
    def donor(self) -> ProcessId | None:
        """The member that is asked now; None while there is none to ask."""
        return self.donors[self._donor_index % len(self.donors)] if self.donors else None

    def request(self, now: int) -> FetchState:
        """The next request to the donor."""
        self._asked_at = now
        self._asked_until = len(self._data) + self._chunks_wanted * STATE_CHUNK_BYTES
        return FetchState(
            self._view, self._position, self._digest, len(self._data), self._chunks_wanted, self._base
        )

    def replace_donors(self, donors: list[ProcessId], now: int) -> None:
        """The view has changed: these members can be asked."""
        present = self.donor
        self.donors = donors
        self._donor_index = donors.index(present) if present in donors else 0
        self._moved_at = now

    def tick(self, now: int) -> bool:
        """Change to another donor if this one does not answer; return whether to ask again.

        A donor that has given nothing yet may have nothing to give, and gets less time.
        """
        if now - self._moved_at >= (self._patience_ns if self._data else 2 * self._retry_ns):
            self._donor_index += 1
            self._moved_at = now
        elif now - max(self._asked_at, self._moved_at) < self._retry_ns:
            return False
        self._chunks_wanted = 1
        return True

    def on_chunk(self, process: ProcessId, chunk: StateChunk, now: int) -> Snapshot | None:
        """Take a chunk; return the state when it is complete. Raises PeerFault if it is damaged."""
        if process != self.donor or chunk.position < self._position:
            return None
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
        """Whether everything that was asked for has come, and more is needed."""
        if len(self._data) < self._asked_until:
            return False
        if now - self._asked_at < self._quick_ns:
            self._chunks_wanted = min(2 * self._chunks_wanted, STATE_CHUNKS_MAX)
        return True

    def _begin(self, digest: bytes, size: int) -> None:
        self._digest = digest
        self._size = size
        self._data = bytearray()
        self._asked_until = self._chunks_wanted * STATE_CHUNK_BYTES


class StateTransfer:
    """Both sides of one member: the state that it gives, and the state that it waits for.

    `base` is what the application has of the group's state when this member joins, in its own terms.
    """

    def __init__(self, me: ProcessId, options: MembershipOptions) -> None:
        self._me = me
        self._options = options
        self.base = b""
        self.donor = Donor(4 * options.failure_ns)
        self._requests = StateRequests()
        self.restoration: Restoration | None = None

    def on_view(self, view: View, is_new: bool, position: int, now: int) -> list[MembershipOutput]:
        """A view was installed. A member that is new in the group has to wait for the state."""
        early = self._requests.on_view(view, position, is_new=is_new, has_state=self._options.state)
        outputs = [
            output
            for process, fetch in early
            if self._may_serve(fetch, now)
            for output in self._serve(process, fetch, now)
        ]
        if not is_new:
            if self.restoration is not None:
                self.restoration.replace_donors(self._donors_in(view, self.restoration.donors), now)
            return outputs
        donors = [member for part in view.parts if part.view for member in part.members]
        if not self._options.state or not donors:
            return []
        failure_ns = self._options.failure_ns
        self.restoration = Restoration(view.id, donors, position, failure_ns, now, self.base)
        return self._ask(now)

    def _donors_in(self, view: View, before: list[ProcessId]) -> list[ProcessId]:
        """Who can be asked in the next view: members of this member's part.

        In a primary group, any of them may have got the state meanwhile. In a partitionable group, where a
        member can do without them, only those that were in the group before it: new members that have lost
        everybody else would wait for each other.
        """
        others = [member for member in view.part_of(self._me).members if member != self._me]
        return others if self._options.primary else [member for member in others if member in before]

    def on_tick(self, now: int) -> list[MembershipOutput]:
        """Forget an unused snapshot; ask again for the state that this member waits for."""
        for process in self.donor.tick(now):
            self._requests.on_served(process)
        if self.restoration is None or not self.restoration.tick(now):
            return []
        return self._ask(now)

    def on_snapshot(self, position: int, data: bytes, base: bytes = b"") -> list[SendControl]:
        """The application gives its state before this position, to those who have `base`."""
        return [SendControl(process, chunk) for process, chunk in self.donor.offer(position, data, base)]

    def on_fetch(self, process: ProcessId, fetch: FetchState, now: int) -> list[MembershipOutput]:
        """A new member asks for the state. Raises Rejected if it may not, or not so often."""
        if not self._requests.admit(process, fetch):
            return []
        if not self._may_serve(fetch, now):
            raise Rejected("state requested too often", f"by {process}")
        return self._serve(process, fetch, now)

    def _may_serve(self, fetch: FetchState, now: int) -> bool:
        return not self.donor.needs_snapshot(fetch) or self._requests.admit_snapshot(now)

    def _serve(self, process: ProcessId, fetch: FetchState, now: int) -> list[MembershipOutput]:
        return [SendControl(process, chunk) for chunk in self.donor.on_fetch(process, fetch, now)]

    def on_chunk(self, process: ProcessId, chunk: StateChunk, now: int) -> list[MembershipOutput]:
        """A chunk of the state came."""
        if self.restoration is None:
            return []
        snapshot = self.restoration.on_chunk(process, chunk, now)
        if snapshot is not None:
            self.restoration = None
            return [RestoreState(snapshot)]
        return self._ask(now) if self.restoration.wants_more(now) else []

    @property
    def has_lost_donors(self) -> bool:
        """Whether this member waits for a state that nobody in its part can give it.

        A member of a primary group must not give up: if others did so as well, they would found the group
        again, without its state.
        """
        restoration = self.restoration
        return not self._options.primary and restoration is not None and not restoration.donors

    def is_asked(self, now: int) -> bool:
        """Whether another member is fetching the state from this one."""
        return self.donor.asked_at > now - self._options.failure_ns

    def _ask(self, now: int) -> list[MembershipOutput]:
        assert self.restoration is not None
        donor = self.restoration.donor
        return [] if donor is None else [SendControl(donor, self.restoration.request(now))]
