"""The asyncio driver of one member: it moves frames and time, and contains no protocol logic.

Everything that is ready is passed to the member before it gets a turn: the frames of one read, the broadcasts
of one iteration of the event loop. What the application consumed is reported to the member before anything
else, so the head that the application sees cannot change while it uses it.

An evicted member is replaced by its next incarnation, if it may rejoin. That one takes part in the group as
soon as the application has taken the `Evicted` event and asks for the next one (`rejoining.py`).
"""

import asyncio
import time
from collections import deque

from priocast.core.errors import GroupClosed, PriocastError
from priocast.core.events import Evicted, Restored, ServiceDelivery, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, OrderedBatch, Scope
from priocast.core.role import Role
from priocast.core.view_reason import ViewReason
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.packets import Ordering
from priocast.membership.stream_items import Head, StateRestore, ViewStart
from priocast.network.interface import Network, Port
from priocast.runtime.admission_queue import AdmissionQueue
from priocast.runtime.broadcast_handle import BroadcastHandle
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.explanations import why_full, why_not_joined
from priocast.runtime.fault_log import FaultLog
from priocast.runtime.first_view import FirstView
from priocast.runtime.member_factory import MemberFactory
from priocast.runtime.member_timer import MemberTimer
from priocast.runtime.rejoining import Rejoining
from priocast.runtime.service_calls import ServiceCalls
from priocast.runtime.storage import Storage
from priocast.runtime.turn_schedule import TurnSchedule
from priocast.runtime.waits import logged_if_long, wait_until

_EVICTIONS_KEPT = 32

DriverHead = OrderedBatch | ViewStart | StateRestore | Evicted | ServiceDelivery


