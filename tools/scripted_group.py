"""A small scripted group: nothing happens unless a script says so, and every member records its trace.

The protocol is the one that is shipped. Links lose nothing and keep the order; the script decides when a
packet arrives and when an application consumes. Each action of the script advances the time by one step, and
timers expire as it passes. After an input a member acts until nothing is left to do.
"""

from collections import deque
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.testing.protocol_runner import ProtocolRunner
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import Manifest, TraceRow

STEP_NS = 100_000


class ScriptedMember(ProtocolRunner):
    """One member; `channels` are its packets in flight, by receiver."""

    def __init__(self, me: ProcessId, view: View, ordering: Ordering, options: OrderingOptions) -> None:
        super().__init__(find_protocol(ordering.order)(me, view, options))
        self.me = me
        self.rows: list[TraceRow] = []
        self.channels: dict[ProcessId, deque[Packet]] = {peer: deque() for peer in view.members if peer != me}
        self._recorder = Recorder(me, self.rows.append)
        self._assembler = Assembler(me, options.prioritised)
        self._recorder.installed(view)
        self._recorder.view(view, ordering, 0, ViewReason(founded=True), 0)

    def broadcast_all(self, payloads: Iterable[bytes], priority: int, now: int) -> None:
        """The application broadcasts."""
        self._assembler.add_many(list(payloads), priority)
        for batch in self._assembler.close():
            self._recorder.broadcast(batch, now, self.protocol.backlog)
            self.broadcast(batch, now)
        self._complete(now)

    def receive_from(self, sender: "ScriptedMember", now: int) -> None:
        """The next packet from a member arrives."""
        self.receive(sender.me, sender.channels[self.me].popleft(), now)
        self._complete(now)

    def consume_up_to(self, count: int, now: int) -> int:
        """The application takes up to `count` messages; returns how many there were."""
        taken = 0
        while taken < count and (head := self.protocol.head()) is not None:
            self._recorder.delivered(head, 1, now, self.protocol.backlog)
            self.consume(1, now)
            self._complete(now)
            taken += 1
        return taken

    def fire_due(self, now: int) -> None:
        """The timers that are due expire."""
        for timer in [name for name, at in self.timers.items() if at <= now]:
            self.fire(timer, now)
            self._complete(now)

    def on_packet_sent(self, packet: Packet, to: ProcessId | None, now: int) -> None:
        """Record the packet."""
        self._recorder.sent(packet, to, now, self.protocol.backlog)

    def on_packet_received(self, packet: Packet, sender: ProcessId, now: int) -> None:
        """Record the packet."""
        self._recorder.received(packet, sender, now, self.protocol.backlog)

    def _complete(self, now: int) -> None:
        """Act until nothing is left to do, and put packets on their channels."""
        self.needs_turn = True
        self.run_until_idle(now)
        for to, packet in self.take_outbox():
            for channel in self.channels.values() if to is None else (self.channels[to],):
                channel.append(packet)


class ScriptedGroup:
    """A group of one view; the members are known by their names."""

    def __init__(self, names: Iterable[str], order: str, options: OrderingOptions | None = None) -> None:
        self._options = options or OrderingOptions()
        self._ordering = Ordering(order, self._options.prioritised, str(self._options.starvation))
        self.view = View(1, tuple(map(ProcessId, names)))
        self.members = {
            me.name: ScriptedMember(me, self.view, self._ordering, self._options) for me in self.view.members
        }
        self.now = 0

    @property
    def rows(self) -> list[TraceRow]:
        """The trace of all members, one member after the other."""
        return [row for member in self.members.values() for row in member.rows]

    def broadcast(self, name: str, priority: int, *payloads: bytes) -> None:
        """A member's application broadcasts."""
        self._advance()
        self.members[name].broadcast_all(payloads, priority, self.now)

    def arrive(self, source: str, target: str, count: int | None = None) -> int:
        """Packets in flight arrive, all of them or `count`; returns how many."""
        arrived = 0
        channel = self.members[source].channels[self.members[target].me]
        while channel and arrived != count:
            self._advance()
            self.members[target].receive_from(self.members[source], self.now)
            arrived += 1
        return arrived

    def consume(self, name: str, count: int = 1) -> int:
        """A member's application takes messages; returns how many there were."""
        self._advance()
        return self.members[name].consume_up_to(count, self.now)

    def settle(self) -> None:
        """Deliver packets until none is in flight."""
        pairs = [(source, target) for source in self.members for target in self.members if source != target]
        while sum(self.arrive(source, target, 1) for source, target in pairs):
            pass

    def finish(self) -> None:
        """Deliver all packets and consume all messages, one message at each member in turn."""
        self.settle()
        while sum(self.consume(name) for name in self.members):
            self.settle()

    def manifest(self, run: str) -> Manifest:
        """The description of the run."""
        protocol = find_protocol(self._ordering.order)
        return Manifest(
            run=run,
            group="scripted",
            order=self._ordering.order,
            prioritised=self._ordering.prioritised,
            starvation=self._ordering.starvation,
            orders="coordinator" if protocol.orderer(self.view) else "",
            priorities_act=protocol.PRIORITIES_ACT,
            members=list(self.members),
            policy="primary",
            delivery="agreed",
            clock="virtual",
            labels={"driver": "script"},
            versions={"priocast": version("priocast")},
        )

    def write(self, directory: Path, run: str) -> None:
        """Write the trace in the format of a real run."""
        write_manifest(directory, self.manifest(run))
        for member in self.members.values():
            write_segment(directory, run, f"{member.me.name}-{member.me.incarnation}-000000", member.rows)

    def _advance(self) -> None:
        self.now += STEP_NS
        for member in self.members.values():
            member.fire_due(self.now)
