"""A replicated lock with leases and fencing tokens.

A lock is granted for a time, its *lease*, so that a holder which crashes does not keep it. Whether a lease is
over is decided by the time of the order, the same at every replica: each call carries the clock of its
sender. No clock is exact, and a holder may be paused for longer than its lease. So every grant has a *fencing
token* that is higher than all before it: pass it to whatever the lock protects, and have that reject tokens
lower than one it has seen.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from priocast.core.errors import DeadlineExceeded, InvalidOption
from priocast.core.priority import ROUTINE
from priocast.core.view import View
from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject
from priocast.replication.sessions import name_of
from priocast.runtime.arguments import check_seconds

LEASE_SECONDS = 10.0
ACQUIRE_SECONDS = 30.0
_SECOND = 1_000_000_000
_CHECK_SECONDS_MIN = 0.01


class LockRequest(msgspec.Struct, array_like=True):
    """Somebody who waits for a lock: `id` identifies the call, `lease_ns` is how long it wants the lock."""

    id: str
    priority: int
    lease_ns: int


class ReplicatedLock(ReplicatedObject):
    """A lock that one call in the group has at a time; the most urgent one that waits gets it next.

        async with lock.hold(lease_seconds=5) as token:
            await storage.write(data, token)

    `holder` is the id of the call that has the lock, or empty. `token` is that of the last grant,
    `expires_ns` when its lease ends. `waiting` are the others, the next one first.
    """

    holder: str
    token: int
    expires_ns: int
    waiting: list[LockRequest]

    def __init__(self) -> None:
        self.holder = ""
        self.token = 0
        self.expires_ns = 0
        self.waiting = []
        self._numbers = count()

    @asynccontextmanager
    async def hold(
        self,
        priority: int = ROUTINE,
        *,
        lease_seconds: float = LEASE_SECONDS,
        timeout_seconds: float = ACQUIRE_SECONDS,
    ) -> AsyncIterator[int]:
        """Hold the lock within an `async with`, which yields the fencing token; options as of `acquire`."""
        token = await self.acquire(priority, lease_seconds=lease_seconds, timeout_seconds=timeout_seconds)
        try:
            yield token
        finally:
            await self.release(token)

    async def acquire(
        self,
        priority: int = ROUTINE,
        *,
        lease_seconds: float = LEASE_SECONDS,
        timeout_seconds: float = ACQUIRE_SECONDS,
    ) -> int:
        """Wait for the lock; return the fencing token of the grant.

        - `priority`: that of the call; among those who wait, the most urgent one is next.
        - `lease_seconds`: when the lock is taken away, unless it is released or renewed before.
        - `timeout_seconds`: how long to wait. Then `DeadlineExceeded` is raised, and nothing is held.
        """
        check_seconds("lease_seconds", lease_seconds, above=0)
        check_seconds("timeout_seconds", timeout_seconds, above=0)
        request = LockRequest(
            f"{self.replica.me}/{next(self._numbers)}", priority, int(lease_seconds * _SECOND)
        )
        deadline = time.monotonic() + timeout_seconds
        try:
            while not (token := await self._request.at(priority=priority)(request)):
                await self._wait_granted(request, deadline)
        except BaseException:
            await self._withdraw.at(priority=priority)(request.id)
            raise
        return token

    async def _wait_granted(self, request: LockRequest, deadline: float) -> None:
        """Wait until it is time to ask again: the lock was granted, or the holder's lease may be over."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"the lock was not granted in time: {self.holder or 'nobody'} has it")
        lease_left = (self.expires_ns - time.time_ns()) / _SECOND
        seconds = min(left, max(lease_left, _CHECK_SECONDS_MIN))
        try:
            await self.replica.wait_until(
                lambda: self.holder == request.id or not self._waits(request.id), seconds
            )
        except DeadlineExceeded:
            return

    @replicated
    def renew(self, token: int, lease_seconds: float) -> bool:
        """Begin the lease anew if the lock is still held with this token; return whether it is."""
        if not 0 < lease_seconds < 1e9:
            raise InvalidOption(f"lease_seconds must be a number of seconds above 0, not {lease_seconds}")
        if not self._is_held(token):
            return False
        self.expires_ns = self.context.time_ns + int(lease_seconds * _SECOND)
        return True

    @replicated
    def release(self, token: int) -> bool:
        """Release the lock if it is still held with this token; return whether it was."""
        if not self._is_held(token):
            return False
        self.holder = ""
        self._grant()
        return True

    @query
    def is_held_with(self, token: int) -> bool:
        """Whether the lock is held with this token, as far as the group knows."""
        return bool(self.holder) and self.token == token

    @replicated
    def _request(self, request: LockRequest) -> int:
        """Wait in line, or take the lock; return the token if this call has the lock, and 0 otherwise."""
        if self.holder and self.context.time_ns >= self.expires_ns:
            self.holder = ""
        if self.holder != request.id and not self._waits(request.id):
            self.waiting.append(request)
            self.waiting.sort(key=lambda each: -each.priority)
        self._grant()
        return self.token if self.holder == request.id else 0

    @replicated
    def _withdraw(self, request: str) -> None:
        """The call does not wait any more, and does not have the lock."""
        self.waiting = [each for each in self.waiting if each.id != request]
        if self.holder == request:
            self.holder = ""
        self._grant()

    def on_view(self, view: View) -> None:
        """Calls of members that are gone do not wait; one that is evicted asks again when it is back."""
        names = [member.name for member in view.members]
        self.waiting = [each for each in self.waiting if name_of(each.id) in names]

    def _grant(self) -> None:
        if not self.holder and self.waiting:
            request = self.waiting.pop(0)
            self.holder = request.id
            self.token += 1
            self.expires_ns = self.context.time_ns + request.lease_ns

    def _is_held(self, token: int) -> bool:
        return bool(self.holder) and self.token == token and self.context.time_ns < self.expires_ns

    def _waits(self, request: str) -> bool:
        return any(each.id == request for each in self.waiting)