class Driver:
    """Drives the incarnations of one member over a network, on behalf of a `Group`.

    The group counts in `taken` how many messages of the head the application consumed. Before anything else
    happens the count is reported to the member, and `reports` is incremented: the head may be another one
    then. `evictions` holds the reasons and times of the last evictions; `advice`, what a group with the order
    `auto` concludes from its load.
    """

    def __init__(
        self, configuration: MemberConfiguration, network: Network, storage: Storage, incarnation: int | None
    ) -> None:
        self.configuration = configuration
        self.network = network
        self.taken = self.reports = self.turns = 0
        self.advice = ""
        self.evictions: deque[tuple[ViewReason, int]] = deque(maxlen=_EVICTIONS_KEPT)
        self.storage = storage
        self._loop = asyncio.get_running_loop()
        self._first_view = FirstView()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._consumable: asyncio.Future[None] | None = None
        self._closed: GroupClosed | None = None
        self._leaving = False
        self.schedule = TurnSchedule(self._loop, self._at_end_of_iteration)
        self._timer = MemberTimer(self._loop, network.link_options.acknowledge_after_ns, self._on_timer)
        self._notices: deque[Evicted] = deque()
        self._head: Head | None = None  # What the last turn found, until there is another input.
        self._admission = AdmissionQueue(configuration.options.queue_max)
        self.service_calls = ServiceCalls(self)
        self._fault_log = FaultLog(configuration.group)
        self._port: Port | None = None
        self._rejoining = Rejoining(configuration.name, configuration.membership, self._rejoin)
        self.factory = MemberFactory(configuration, network, storage, self._rejoining)
        self.member = self.factory.make(incarnation or storage.incarnations.next(), None)

    # Lifecycle

    async def start(self) -> None:
        """Open the port and wait until this member is in a view."""
        self._port = self.network.open(self.configuration.group, self.member.me, self)
        self.schedule.request_turn()
        await self._first_view.wait(
            self.configuration, lambda: why_not_joined(self.member, self.network, time.monotonic_ns())
        )

    async def close(self, timeout_seconds: float) -> None:
        """Leave once all messages broadcast here have positions, or after the timeout."""
        try:
            if self._closed is None and self._first_view.reached:
                await self._leave(timeout_seconds)
        finally:
            self._end(time.monotonic_ns())

    def _end(self, now: int) -> None:
        """Say goodbye, unless the member is broken, and stop."""
        self.member.end(now)
        if self._port is not None:
            if self._closed is None:
                for name, frames in self.member.frames(now):
                    self._port.send(name, frames)
                self._port.flush()
            self._port.close()
        self.stop(GroupClosed("the group was left"))

    async def _leave(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        self.schedule.request_turn()
        with logged_if_long(f"{self.configuration.name} has waited to leave", self.why_full):
            await wait_until(self._may_leave, deadline)
        self._leaving = True
        self.report_taken(now := time.monotonic_ns())
        self.member.services.answer(now)
        self._act(now)  # others have the answers before they agree on a view without this member
        if not self._stopped.done():
            self.member.leave(now)
            self._act(now)
        if not self._stopped.done() and timeout_seconds and self._port is not None:
            await asyncio.wait([self._stopped], timeout=max(0.0, deadline - time.monotonic()))

    def _may_leave(self) -> bool:
        return self._stopped.done() or self._port is None or self.member.may_leave(time.monotonic_ns())

    def stop(self, reason: GroupClosed) -> None:
        """Stop driving the member; every waiting call ends, with this reason if it cannot succeed."""
        if self._closed is None:
            self._closed = reason
        self.member.stream.own_positions.close()
        self._timer.cancel()
        self._rejoining.cancel()
        self._wake()
        self._admission.close()
        self.service_calls.fail(self._closed)
        if not self._stopped.done():
            self._stopped.set_result(None)
        self._first_view.fail(reason)

    def _on_departed(self) -> None:
        """This incarnation is no longer a member: prepare the next one, or stop."""
        member = self.member
        assert member.departed is not None and self._port is not None
        self._fault_log.take_from(member)
        member.stream.own_positions.close()
        if member.departed.voluntary or self._leaving:
            self.stop(GroupClosed("the group was left"))
            return
        self.evictions.append((member.departed.reason, time.monotonic_ns()))
        self.taken, self.reports = 0, self.reports + 1
        self._notices.append(Evicted(member.departed.reason))
        if not self.configuration.membership.rejoin:
            self.stop(GroupClosed(f"{self.configuration.name} was evicted: {member.departed.reason}"))
            return
        self._port.close()
        self._port = None
        self.service_calls.on_evicted(member)
        self._rejoining.on_evicted(member.departed.reason)
        self.member = self.factory.make(self.storage.incarnations.next(), member.unordered_messages())
        self._wake()

    def why_full(self) -> str:
        """Why the queue of this member does not drain."""
        return why_full(self.member, awaits_application=self._rejoining.awaits_application)

    def _rejoin(self) -> None:
        if self._port is not None:
            self._port.close()
        self._port = self.network.open(self.configuration.group, self.member.me, self)
        self.schedule.request_turn()

    def _renumber(self, known: int) -> None:
        """The group knows a later incarnation of this process, which is over: join with a higher number."""
        left = None if self._first_view.awaited else self.member.unordered_messages()
        self.member = self.factory.make(self.storage.incarnations.later(self.member.me, known), left)
        self._rejoin()

    # Called by the network

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        if self._closed is None:
            try:
                self.member.reachable(peer, time.monotonic_ns(), role)
            except Exception as error:
                self._on_fault(error)
            self.schedule.request_turn()

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        if self._closed is not None:
            return
        now = time.monotonic_ns()
        try:
            if self.taken:
                self.report_taken(now)
            self.member.receive(peer, frames, now, role)
            if self.member.faults:
                self._fault_log.take_from(self.member)
            if self.member.services.in_use and self.member.service_head() is not None and self._wake():
                self.schedule.request_turn()  # the application gets a message before it is answered
            else:
                self._act(now, peer)
        except Exception as error:
            self._on_fault(error)

    def hears(self, peer: str) -> bool:
        return self.member.membership.neighbours.uses_name(peer, time.monotonic_ns())

    def failed(self, error: PriocastError) -> None:
        self._first_view.fail(error)
        self.stop(GroupClosed(f"the network failed: {error}"))

    def _on_fault(self, error: Exception) -> None:
        """A defect in this process: the member stops, and the error is raised again for the log."""
        closed = GroupClosed(f"{self.configuration.name} stopped because of an internal error: {error!r}")
        closed.__cause__ = error
        self.stop(closed)
        raise error

    # Called by the application

    def check_open(self) -> None:
        """Raise the reason if the group is closed."""
        if self._closed is not None:
            raise self._closed

    def broadcast(self, payload: bytes, priority: int) -> BroadcastHandle | None:
        """Accept a message if there is room for it; a lone one is on its way then."""
        if self._closed or self._admission.entries:
            return self.broadcast_many([payload], priority)
        member = self.member
        run = member.broadcast(payload, priority)
        if run is None:
            return None
        index = len(run.payloads) - 1
        if at_once := self.schedule.next_is_lone:
            self.turn()  # what else there is to do can wait until the message is on its way
        self.schedule.on_broadcast(had_turn=at_once)
        return BroadcastHandle(member, run, index)

    def broadcast_many(
        self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL
    ) -> BroadcastHandle | None:
        """Accept messages of one priority if there is room for all of them; return the last one then."""
        self.check_open()
        if self.member.room(priority) < len(payloads) or self._admission.is_ahead_of(priority):
            return None
        self.schedule.request_turn()
        run = self.member.broadcast_many(payloads, priority, scope)
        return BroadcastHandle(self.member, run, len(run.payloads) - 1)

    async def broadcast_when_room(
        self, payloads: list[bytes], priority: int, scope: Scope, timeout_seconds: float | None
    ) -> BroadcastHandle:
        """Accept messages as room becomes available, higher priorities first; return the last message."""
        blocked = self._admission.add(payloads, priority, scope)
        self.schedule.request_turn()
        default = self.configuration.deadlines.broadcast_seconds
        await blocked.wait(priority, default if timeout_seconds is None else timeout_seconds, self.why_full)
        if blocked.last is None or blocked.payloads:
            raise self._closed or AssertionError("messages are admitted unless the group is closed")
        return blocked.last

    def change_order(self, ordering: Ordering) -> None:
        """Let another protocol order, from the next view on."""
        self.report_taken(now := time.monotonic_ns())
        self.member.change_order(ordering, now)
        self.schedule.request_turn()

    def head(self, *, with_services: bool = True) -> DriverHead | None:
        """What the application may consume next; messages with a quality of service only if asked for."""
        now = time.monotonic_ns()
        if self.taken and self.report_taken(now):
            self.turn()  # others may wait for it, and the application may not let the event loop run for long
        if self._notices:
            return self._notices[0]
        member = self.member
        if member.state.donor.wanted is not None and member.snapshot_wanted:
            # The application has processed everything it consumed: its state is that of this position.
            for base in member.state.donor.bases:
                member.offer_snapshot(self.configuration.snapshot(base), base)
            self.schedule.request_turn()
        head = self._head or member.head(now)
        self._head = None
        if with_services and member.services.in_use:
            return member.service_head(head) or head
        return head

    def consumable(self) -> asyncio.Future[None]:
        """What to await until there may be a head; raises if there will be none any more."""
        assert self._consumable is None or self._consumable.done(), "one iteration at a time"
        if self._closed is not None:
            raise self._closed
        if self._rejoining.awaits_application:
            self._rejoining.on_application_back()
        self._consumable = self._loop.create_future()
        return self._consumable

    def consume_event(self, head: ViewStart | StateRestore | Evicted) -> ViewChange | Restored | Evicted:
        """The application consumes the head, which is not a message."""
        if isinstance(head, Evicted):
            return self._notices.popleft()
        if isinstance(head, StateRestore):
            assert self.configuration.state is not None
            self.configuration.state.load(head.snapshot.data)
        event = self.member.consume_event(time.monotonic_ns())
        self.schedule.request_turn()
        return event

    # Turns

    def report_taken(self, now: int) -> bool:
        """Report to the member what the application consumed; return whether it has something to do then."""
        if not self.taken:
            return False
        taken, self.taken = self.taken, 0
        self.reports, self._head = self.reports + 1, None
        return self.member.consume(taken, now)

    def _at_end_of_iteration(self) -> None:
        if self.schedule.turn_is_due or self.taken:
            self.turn(is_due=self.schedule.turn_is_due)

    def turn(self, *, is_due: bool = True) -> None:
        """Report what the application consumed, and let the member act; if no turn `is_due`, only on that."""
        if self._closed is None:
            now = time.monotonic_ns()
            try:
                if self.report_taken(now) or is_due:
                    self._act(now)
            except Exception as error:
                self._on_fault(error)

    def _act(self, now: int, received_from: ProcessId | None = None) -> None:
        """Give the member its turns, and send the resulting frames.

        The process that we received from is served first: it waits for the reply, and on a host with fewer
        cores than members each process that is woken before it delays it by a tenth of a millisecond.
        """
        member, port = self.member, self._port
        if port is None or self._closed is not None:
            return
        self.turns, self._head, self.schedule.turn_is_due = self.turns + 1, None, False
        more = True
        while more:
            more = member.act(now)
            if outgoing := member.frames(now, received_from):
                for name, frames in outgoing:
                    port.send(name, frames)
                port.flush()
        if member.membership.departed is not None:
            self._on_departed()
        else:
            self._after_turn(member, now)

    def _after_turn(self, member: Member, now: int) -> None:
        """Update what a turn may have changed: the timer, and the calls that wait."""
        epoch = member.membership.epoch
        if not self._timer.is_set or (epoch is not None and epoch.timers):
            self._timer.set(member.deadline, now)
        if self._first_view.awaited:
            self._first_view.on_turn(member)
        if epoch is None and (known := member.incarnation_known) > member.me.incarnation:
            self._renumber(known)
        if self._admission.entries and self._admission.admit(member):
            self.schedule.request_turn()
        if in_use := member.services.in_use:
            self._timer.set(member.deadline, now)
            self.service_calls.on_turn(member)
        if self._consumable is not None and not self._consumable.done():
            self._head = member.head(now)
            asked = member.state.donor.wanted is not None and member.snapshot_wanted
            if asked or self._head is not None or (in_use and member.service_head() is not None):
                self._consumable.set_result(None)

    def _wake(self) -> bool:
        """Wake the application, if it waits for something to consume; return whether it did."""
        if self._consumable is None or self._consumable.done():
            return False
        self._consumable.set_result(None)
        return True

    def _on_timer(self) -> None:
        if self._closed is not None or self._port is None:
            return
        now = time.monotonic_ns()
        try:
            self.report_taken(now)
            self.member.tick(now)
            self._fault_log.log_mismatches(self.member)
            self._act(now)
            if not self._timer.is_set and self._closed is None:
                self._timer.set(self.member.deadline, now)
        except Exception as error:
            self._on_fault(error)
