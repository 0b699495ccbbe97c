"""The queue in front of a full member: broadcasts that wait until there is room for their messages."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from priocast.core.errors import DeadlineExceeded
from priocast.core.message import Scope
from priocast.member import Member
from priocast.runtime.broadcast_handle import BroadcastHandle
from priocast.runtime.waits import logged_if_long

_REOPENING_DIVISOR = 32


class BlockedBroadcast:
    """The messages of one call. `admitted` is set once all of them are in, or when waiting is useless.

    `last` is the last message that is in.
    """

    __slots__ = ("admitted", "last", "payloads", "scope")

    def __init__(self, payloads: list[bytes], scope: Scope, admitted: asyncio.Future[None]) -> None:
        self.payloads = payloads
        self.scope = scope
        self.admitted = admitted
        self.last: BroadcastHandle | None = None

    async def wait(self, priority: int, timeout_seconds: float, why: Callable[[], str]) -> None:
        """Wait until the messages are admitted; `why` says what they wait for."""
        count = len(self.payloads)
        try:
            with logged_if_long(f"a broadcast of priority {priority} has waited for room", why):
                async with asyncio.timeout(timeout_seconds):
                    await self.admitted
        except TimeoutError:
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: {len(self.payloads)} of {count} message(s) of "
                f"priority {priority} were not broadcast: {why()}"
            ) from None


class AdmissionQueue:
    """Broadcasts that wait for room, the most urgent first.

    It admits messages once 1/32 of the member's queue is free: waking a sender for each free slot would
    produce batches of one message. (The gain is small, 2 % with four members that broadcast one message at a
    time: most of it comes from credit, which reopens in the same way.)
    """

    def __init__(self, queue_max: int) -> None:
        self._reopens_at = max(1, queue_max // _REOPENING_DIVISOR)
        self.entries: list[tuple[int, int, BlockedBroadcast]] = []
        self._count = 0

    def is_ahead_of(self, priority: int) -> bool:
        """Whether a broadcast of the same or a higher priority waits already."""
        return bool(self.entries) and -self.entries[0][0] >= priority

    def add(self, payloads: list[bytes], priority: int, scope: Scope) -> BlockedBroadcast:
        """Enqueue messages; the list is copied, because the caller may reuse it."""
        blocked = BlockedBroadcast(list(payloads), scope, asyncio.get_running_loop().create_future())
        self._count += 1
        heappush(self.entries, (-priority, self._count, blocked))
        return blocked

    def admit(self, member: Member) -> bool:
        """Broadcast the messages that there is room for; return whether there were any."""
        admitted = False
        while self.entries:
            negative_priority, _, blocked = self.entries[0]
            if not blocked.admitted.done():
                room = member.room(-negative_priority)
                if room < self._reopens_at:
                    break
                run = member.broadcast_many(blocked.payloads[:room], -negative_priority, blocked.scope)
                blocked.last = BroadcastHandle(member, run, len(run.payloads) - 1)
                blocked.payloads = blocked.payloads[room:]
                admitted = True
                if blocked.payloads:
                    break
                blocked.admitted.set_result(None)
            heappop(self.entries)
        return admitted

    def close(self) -> None:
        """Wake all callers: there will be no more room."""
        for _, _, blocked in self.entries:
            if not blocked.admitted.done():
                blocked.admitted.set_result(None)
        self.entries.clear()
