"""A stage: a small group in which nothing happens unless a script says so, and which records its trace.

The protocol is the one that is shipped; links lose nothing and keep the order, and the script says when a
packet arrives and when an application consumes. Time goes on by one step with everything that the script
does. After an input a member acts until nothing is left to do.
"""

from collections import deque
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.protocol import (
    Broadcast,
    Consume,
    Input,
    MoreToDo,
    OrderingOptions,
    Packet,
    Received,
    Send,
    SendAll,
    SendEach,
    Turn,
)
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import Manifest, TraceRow

STEP_NS = 100_000


class Actor:
    """One member on the stage."""

    def __init__(self, me: ProcessId, view: View, ordering: Ordering, options: OrderingOptions) -> None:
        self.me = me
        self.rows: list[TraceRow] = []
        self.protocol = find_protocol(ordering.order)(me, view, options)
        self.channels: dict[ProcessId, deque[Packet]] = {peer: deque() for peer in view.members}
        self._recorder = Recorder(me, self.rows.append)
        self._assembler = Assembler(me, options.prioritised)
        self._held = dict.fromkeys(view.members, 0)
        self._restless = False
        self._recorder.installed(view)
        self._recorder.view(view, ordering, 0, ViewReason(founded=True), 0)

    def broadcast(self, payloads: Iterable[bytes], priority: int, now: int) -> None:
        """The application broadcasts."""
        self._assembler.add_many(list(payloads), priority)
        for batch in self._assembler.close():
            self._recorder.broadcast(batch, now, self.protocol.backlog)
            self._step(Broadcast(batch), now)
        self._come_to_rest(now)

    def receive(self, sender: "Actor", now: int) -> None:
        """The next packet of a member arrives."""
        self._hear(sender.me, sender.channels[self.me].popleft(), now)
        self._come_to_rest(now)

    def consume(self, count: int, now: int) -> int:
        """The application takes up to so many messages; return how many it got."""
        taken = 0
        while taken < count and (head := self.protocol.head()) is not None:
            self._recorder.delivered(head, 1, now, self.protocol.backlog)
            self._step(Consume(1), now)
            self._come_to_rest(now)
            taken += 1
        return taken

    def _come_to_rest(self, now: int) -> None:
        to_myself = self.channels[self.me]
        self._restless = True
        while self._restless or to_myself:
            self._restless = False
            while to_myself:
                self._hear(self.me, to_myself.popleft(), now)
            self._step(Turn(), now)

    def _hear(self, sender: ProcessId, packet: Packet, now: int) -> None:
        self._held[sender] += packet.TO_ALL
        packet_id = (self.protocol.ranks[sender], self._held[sender] if packet.TO_ALL else 0)
        self._recorder.received(packet, sender, now, self.protocol.backlog)
        self._step(Received(sender, packet, packet_id), now)

    def _step(self, event: Input, now: int) -> None:
        for output in self.protocol.step(event, now):
            match output:
                case SendAll(packet=packet) | SendEach(packet=packet):
                    self._recorder.sent(packet, None, now, self.protocol.backlog)
                    for channel in self.channels.values():
                        channel.append(packet)
                case Send(to=to, packet=packet):
                    self._recorder.sent(packet, to, now, self.protocol.backlog)
                    self.channels[to].append(packet)
                case MoreToDo():
                    self._restless = True
                case timer:
                    raise AssertionError(f"there are no timers on a stage: {timer}")


class Stage:
    """A group of one view; the members are known by their names."""

    def __init__(self, names: Iterable[str], order: str, options: OrderingOptions | None = None) -> None:
        self._options = options or OrderingOptions()
        self._ordering = Ordering(order, self._options.prioritised, str(self._options.starvation))
        self.view = View(1, tuple(map(ProcessId, names)))
        self.actors = {
            me.name: Actor(me, self.view, self._ordering, self._options) for me in self.view.members
        }
        self.now = 0

    @property
    def rows(self) -> list[TraceRow]:
        """What the members recorded, one member after the other."""
        return [row for actor in self.actors.values() for row in actor.rows]

    def broadcast(self, name: str, priority: int, *payloads: bytes) -> None:
        """A member's application broadcasts."""
        self._go_on()
        self.actors[name].broadcast(payloads, priority, self.now)

    def arrive(self, source: str, target: str, count: int | None = None) -> int:
        """Packets arrive, all that are on their way or so many; return how many there were."""
        arrived = 0
        channel = self.actors[source].channels[self.actors[target].me]
        while channel and arrived != count:
            self._go_on()
            self.actors[target].receive(self.actors[source], self.now)
            arrived += 1
        return arrived

    def consume(self, name: str, count: int = 1) -> int:
        """A member's application takes messages; return how many it got."""
        self._go_on()
        return self.actors[name].consume(count, self.now)

    def settle(self) -> None:
        """Let everything arrive, and what follows from it."""
        pairs = [(source, target) for source in self.actors for target in self.actors if source != target]
        while sum(self.arrive(source, target, 1) for source, target in pairs):
            pass

    def finish(self) -> None:
        """Let everything arrive and be consumed, one message at each member in turn."""
        self.settle()
        while sum(self.consume(name) for name in self.actors):
            self.settle()

    def manifest(self, run: str) -> Manifest:
        """What was played."""
        protocol = find_protocol(self._ordering.order)
        return Manifest(
            run=run,
            group="stage",
            order=self._ordering.order,
            prioritised=self._ordering.prioritised,
            starvation=self._ordering.starvation,
            orders="coordinator" if protocol.orderer(self.view) else "",
            priorities_act=protocol.PRIORITIES_ACT,
            members=list(self.actors),
            policy="primary",
            delivery="agreed",
            clock="virtual",
            labels={"driver": "stage"},
            versions={"priocast": version("priocast")},
        )

    def write(self, directory: Path, run: str) -> None:
        """Write what happened, in the form that a real run has."""
        write_manifest(directory, self.manifest(run))
        for actor in self.actors.values():
            write_segment(directory, f"{actor.me.name}-{actor.me.incarnation}-000000", actor.rows)

    def _go_on(self) -> None:
        self.now += STEP_NS
