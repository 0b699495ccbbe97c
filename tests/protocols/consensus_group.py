"""A group that runs consensus: members crash, and packets are lost and reordered as a schedule says."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Reference
from priocast.core.protocol import Packet
from priocast.protocols.agreement.consensus import Consensus, Value

INSTANCES = 4


class ConsensusViolation(AssertionError):
    """A property of consensus is violated: Agreement, Validity or Termination."""

    def __init__(self, property_name: str, how: str) -> None:
        super().__init__(f"{property_name}: {how}")
        self.property_name = property_name


class Decision(NamedTuple):
    """What a leader sends to all members."""

    instance: int
    value: Value


class Envelope(NamedTuple):
    sender: ProcessId
    to: ProcessId
    content: Packet | Decision


class ConsensusMember:
    """One member: its consensus instance, and the decisions that it knows."""

    def __init__(self, me: ProcessId, group: "ConsensusGroup") -> None:
        self.me = me
        self._group = group
        self.consensus = Consensus(me, group.names, self._send, self._send_each, self._decide)
        self.known: list[Value] = []
        self.since = 0
        self._early: dict[int, Value] = {}

    @property
    def waits(self) -> bool:
        return len(self.known) < INSTANCES

    def receive(self, envelope: Envelope, now: int) -> None:
        if isinstance(envelope.content, Decision):
            self._on_decision(envelope.content, now)
            return
        ballot = self.consensus.ballot
        self.consensus.receive(envelope.sender, envelope.content)
        if ballot != self.consensus.ballot:
            self.since = now

    def propose(self) -> None:
        self.consensus.propose(self._fresh)

    def _fresh(self) -> Value:
        return self._group.new_value(self.me) if self.waits else ()

    def _on_decision(self, decision: Decision, now: int) -> None:
        self._group.check_decision(decision)
        if decision.instance >= len(self.known):
            self._early[decision.instance] = decision.value
        while (value := self._early.pop(len(self.known), None)) is not None:
            self.known.append(value)
            self.since = now
            self.consensus.decided(value)

    def _send(self, to: ProcessId, packet: Packet) -> None:
        self._group.in_flight.append(Envelope(self.me, to, packet))

    def _send_each(self, packet: Packet) -> None:
        for name in self._group.names:
            self._send(name, packet)

    def _decide(self, value: Value) -> None:
        decision = Decision(self.consensus.instance, value)
        self._group.in_flight += [Envelope(self.me, name, decision) for name in self._group.names]


class ConsensusGroup:
    """All members and the packets in flight; nothing happens unless a schedule says so."""

    def __init__(self, size: int) -> None:
        self.names = tuple(ProcessId(name) for name in "abcde"[:size])
        self.in_flight: list[Envelope] = []
        self.members = {name: ConsensusMember(name, self) for name in self.names}
        self.now = 0
        self._proposed: list[Value] = []
        self._decided: dict[int, Value] = {}

    def new_value(self, proposer: ProcessId) -> Value:
        value = (Reference(proposer, 0, len(self._proposed), 1),)
        self._proposed.append(value)
        return value

    def check_decision(self, decision: Decision) -> None:
        if decision.value not in self._proposed:
            raise ConsensusViolation("Validity", f"nobody proposed {decision.value}")
        if self._decided.setdefault(decision.instance, decision.value) != decision.value:
            raise ConsensusViolation("Agreement", f"two values are decided in instance {decision.instance}")

    # Actions of a schedule

    def deliver(self, index: int) -> None:
        """One packet in flight arrives, and its receiver acts on it."""
        if self.in_flight:
            envelope = self.in_flight.pop(index % len(self.in_flight))
            member = self.members.get(envelope.to)
            if member is not None:
                member.receive(envelope, self.now)
                member.propose()

    def talk(self, index: int) -> None:
        """Packets between some of the members arrive, and no others."""
        among = [name for rank, name in enumerate(self.names) if index >> rank & 1 and name in self.members]
        for _ in range(1 + (index >> len(self.names))):
            for index_in_flight, envelope in enumerate(self.in_flight):
                if envelope.sender in among and envelope.to in among:
                    self.deliver(index_in_flight)
                    break

    def lose(self, index: int) -> None:
        """One packet in flight is lost, unless it is for its own sender."""
        others = [envelope for envelope in self.in_flight if envelope.sender != envelope.to]
        if others:
            self.in_flight.remove(others[index % len(others)])

    def take_over(self, index: int) -> None:
        """A member times out and takes over."""
        member = list(self.members.values())[index % len(self.members)]
        member.consensus.take_over()

    def crash(self, index: int) -> None:
        """A member crashes, as long as a majority is left; its packets in flight may still arrive."""
        if 2 * (len(self.members) - 1) > len(self.names):
            del self.members[list(self.members)[index % len(self.members)]]

    # After the faults

    def heal(self, timeouts_max: int) -> None:
        """Lose nothing more, and let members take over only after their timeout."""
        timeouts = 0
        while self.in_flight or any(member.waits for member in self.members.values()):
            for member in self.members.values():
                member.propose()
            if self.in_flight:
                self.deliver(0)
                continue
            waiting = [member for member in self.members.values() if member.waits]
            timeouts += 1
            if not waiting or timeouts > timeouts_max:
                break
            first = min(waiting, key=lambda member: member.since + member.consensus.timeout_ns)
            self.now = first.since + first.consensus.timeout_ns
            first.since = self.now
            first.consensus.take_over()
        for member in self.members.values():
            if member.waits:
                raise ConsensusViolation(
                    "Termination", f"{member.me} knows {len(member.known)} of {INSTANCES} decisions"
                )


Action = tuple[Callable[[ConsensusGroup, int], None], int]


class Schedule(NamedTuple):
    size: int
    actions: list[Action]


def rolled(seed: int) -> Schedule:
    """A random schedule: members take over and receive some packets, so that leaders overlap."""
    random = Random(seed)
    size = random.choice((1, 2, 3, 3, 3, 3, 4, 5))
    actions: list[Action] = []
    for _ in range(random.randint(0, 8)):
        if random.random() < 0.7:
            actions.append((ConsensusGroup.take_over, random.randrange(size)))
        actions += [(ConsensusGroup.talk, random.randrange(14 << size)) for _ in range(random.randint(1, 3))]
        for deed in (ConsensusGroup.deliver, ConsensusGroup.lose):
            actions += [(deed, random.randrange(256)) for _ in range(random.choice((0, 0, 0, 1, 5)))]
        if random.random() < 0.05:
            actions.append((ConsensusGroup.crash, random.randrange(size)))
    return Schedule(size, actions)


def hold(schedule: Schedule) -> ConsensusGroup:
    """Execute a schedule, and then let the group recover; raises the violated property."""
    group = ConsensusGroup(schedule.size)
    for deed, index in schedule.actions:
        deed(group, index)
    group.heal(timeouts_max=4 * schedule.size)
    return group
