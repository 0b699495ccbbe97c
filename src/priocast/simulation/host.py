"""A host: the place of one name, where lives of a process follow each other.

A life ends in one of three ways. It *crashes*: then all that it knew is gone, and a next life begins with
nothing. It is *put out* of the group: then the next life follows at once, and takes over what is left. Or it
*leaves*: then there is no next one, unless it was asked to come back.
"""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.membership.unordered import UnorderedMessages
from priocast.simulation.application import BroadcastPlan
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.workload import PlannedBroadcast

Begin = Callable[[ProcessId, BroadcastPlan, UnorderedMessages | None], SimulatedProcess]


class SimulatedHost:
    """Lives of one name. `awaited` says that a next one will come, `incarnation` counts them."""

    def __init__(
        self, name: str, wishes: list[PlannedBroadcast], event_queue: EventQueue, begin: Begin
    ) -> None:
        self.name = name
        self.errands = BroadcastPlan(wishes)
        self.process: SimulatedProcess | None = None
        self.awaited = False
        self.incarnation = 0
        self._event_queue = event_queue
        self._begin = begin
        self._back_after_ns: int | None = None

    @property
    def gone(self) -> bool:
        """Whether no life is there and none will come."""
        return self.process is None and not self.awaited

    def start(self, unordered_messages: UnorderedMessages | None = None) -> None:
        """A life begins."""
        assert self.process is None
        self.awaited = False
        self.incarnation += 1
        self.process = self._begin(ProcessId(self.name, self.incarnation), self.errands, unordered_messages)

    def start_after(self, delay_ns: int, unordered_messages: UnorderedMessages | None = None) -> None:
        """A life will begin."""
        self.awaited = True
        self._event_queue.schedule(self._event_queue.now + delay_ns, lambda: self.start(unordered_messages))

    def crash(self, back_after_ns: int | None) -> None:
        """The process vanishes."""
        self._end()
        self.errands.handed = []
        if back_after_ns is not None:
            self.start_after(back_after_ns)

    def leave(self, back_after_ns: int | None) -> None:
        """The process asks to be let go."""
        assert self.process is not None
        self._back_after_ns = back_after_ns
        self.process.member.leave(self._event_queue.now)
        self.process.wake()

    def be_out(self, rejoin_after_ns: int | None) -> None:
        """The group went on without the process."""
        process = self._end()
        if process.member.departed is not None and process.member.departed.voluntary:
            self.errands.handed = []
            if self._back_after_ns is not None:
                self.start_after(self._back_after_ns)
        elif rejoin_after_ns is not None:
            self.start_after(rejoin_after_ns, process.member.unordered_messages())

    def _end(self) -> SimulatedProcess:
        assert self.process is not None
        process, self.process = self.process, None
        process.over = True
        return process
