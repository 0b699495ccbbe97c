"""The asyncio driver of one member: it moves bytes, tells the time, and thinks about nothing else.

Everything that is ready is handed to the member before it gets a turn: the frames of one read, the
broadcasts of one round of the event loop. What the application took is told to the member before anything
else is, so the head that the application sees never changes under its hands.
"""

import asyncio
import time

from priocast.core.errors import DeadlineExceeded, GroupClosed, PriocastError
from priocast.core.identity import ProcessId
from priocast.core.message import Stretch
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink, Frame
from priocast.member import Member, Observer
from priocast.membership.fixed import FixedMembership
from priocast.network.interface import Network
from priocast.runtime.waiting_line import WaitingLine

_SECOND = 1_000_000_000
_GRACE_SECONDS = 2.0


class Node:
    """Drives a member over a network; the group talks to it.

    The group counts in `taken` what the application took of the head. It is settled, and `settlements`
    counts up, before anything else happens: then the head may be another one.
    """

    member: Member

    def __init__(
        self,
        me: ProcessId,
        size: int,
        order: str,
        options: OrderingOptions,
        network: Network,
        observer: Observer | None,
    ) -> None:
        self.me = me
        self.taken = 0
        self.settlements = 0
        self._membership = FixedMembership(me, size)
        self._connected: dict[ProcessId, bool] = {}
        self._order = order
        self._options = options
        self._network = network
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._complete: asyncio.Future[None] = self._loop.create_future()
        self._started = False
        self._broken: GroupClosed | None = None
        self._closed: GroupClosed | None = None
        self._turn_is_due = False
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0
        self._consumable: asyncio.Future[None] | None = None
        self._line = WaitingLine(options.queue_max)

    # Life

    async def start(self, timeout_seconds: float) -> None:
        """Find the other members; the group exists when all of them are there."""
        await self._network.start(self)
        self._check_complete()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._complete
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self._membership.missing or 'some'} of the other members did not appear within "
                f"{timeout_seconds:g} s: are they started, and are the addresses right?"
            ) from None

    async def close(self, timeout_seconds: float) -> None:
        """Let the others have what they need of us, then leave."""
        if self._started and self._closed is None:
            self._due_turn()
            deadline = time.monotonic() + timeout_seconds
            while not (self.member.idle or self._broken or self._closed) and time.monotonic() < deadline:
                await asyncio.sleep(0.005)
        self.stop(GroupClosed("the group was left"))
        await self._network.close()

    def stop(self, reason: GroupClosed) -> None:
        """End here: nothing more goes in, and whoever waits is told why."""
        if self._closed is None:
            self._closed = reason
        if self._timer is not None:
            self._timer.cancel()
        self._wake()
        self._line.dismiss()

    # What the network tells

    def introduced(self, process: ProcessId) -> None:
        self._membership.introduce(process)
        self._check_complete()

    def connected(self, peer: ProcessId) -> None:
        if self._started and self._closed is None:
            now = time.monotonic_ns()
            self.member.reconnected(peer, now)
            self._act(now)
        self._connected[peer] = True
        self._check_complete()

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        if self._closed is not None:
            return
        now = time.monotonic_ns()
        try:
            self._settle(now)
            for frame in frames:
                self.member.receive(peer, frame, now)
            self._act(now, peer)
        except Exception as error:
            self._on_fault(error)

    def departed(self, peer: ProcessId) -> None:
        """Take no more messages, but let what is under way arrive."""
        if self._broken is None:
            self._broken = GroupClosed(f"{peer.name} left, and a fixed group cannot go on without it")
            self._loop.call_later(_GRACE_SECONDS, self.stop, self._broken)

    def _on_fault(self, error: Exception) -> None:
        """A member that met a fault, a peer's or its own, takes no further part; its own is raised again."""
        if isinstance(error, PriocastError):
            self.failed(error)
            return
        self.stop(GroupClosed(f"the group had to stop, by a fault of {self.me.name} itself: {error!r}"))
        raise error

    def failed(self, error: PriocastError) -> None:
        if not self._complete.done():
            self._complete.set_exception(error)
        self.stop(GroupClosed(f"the group had to stop: {error}"))

    def _check_complete(self) -> None:
        view = self._membership.view
        if view is None or self._complete.done() or len(self._connected) < len(view.members) - 1:
            return
        self.member = Member(
            self.me, view, self._order, self._options, self._network.link_options, self._observer
        )
        self.member.start(time.monotonic_ns())
        self._started = True
        self._complete.set_result(None)
        self._network.open()

    @property
    def view(self) -> View:
        """The members of the group."""
        return self.member.view

    # What the application asks

    def broadcast(self, payload: bytes, priority: int) -> bool:
        """Take a message if there is room for it; say whether there was."""
        if self._closed or self._broken or self._line:
            return self.broadcast_many([payload], priority)
        if self.member.room(priority) <= 0:
            return False
        self.member.broadcast(payload, priority)
        self.be_due()
        return True

    def broadcast_many(self, payloads: list[bytes], priority: int) -> bool:
        """Take messages of one priority if there is room for all of them; say whether there was."""
        reason = self._closed or self._broken
        if reason is not None:
            raise reason
        if self.member.room(priority) < len(payloads) or self._line.outranks(priority):
            return False
        self.member.broadcast_many(payloads, priority)
        self.be_due()
        return True

    async def broadcast_when_room(
        self, payloads: list[bytes], priority: int, timeout_seconds: float | None
    ) -> None:
        """Take messages as room appears; whoever waits with the highest priority is let in first."""
        waiting = self._line.join(payloads, priority)
        self.be_due()
        try:
            async with asyncio.timeout(timeout_seconds):
                await waiting.admitted
        except TimeoutError:
            raise DeadlineExceeded(
                f"after {timeout_seconds:g} s, {len(waiting.payloads)} of {len(payloads)} message(s) of "
                f"priority {priority} had found no room and were not broadcast: {self.why_full()}"
            ) from None
        if self._closed is not None and waiting.payloads:
            raise self._closed

    def why_full(self) -> str:
        """What a sender that finds no room waits for."""
        return (
            f"{self.member.backlog} messages wait at {self.me.name} for a place in the order, because the "
            "slowest member has not consumed what came before"
        )

    def head(self) -> Stretch | None:
        """What the application may take next."""
        self._settle(time.monotonic_ns())
        return self.member.head()

    async def wait_head(self) -> Stretch:
        """Wait until there is something to take; raises when there will be nothing any more."""
        assert self._consumable is None, "one iteration at a time"
        while (head := self.member.head()) is None:
            if self._closed is not None:
                raise self._closed
            self._consumable = self._loop.create_future()
            try:
                await self._consumable
            finally:
                self._consumable = None
        return head

    # Between them

    def _settle(self, now: int) -> None:
        """Tell the member what the application took."""
        if self.taken:
            taken, self.taken = self.taken, 0
            self.settlements += 1
            self.member.consume(taken, now)

    def be_due(self) -> None:
        """Have a turn when this round of the event loop has handed over all it has."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._due_turn)

    def _due_turn(self) -> None:
        self._turn_is_due = False
        self.settle()

    def settle(self) -> None:
        """Tell the member what the application took, and let it act."""
        if self._closed is None:
            now = time.monotonic_ns()
            try:
                self._settle(now)
                self._act(now)
            except Exception as error:
                self._on_fault(error)

    def _act(self, now: int, answered: ProcessId | None = None) -> None:
        """Give the member a turn if it has something to do, and the network what comes of it.

        Whoever spoke to us is answered first: it waits for it, and on a machine with fewer cores than members
        each one that is woken before it costs it a tenth of a millisecond.
        """
        member = self.member
        acted = member.restless or answered is not None
        while True:
            if member.restless:
                member.act(now)
            if answered is not None:
                self._transmit(answered, member.links[answered])
            for peer, link in member.links.items():
                if link.frames:
                    self._transmit(peer, link)
                    acted = True
            if not member.restless:
                break
        if acted:
            self._set_timer(now)
            if self._line and self._line.let_in(member):
                self.be_due()
            if self._consumable is not None and member.head() is not None:
                self._wake()

    def _transmit(self, peer: ProcessId, link: FifoLink) -> None:
        if link.frames:
            frames, link.frames = link.frames, []
            self._network.send(peer, frames)

    def _wake(self) -> None:
        """Tell the application that waits that there is something to take."""
        if self._consumable is not None and not self._consumable.done():
            self._consumable.set_result(None)

    def _set_timer(self, now: int) -> None:
        """Be there at the member's deadline; a timer that comes too early does no harm.

        Links have none that is closer than an acknowledgement's: a timer that is never further away need not
        be set anew for them.
        """
        if self._timer is not None and not self.member.has_timers:
            return
        deadline = self.member.deadline
        if deadline is None:
            return
        deadline = min(deadline, now + self._network.link_options.acknowledge_after_ns)
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_later(max(0, deadline - now) / _SECOND, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = time.monotonic_ns()
        try:
            self._settle(now)
            self.member.tick(now)
            self._act(now)
            self._set_timer(now)
        except Exception as error:
            self._on_fault(error)
