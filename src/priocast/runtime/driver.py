"""The asyncio driver of one member: it moves frames, tells the time, and thinks about nothing else.

Everything that is ready is handed to the member before it gets a turn: the frames of one read, the
broadcasts of one round of the event loop. What the application took is told to the member before anything
else is, so the head that the application sees never changes under its hands.

A member that was put out of the group is followed by its next life, if it may come back.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from priocast.core.errors import DeadlineExceeded, GroupClosed, JoinRejected, PriocastError
from priocast.core.events import Evicted, Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, OrderedBatch, Scope
from priocast.links.fifo_link import Frame
from priocast.member import Member
from priocast.membership.observer import Observer
from priocast.membership.stream import StateRestore, ViewStart
from priocast.membership.unordered import UnorderedMessages
from priocast.network.interface import Network, Port
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.waiting_line import WaitingLine

_SECOND = 1_000_000_000
_EVICTIONS_KEPT = 32


class Driver:
    """Drives the lives of one member over a network; the group talks to it.

    The group counts in `taken` what the application took of the head. It is settled, and `settlements`
    counts up, before anything else happens: then the head may be another one. `stops` says when it was put
    out of the group, and why; `advice`, what a group that chooses its order by itself thinks of it.
    """

    def __init__(
        self,
        configuration: MemberConfiguration,
        network: Network,
        incarnations: Incarnations,
        incarnation: int | None,
        observe: Callable[[ProcessId], Observer | None],
    ) -> None:
        self.configuration = configuration
        self.taken = 0
        self.settlements = 0
        self.incarnations = 0
        self.advice = ""
        self._network = network
        self._incarnations = incarnations
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._joined: asyncio.Future[None] = self._loop.create_future()
        self._is_joined = False
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._closed: GroupClosed | None = None
        self._leaving = False
        self._turn_is_due = False
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0
        self._consumable: asyncio.Future[None] | None = None
        self._notices: deque[Evicted] = deque()
        self.evictions: deque[tuple[str, int]] = deque(maxlen=_EVICTIONS_KEPT)
        self._line = WaitingLine(configuration.options.queue_max)
        self._port: Port | None = None
        self.member = self._member(incarnation or incarnations.next(), None)

    # Life

    def _member(self, incarnation: int, unordered_messages: UnorderedMessages | None) -> Member:
        configuration = self.configuration
        me = ProcessId(configuration.name, incarnation)
        self.incarnations += 1
        return Member(
            me,
            configuration.order,
            configuration.options,
            configuration.membership,
            self._network.link_options,
            self._observe(me),
            time.monotonic_ns(),
            unordered_messages,
        )

    async def start(self, timeout_seconds: float) -> None:
        """Find the other members; returns when this one is in a view."""
        self._port = self._network.open(self.configuration.group, self.member.me, self)
        self.be_due()
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(self._joined)
        except TimeoutError:
            why = self.member.membership.proposer.objection
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: no view of group {self.configuration.group!r} "
                f"contains {self.configuration.name}; are the other members running, are the addresses right?"
                + (f" ({why})" if why else "")
            ) from None

    async def close(self, timeout_seconds: float) -> None:
        """Wait until all that was broadcast here has its place, and until the others have let us go."""
        try:
            if self._closed is None and self._is_joined:
                await self._leave(timeout_seconds)
        finally:
            self.member.end("the group was left", time.monotonic_ns())
            self.stop(GroupClosed("the group was left"))
            if self._port is not None:
                self._port.close()

    async def _leave(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        self.be_due()
        while not self._closed and time.monotonic() < deadline:
            if self.member.may_leave(time.monotonic_ns()):
                break
            await asyncio.sleep(0.002)
        self._leaving = True
        now = time.monotonic_ns()
        self.member.leave(now)
        self._act(now)
        left_seconds = max(0.0, deadline - time.monotonic())
        if not self._gone.done() and timeout_seconds:
            await asyncio.wait([self._gone], timeout=left_seconds)

    def stop(self, reason: GroupClosed) -> None:
        """End here: nothing more goes in, and whoever waits is told why."""
        if self._closed is None:
            self._closed = reason
        if self._timer is not None:
            self._timer.cancel()
        self._wake()
        self._line.dismiss()
        if not self._gone.done():
            self._gone.set_result(None)
        self._refuse(reason)

    def _on_departed(self) -> None:
        """This life is over: begin the next one, or stop."""
        member = self.member
        assert member.departed is not None and self._port is not None
        if member.departed.voluntary or self._leaving:
            self.stop(GroupClosed("the group was left"))
            return
        self.evictions.append((member.departed.reason, time.monotonic_ns()))
        self.taken = 0
        self.settlements += 1
        self._notices.append(Evicted(member.departed.reason))
        if not self.configuration.membership.rejoin:
            self.stop(GroupClosed(f"{self.configuration.name} is out of the group: {member.departed}"))
            return
        self._port.close()
        self.member = self._member(self._incarnations.next(), member.unordered_messages())
        self._port = self._network.open(self.configuration.group, self.member.me, self)
        self.be_due()
        self._wake()

    @property
    def network_rejections(self) -> dict[str, int]:
        """What the network turned away, by reason."""
        return dict(self._network.rejections)

    # What the network tells

    def reachable(self, peer: str) -> None:
        if self._closed is None:
            try:
                self.member.reachable(peer, time.monotonic_ns())
            except Exception as error:
                self._on_fault(error)
            self.be_due()

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        if self._closed is not None:
            return
        now = time.monotonic_ns()
        try:
            if self.taken:
                self._settle(now)
            self.member.receive(peer, frames, now)
            self._act(now, peer)
        except Exception as error:
            self._on_fault(error)

    def failed(self, error: PriocastError) -> None:
        self._refuse(error)
        self.stop(GroupClosed(f"the group had to stop: {error}"))

    def _on_fault(self, error: Exception) -> None:
        """A member that met a fault of its own takes no further part, and the fault is raised again."""
        closed = GroupClosed(
            f"the group had to stop, by a fault of {self.configuration.name} itself: {error!r}"
        )
        closed.__cause__ = error
        self.stop(closed)
        raise error

    def _refuse(self, error: PriocastError) -> None:
        """Tell whoever waits to join, if somebody does, that nothing will come of it."""
        if not self._joined.done():
            self._joined.set_exception(error)
            self._joined.exception()  # asyncio complains of errors that nobody has looked at

    # What the application asks

    def broadcast(self, payload: bytes, priority: int) -> bool:
        """Take a message if there is room for it; say whether there was."""
        if self._closed or self._line.entries:
            return self.broadcast_many([payload], priority)
        if self.member.room(priority) <= 0:
            return False
        self.member.broadcast(payload, priority)
        self.be_due()
        return True

    def broadcast_many(self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL) -> bool:
        """Take messages of one priority if there is room for all of them; say whether there was."""
        if self._closed is not None:
            raise self._closed
        if self.member.room(priority) < len(payloads) or self._line.outranks(priority):
            return False
        self.member.broadcast_many(payloads, priority, scope)
        self.be_due()
        return True

    async def broadcast_when_room(
        self, payloads: list[bytes], priority: int, scope: Scope, timeout_seconds: float | None
    ) -> None:
        """Take messages as room appears; whoever waits with the highest priority is let in first."""
        waiting = self._line.join(payloads, priority, scope)
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
        backlog = f"{self.member.backlog} messages wait at {self.configuration.name} for a place in the order"
        if self.member.view is None:
            return (
                f"{backlog}, because {self.configuration.name} is not in the group now and tries to come back"
            )
        if self.member.membership.suspended:
            return f"{backlog}, because no majority of the group can be reached"
        return f"{backlog}, because the slowest member has not consumed what came before"

    def head(self) -> OrderedBatch | ViewStart | StateRestore | Evicted | None:
        """What the application may take next."""
        if self._notices:
            return self._notices[0]
        now = time.monotonic_ns()
        if self.taken:
            self._settle(now)
        member = self.member
        if member.state.donor.wanted is not None and member.snapshot_wanted:
            self._give_snapshot()
        return member.stream.head(member.membership.epoch, now)

    async def wait_head(self) -> OrderedBatch | ViewStart | StateRestore | Evicted:
        """Wait until there is something to take; raises when there will be nothing any more."""
        assert self._consumable is None, "one iteration at a time"
        while (head := self.head()) is None:
            if self._closed is not None:
                raise self._closed
            self._consumable = self._loop.create_future()
            try:
                await self._consumable
            finally:
                self._consumable = None
        return head

    def take_event(self, head: ViewStart | StateRestore | Evicted) -> ViewChange | Restored | Evicted:
        """The application takes the head, which is not a message."""
        if isinstance(head, Evicted):
            return self._notices.popleft()
        if isinstance(head, StateRestore):
            assert self.configuration.state is not None
            self.configuration.state.load(head.snapshot.data)
        event = self.member.consume_event(time.monotonic_ns())
        self.be_due()
        return event

    def _give_snapshot(self) -> None:
        """The application has dealt with all that it took, so its state is that of this position."""
        state = self.configuration.state
        self.member.offer_snapshot(state.snapshot() if state else b"")
        self.be_due()

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
        """Give the member its turns, and the network what comes of them.

        Whoever spoke to us is answered first: it waits for it, and on a machine with fewer cores than members
        each one that is woken before it costs it a tenth of a millisecond.
        """
        member, port = self.member, self._port
        if port is None or self._closed is not None:
            return
        restless = member.restless
        while True:
            if restless:
                member.act(now)
            for name, frames in member.frames(now, answered):
                port.send(name, frames)
            if not restless or not member.restless:
                break
        port.flush()
        if member.departed is not None:
            self._on_departed()
        else:
            self._look_after(member, now)

    def _look_after(self, member: Member, now: int) -> None:
        """What may have changed with a turn: the timer, and who waits to join, to broadcast or to consume."""
        if self._timer is None or member.has_timers:
            self._set_timer(now)
        if not self._is_joined and not self._joined.done():
            self._check_joined()
        if self._line.entries and self._line.let_in(member):
            self.be_due()
        waits = self._consumable is not None and not self._consumable.done()
        if waits and (member.snapshot_wanted or member.head(now) is not None):
            self._wake()

    def _check_joined(self) -> None:
        if self.member.view is not None:
            self._joined.set_result(None)
            self._is_joined = True
        elif self.member.membership.mismatch is not None:
            self._refuse(JoinRejected(self.member.membership.mismatch))

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
        deadline = min(self.member.deadline, now + self._network.link_options.acknowledge_after_ns)
        if self._timer is None or deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_later(max(0, deadline - now) / _SECOND, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._closed is not None:
            return
        now = time.monotonic_ns()
        try:
            self._settle(now)
            self.member.tick(now)
            self._act(now)
            self._set_timer(now)
        except Exception as error:
            self._on_fault(error)
