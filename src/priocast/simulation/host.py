"""A host: where the incarnations of one process follow each other.

An incarnation ends in one of three ways. It *crashes*: everything that it knew is lost, and the next
incarnation starts with nothing. It is *evicted*, or the group continues without it: the next incarnation
starts at once and submits its unordered messages again. Or it *leaves*: there is no next one, unless the
scenario says that it comes back.
"""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.membership.unordered import UnorderedMessages
from priocast.simulation.application import BroadcastPlan
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.workload import PlannedBroadcast

StartProcess = Callable[[ProcessId, BroadcastPlan, UnorderedMessages | None], SimulatedProcess]


class SimulatedHost:
    """The incarnations of one process; `incarnation` counts them, `starting` says that one is scheduled."""

    def __init__(
        self,
        name: str,
        planned: list[PlannedBroadcast],
        event_queue: EventQueue,
        start_process: StartProcess,
    ) -> None:
        self.name = name
        self.plan = BroadcastPlan(planned)
        self.process: SimulatedProcess | None = None
        self.starting = False
        self.incarnation = 0
        self._event_queue = event_queue
        self._start_process = start_process
        self._back_after_ns: int | None = None

    @property
    def gone(self) -> bool:
        """Whether no incarnation runs and none is scheduled."""
        return self.process is None and not self.starting

    def start(self, unordered_messages: UnorderedMessages | None = None) -> None:
        """Start the next incarnation."""
        assert self.process is None
        self.starting = False
        self.incarnation += 1
        self.process = self._start_process(
            ProcessId(self.name, self.incarnation), self.plan, unordered_messages
        )

    def start_after(self, delay_ns: int, unordered_messages: UnorderedMessages | None = None) -> None:
        """Schedule the start of the next incarnation."""
        self.starting = True
        self._event_queue.schedule(self._event_queue.now + delay_ns, lambda: self.start(unordered_messages))

    def crash(self, back_after_ns: int | None) -> None:
        """The process ends and everything that it knew is lost."""
        self._end()
        self.plan.submitted = []
        if back_after_ns is not None:
            self.start_after(back_after_ns)

    def leave(self, back_after_ns: int | None) -> None:
        """The process asks the group to let it leave."""
        assert self.process is not None
        self._back_after_ns = back_after_ns
        self.process.member.leave(self._event_queue.now)
        self.process.wake()

    def on_departed(self, rejoin_after_ns: int | None) -> None:
        """The process is no longer a member: it has left, or the group continues without it."""
        process = self._end()
        if process.member.departed is not None and process.member.departed.voluntary:
            self.plan.submitted = []
            if self._back_after_ns is not None:
                self.start_after(self._back_after_ns)
        elif rejoin_after_ns is not None:
            self.start_after(rejoin_after_ns, process.member.unordered_messages())

    def _end(self) -> SimulatedProcess:
        assert self.process is not None
        process, self.process = self.process, None
        process.over = True
        return process
