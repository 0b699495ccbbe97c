"""One incarnation of a simulated process: a member's stack, its application, and its processor.

What arrives while the processor is busy waits, and is processed in one turn when the processor is free.
That is how batches form, here as in a real process. The frames of a turn leave when its work is done. A
paused process does nothing until it resumes: its frames wait and its timers fire late.
"""

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.simulation.application import SimulatedApplication
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.scenario import ProcessorOptions

Written = list[tuple[str, Frame]]


class SimulatedProcess:
    """A member as the simulator runs it, until it departs or crashes.

    `after_turn` is called with the frames that a turn wrote. It returns those that are transmitted: all of
    them, unless the process crashes at this point.
    """

    def __init__(
        self,
        member: Member,
        application: SimulatedApplication,
        processor: ProcessorOptions,
        event_queue: EventQueue,
        network: SimulatedNetwork,
        counters: Counters,
        after_turn: Callable[["SimulatedProcess", Written], Written],
    ) -> None:
        self.member = member
        self.application = application
        self.over = False
        self._processor = processor
        self._event_queue = event_queue
        self._network = network
        self._counters = counters
        self._after_turn = after_turn
        self._inbox: list[tuple[ProcessId, Frame]] = []
        self._free_at = self._paused_until = event_queue.now
        self._wake_at: int | None = None
        self.wake()

    def arrive(self, peer: ProcessId, frame: Frame) -> None:
        """A frame has arrived; it is read when the processor is free."""
        self._inbox.append((peer, frame))
        if self._event_queue.now < self._free_at:
            self._counters.count("busy processor")
        self.wake()

    def pause(self, until: int) -> None:
        """Do nothing until this time."""
        self._paused_until = max(self._paused_until, until)

    @property
    def paused(self) -> bool:
        """Whether it does nothing at this time."""
        return self._event_queue.now < self._paused_until

    def resume(self) -> None:
        """End a pause before its time."""
        self._paused_until = min(self._paused_until, self._event_queue.now)
        self.wake()

    def wake(self) -> None:
        """Take a turn as soon as possible: there may be something to do."""
        self._wake(self._event_queue.now)

    def _wake(self, at: int) -> None:
        at = max(at, self._free_at, self._paused_until)
        if not self.over and (self._wake_at is None or at < self._wake_at):
            self._wake_at = at
            self._event_queue.schedule(at, self._on_wake)

    def _on_wake(self) -> None:
        now = self._event_queue.now
        if self.over or now != self._wake_at:
            return
        self._wake_at = None
        if now < self._paused_until:
            self._wake(now)
            return
        self._turn(now)
        if not self.over:
            due, deadline = self.application.due, self.member.deadline
            self._wake(max(now, deadline if due is None else min(due, deadline)))

    def _turn(self, now: int) -> None:
        """Process everything that is ready until nothing more follows from it, and transmit."""
        assert now >= self._free_at, "a busy process takes no turn"
        member, application = self.member, self.application
        inbox, self._inbox = self._inbox, []
        for peer, arrived in groupby(inbox, itemgetter(0)):
            member.receive(peer, [frame for _, frame in arrived], now)
        if now >= member.deadline:
            member.tick(now)
        messages = application.broadcast(now)
        member.turn(now)
        while more := application.consume(now) + application.broadcast(now):
            messages += more
            member.turn(now)
        if member.faults:
            if self._network.is_faithful:
                raise member.faults[0].error  # every process here is well-behaved: the fault is a finding
            self._counters.count("fault noticed", len(member.faults))
            member.faults.clear()
        self._counters.turns += 1
        self._transmit([frame for _, frame in inbox], messages, now)

    def _transmit(self, read: list[Frame], messages: int, now: int) -> None:
        written = [(name, frame) for name, frames in self.member.frames(now) for frame in frames]
        written = self._after_turn(self, written)
        processor = self._processor
        size = sum(len(frame.body) for frame in read) + sum(len(frame.body) for _, frame in written)
        busy_ns = processor.frame_us * MICROSECOND * (len(read) + len(written))
        self._free_at = now + busy_ns + processor.byte_ns * size + processor.message_ns * messages
        assert self._free_at >= now
        self._network.transmit_all(self.member.me, written, self._free_at)
