"""The line in front of a full queue: what the application wants to broadcast and what finds no room."""

import asyncio
from heapq import heappop, heappush

from priocast.core.message import Scope
from priocast.member import Member

_REOPENING_DIVISOR = 32


class Waiting:
    """Messages of one call; `admitted` is set when all of them are in, or when there is no use in waiting."""

    __slots__ = ("admitted", "payloads", "scope")

    def __init__(self, payloads: list[bytes], scope: Scope, admitted: asyncio.Future[None]) -> None:
        self.payloads = payloads
        self.scope = scope
        self.admitted = admitted


class WaitingLine:
    """Who waits for room, the most urgent first.

    The line moves when a part of the queue is free: waking a sender for every single free place would make
    batches of one. (The gain is small, 2 % with four members that broadcast one message at a time: most of it
    comes from credit, which reopens in the same way.)
    """

    def __init__(self, queue_max: int) -> None:
        self._reopens_at = max(1, queue_max // _REOPENING_DIVISOR)
        self.entries: list[tuple[int, int, Waiting]] = []
        self._arrivals = 0

    def __bool__(self) -> bool:
        return bool(self.entries)

    def outranks(self, priority: int) -> bool:
        """Whether someone with the same or a higher priority waits already."""
        return bool(self.entries) and -self.entries[0][0] >= priority

    def join(self, payloads: list[bytes], priority: int, scope: Scope) -> Waiting:
        """Let messages wait; the list stays the caller's, who may use it for others meanwhile."""
        waiting = Waiting(list(payloads), scope, asyncio.get_running_loop().create_future())
        self._arrivals += 1
        heappush(self.entries, (-priority, self._arrivals, waiting))
        return waiting

    def let_in(self, member: Member) -> bool:
        """Broadcast what there is room for; say whether there was anything."""
        moved = False
        while self.entries:
            outranking, _, waiting = self.entries[0]
            if not waiting.admitted.done():
                room = member.room(-outranking)
                if room < self._reopens_at:
                    break
                member.broadcast_many(waiting.payloads[:room], -outranking, waiting.scope)
                waiting.payloads = waiting.payloads[room:]
                moved = True
                if waiting.payloads:
                    break
                waiting.admitted.set_result(None)
            heappop(self.entries)
        return moved

    def dismiss(self) -> None:
        """There will be no room any more."""
        for _, _, waiting in self.entries:
            if not waiting.admitted.done():
                waiting.admitted.set_result(None)
        self.entries.clear()
