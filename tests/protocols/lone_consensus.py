"""Consensus by itself as a protocol, and schedules for a group of its members.

Members crash, and packets are lost and overtake each other as a schedule says. Links prevent that while a
view lasts, so the protocol that uses consensus cannot show that consensus does not depend on it.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from priocast.core.guarantees import AGREEMENT, INTEGRITY, LIVENESS
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Reference
from priocast.core.protocol import OrderingOptions, Packet, Received, TimerFired, Turn
from priocast.core.view import View
from priocast.protocols.agreement.consensus import Consensus
from priocast.protocols.agreement.consensus_packets import CONSENSUS_PACKETS, Value
from priocast.protocols.flow.frames import References
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from protocols import harness
from protocols.harness import Group, Violation

INSTANCES = 4
ORDER = "consensus"
_TIMEOUT = "no decision"


class ConsensusDecision(Packet, frozen=True, tag="consensus-decision"):
    """What a leader sends to all members."""

    TO_ALL = True

    instance: int
    references: References


class LoneConsensus(OrderingProtocol):
    """One member's part: it proposes new values until it knows as many decisions as are wanted."""

    NAME = ORDER
    PACKETS = (*CONSENSUS_PACKETS, ConsensusDecision)
    PRIORITIES_ACT = "consensus"

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.consensus = Consensus(me, view.members, self.send, self.send_each, self._decide)
        self.known: list[Value] = []
        self.proposed: list[Value] = []
        self._early: dict[int, Value] = {}
        self._waiting = False

    @property
    def idle(self) -> bool:
        return len(self.known) >= INSTANCES

    def on_turn(self, event: Turn, now: int) -> None:
        self.consensus.propose(self._new_value)
        if not self.idle and not self._waiting:
            self._wait(now)

    def on_received(self, event: Received, now: int) -> None:
        ballot, known = self.consensus.ballot, len(self.known)
        if isinstance(event.packet, ConsensusDecision):
            self._on_decision(event.packet)
        else:
            self.consensus.receive(event.sender, event.packet)
        if (ballot, known) != (self.consensus.ballot, len(self.known)):
            self._wait(now)

    def on_timer(self, event: TimerFired, now: int) -> None:
        self.take_over(now)

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        raise AssertionError("there are no messages")

    def take_over(self, now: int) -> None:
        """The member has waited too long for a decision."""
        self.consensus.take_over()
        self._wait(now)

    def _wait(self, now: int) -> None:
        """Wait for the next decision from now on."""
        self._waiting = not self.idle
        if self.idle:
            self.cancel_timer(_TIMEOUT)
        else:
            self.set_timer(_TIMEOUT, now + self.consensus.timeout_ns)

    def _new_value(self) -> Value:
        if self.idle:
            return ()
        self.proposed.append((Reference(self.me, 0, len(self.proposed), 1),))
        return self.proposed[-1]

    def _on_decision(self, decision: ConsensusDecision) -> None:
        if decision.instance >= len(self.known):
            self._early[decision.instance] = decision.references
        while (value := self._early.pop(len(self.known), None)) is not None:
            self.known.append(value)
            self.consensus.decided(value)

    def _decide(self, value: Value) -> None:
        self.send_all(ConsensusDecision(self.consensus.instance, value))


def consensus_of(group: Group, name: str) -> LoneConsensus:
    """A member's part in the consensus."""
    protocol = group.members[name].protocol
    assert isinstance(protocol, LoneConsensus)
    return protocol


# Actions of a schedule


def arrive(group: Group, index: int) -> None:
    """Some packet in flight arrives, not always the next of its link, and its receiver acts on it."""
    if links := [link for link in group.links if group.links[link].frames]:
        source, target = links[index % len(links)]
        frames = group.links[source, target].frames
        frames.insert(0, frames.pop(index % len(frames)))
        group.deliver(source, target)
        group.turn(target)


def talk(group: Group, index: int) -> None:
    """Packets between some of the members arrive, and no others."""
    names = [member.name for member in group.view.members]
    among = {name for rank, name in enumerate(names) if index >> rank & 1}
    for number in range(1 + (index >> len(names))):
        links = [link for link in group.links if among.issuperset(link) and group.links[link].frames]
        if links:
            source, target = links[(index + number) % len(links)]
            group.deliver(source, target)
            group.turn(target)


def lose(group: Group, index: int) -> None:
    """A packet in flight is lost."""
    if links := [link for link in group.links.values() if link.frames]:
        frames = links[index % len(links)].frames
        del frames[index % len(frames)]


def take_over(group: Group, index: int) -> None:
    """A member takes over, however long it has waited."""
    name = list(group.members)[index % len(group.members)]
    consensus_of(group, name).consensus.take_over()
    group.turn(name)


def crash(group: Group, index: int) -> None:
    """A member crashes, as long as a majority is left; its packets in flight may still arrive."""
    if 2 * (len(group.members) - 1) > len(group.view.members):
        group.crash(list(group.members)[index % len(group.members)])


class FaultSchedule(NamedTuple):
    """How many members there are, and what happens before the faults end."""

    size: int
    actions: list[tuple[Callable[[Group, int], None], int]]


def rolled(seed: int) -> FaultSchedule:
    """A random schedule: members take over and receive some packets, so that leaders overlap."""
    random = Random(seed)
    size = random.choice((1, 2, 3, 3, 3, 3, 4, 5))
    actions: list[tuple[Callable[[Group, int], None], int]] = []
    for _ in range(random.randint(0, 8)):
        if random.random() < 0.7:
            actions.append((take_over, random.randrange(size)))
        actions += [(talk, random.randrange(14 << size)) for _ in range(random.randint(1, 3))]
        for deed in (arrive, lose):
            actions += [(deed, random.randrange(256)) for _ in range(random.choice((0, 0, 0, 1, 5)))]
        if random.random() < 0.05:
            actions.append((crash, random.randrange(size)))
    return FaultSchedule(size, actions)


def hold(schedule: FaultSchedule) -> Group:
    """Execute a schedule, let the group recover, and check the properties of consensus."""
    group = Group(list("abcde"[: schedule.size]), ORDER, OrderingOptions())
    proposers = [consensus_of(group, name) for name in group.members]
    for name in group.members:
        group.turn(name)
    for deed, index in schedule.actions:
        deed(group, index)
    recovered = group.settle(rounds_max=200 * schedule.size)
    _check_decisions(group, {value for each in proposers for value in each.proposed})
    for name in group.members:
        if not recovered or not consensus_of(group, name).idle:
            known = len(consensus_of(group, name).known)
            raise Violation(LIVENESS, f"{name} knows {known} of {INSTANCES} decisions")
    return group


def _check_decisions(group: Group, proposed: set[Value]) -> None:
    """Only what was proposed is decided, and the same everywhere, also by members that crashed then."""
    decided: dict[int, Value] = {}
    for happened in group.journal:
        if isinstance(happened, harness.Received) and isinstance(happened.packet, ConsensusDecision):
            instance, value = happened.packet.instance, happened.packet.references
            if value not in proposed:
                raise Violation(INTEGRITY, f"nobody proposed {value}")
            if decided.setdefault(instance, value) != value:
                raise Violation(AGREEMENT, f"two values are decided in instance {instance}")
