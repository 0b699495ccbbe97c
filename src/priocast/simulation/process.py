"""One simulated process: a member's stack, its application, and a processor that is busy at times.

What arrives while the processor is busy waits, and is handed over in one turn when it is free: that is how
batches form, here as in a real process. The frames of a turn leave when its work is done. A process that is
paused does nothing until it resumes: its frames wait and its timers are late.
"""

from collections.abc import Mapping

from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.member import Member
from priocast.simulation.agenda import Agenda
from priocast.simulation.application import Application
from priocast.simulation.counters import Counters
from priocast.simulation.network import Path
from priocast.simulation.scenario import MICROSECOND, Pause, ProcessorOptions


class Process:
    """A member as the simulator runs it."""

    def __init__(
        self,
        member: Member,
        application: Application,
        processor: ProcessorOptions,
        pauses: tuple[Pause, ...],
        agenda: Agenda,
        counters: Counters,
    ) -> None:
        self.member = member
        self._application = application
        self._processor = processor
        self._pauses = sorted(pauses, key=lambda pause: pause.from_us)
        self._agenda = agenda
        self._counters = counters
        self._inbox: list[tuple[ProcessId, Frame]] = []
        self._free_at = 0
        self._wake_at: int | None = None
        self._paths: Mapping[ProcessId, Path] = {}

    def start(self, paths: Mapping[ProcessId, Path]) -> None:
        """The view is installed, and there is a path to every other member."""
        assert paths.keys() == self.member.links.keys()
        self._paths = paths
        self.member.start(self._agenda.now)
        self._wake_when_due()

    def arrive(self, peer: ProcessId, frame: Frame) -> None:
        """A frame is here; it is read when the processor is free."""
        self._inbox.append((peer, frame))
        now = self._agenda.now
        self._counters.processor_waits += now < self._free_at
        self._wake(now)

    def _wake(self, at: int) -> None:
        at = self._awake(max(at, self._free_at))
        if self._wake_at is None or at < self._wake_at:
            self._wake_at = at
            self._agenda.at(at, self._on_wake)

    def _awake(self, at: int) -> int:
        """The first time from this one on at which the process is not paused."""
        for pause in self._pauses:
            if pause.covers(at):
                self._counters.pause_waits += 1
                at = pause.until_us * MICROSECOND
        return at

    def _on_wake(self) -> None:
        if self._agenda.now == self._wake_at:
            self._wake_at = None
            self._turn(self._agenda.now)
            self._wake_when_due()

    def _wake_when_due(self) -> None:
        due, deadline = self._application.due, self.member.deadline
        if due is None or (deadline is not None and deadline < due):
            due = deadline
        if due is not None:
            self._wake(max(due, self._agenda.now))

    def _turn(self, now: int) -> None:
        """Hand over all that is ready, act on it until nothing more follows, and transmit."""
        assert now >= self._free_at, "a busy process takes no turn"
        member, application = self.member, self._application
        inbox, self._inbox = self._inbox, []
        for peer, frame in inbox:
            member.receive(peer, frame, now)
        member.tick(now)
        messages = application.broadcast(now)
        member.turn(now)
        while more := application.consume(now) + application.broadcast(now):
            messages += more
            member.turn(now)
        self._counters.turns += 1
        self._transmit([frame for _, frame in inbox], messages, now)

    def _transmit(self, read: list[Frame], messages: int, now: int) -> None:
        written: list[tuple[Path, Frame]] = []
        for peer, link in self.member.links.items():
            if link.frames:
                frames, link.frames = link.frames, []
                path = self._paths[peer]
                written += [(path, frame) for frame in frames]
        processor = self._processor
        size = sum(len(frame.body) for frame in read) + sum(len(frame.body) for _, frame in written)
        busy_ns = processor.frame_us * MICROSECOND * (len(read) + len(written))
        busy_ns += processor.byte_ns * size + processor.message_ns * messages
        self._free_at = self._awake(now + busy_ns)
        assert self._free_at >= now
        for path, frame in written:
            path.transmit(frame, self._free_at)
