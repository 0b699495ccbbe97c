"""Members in one process, without a network and in virtual time: only what they compute takes time.

A frame takes a millisecond. Only members to which something arrives, or for which something is due, are given
a turn, so the group costs nothing itself that grows with its size.
"""

import time
from collections.abc import Callable
from heapq import heappop, heappush

from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch
from priocast.core.protocol import OrderingOptions
from priocast.links.frame import RELIABLE_NETWORK, Frame
from priocast.member import Member
from priocast.membership.options import MembershipOptions

MILLISECOND = 1_000_000
_OPTIONS = OrderingOptions()
Arrived = list[tuple[ProcessId, list[Frame]]]
_Arrivals = dict[str, Arrived]


class DrivenGroup:
    """Members by name.

    `frames`, `deliveries` and `batches` (delivered) count those of all members, `seconds` the processor time.
    """

    def __init__(self, size: int, order: str = "sequencer-ub", options: OrderingOptions = _OPTIONS) -> None:
        self.now = 0
        self.members: dict[str, Member] = {}
        self.frames = 0
        self.deliveries = 0
        self.batches = 0
        self.seconds = 0.0
        self._order = order
        self._ordering = options
        self._options = MembershipOptions(founders=size)
        self._arrivals: dict[int, _Arrivals] = {}
        self._due: list[tuple[int, str]] = []
        for number in range(size):
            self.start(f"m{number:03}")

    def start(self, name: str, incarnation: int = 1) -> Member:
        """Start a process, which can reach all others."""
        member = Member(
            ProcessId(name, incarnation),
            self._order,
            self._ordering,
            self._options,
            RELIABLE_NETWORK,
            now=self.now,
        )
        for other in self.members.values():
            other.reachable(name, self.now)
            member.reachable(other.me.name, self.now)
            heappush(self._due, (self.now, other.me.name))
        self.members[name] = member
        heappush(self._due, (self.now, name))
        return member

    def broadcast(self, name: str, payload: bytes, priority: int = 7) -> None:
        """Let a member broadcast a message now."""
        self.members[name].broadcast(payload, priority)
        heappush(self._due, (self.now, name))

    def run_until(self, condition: Callable[[], object], milliseconds_max: int = 60_000) -> None:
        """Let time pass until a condition holds."""
        end = self.now + milliseconds_max * MILLISECOND
        began = time.process_time()
        while not condition():
            assert self.now < end, f"not within {milliseconds_max} ms"
            self._step()
        self.seconds += time.process_time() - began

    def run(self, milliseconds: int) -> None:
        """Let this much time pass."""
        end = self.now + milliseconds * MILLISECOND
        self.run_until(lambda: self.now >= end, 2 * milliseconds)

    def wait_view(self, *names: str) -> None:
        """Wait until these members are in a view of exactly these members; all, if none are named."""
        expected = set(names or self.members)

        def is_in_view(name: str) -> bool:
            view = self.members[name].view
            return view is not None and len(view.members) == len(expected)

        self.run_until(lambda: all(map(is_in_view, expected)))

    def _step(self) -> None:
        """Go to the next time at which something arrives or is due, and give the members their turns."""
        while self._due and self._due[0][1] not in self.members:
            heappop(self._due)
        self.now = max(self.now, min((self._due[0][0], *self._arrivals)))
        arrivals = self._arrivals.pop(self.now, {})
        names = dict.fromkeys(arrivals)
        while self._due and self._due[0][0] <= self.now:
            names[heappop(self._due)[1]] = None
        for name in names:
            if name in self.members:
                self._turn(self.members[name], arrivals.get(name, []))

    def _turn(self, member: Member, arrived: Arrived) -> None:
        now = self.now
        for peer, frames in arrived:
            member.receive(peer, frames, now)
            self.frames += len(frames)
        if now >= member.deadline:
            member.tick(now)
        member.turn(now)
        self._consume(member)
        member.turn(now)
        written = member.frames(now)
        if written:
            later = self._arrivals.setdefault(now + MILLISECOND, {})
            for to, frames in written:
                later.setdefault(to, []).append((member.me, frames))
        if member.departed is not None:
            del self.members[member.me.name]
        else:
            heappush(self._due, (max(member.deadline, now + 1), member.me.name))

    def _consume(self, member: Member) -> None:
        while (head := member.head(self.now)) is not None:
            if isinstance(head, OrderedBatch):
                self.batches += 1
                count = head.batch.count - head.taken
                member.consume(count, self.now)
                self.deliveries += count
            else:
                member.consume_event(self.now)
