"""Destinations agreement on sets: members send to all, and consensus decides which messages are next.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority within a set. Plain: FIFO
    order. It continues while a majority of the view's members is reachable, until the window is full.
Costs: four hops: the message, the proposal, its acceptance, the decision. Besides the n frames of a message,
    3n for a set of any size; all that waits at the leader goes into the next set.
Orders: the leader of the consensus: the first member, until it is silent for too long.
Assumes: reliable FIFO links, a fixed view; a majority of its members to decide anything.
Priorities act: in the sender's outgoing queue, and where a set is put in order (priority-based consensus).
Reference: the techniques paper, sections 5.5.2 and 6.4; L. Lamport, Paxos made simple, 2001.
Diverges: the paper leaves the consensus open. Here it is Paxos, which survives crashed leaders and is
    safe with several at once; a value is a set in its order, by (urgency, sender, number). A set is
    limited only by the size of a frame, and the starvation policy chooses what goes into a frame. Every
    sender has a share of the window, and the backlog waits in its queue.

Only decisions are packets to all. No message is ordered without one, so at the end of a view all
survivors know the positions that any of them knows. Promises and accepted values may get lost then: the
next view starts anew. Two leaders may announce the same decision, and a member uses the one that arrives
first. So members may know a position from different packets, and the protocol is not for partitionable
groups.
"""

from typing import NamedTuple

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_COUNT_MAX, Batch, Reference, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, TimerFired, Turn
from priocast.core.view import View
from priocast.protocols.agreement.consensus import Consensus
from priocast.protocols.agreement.consensus_packets import (
    CONSENSUS_PACKETS,
    REFERENCES_MAX,
    SetDecision,
    Value,
)
from priocast.protocols.flow.data import PacedData
from priocast.protocols.flow.frames import FRAMES_PER_TURN
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages

_DECISION_TIMER = "decision"


class AgreementSets(PacedProtocol):
    """A member's part in the protocol; any of them may become the leader."""

    NAME = "agreement-sets"
    PRIORITIES_ACT = "consensus"
    PARTITIONABLE = False
    PACKETS = (PacedData, SetDecision, *CONSENSUS_PACKETS, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._consensus = Consensus(me, view.members, self.send, self.send_each, self._send_decision)
        self._undecided = _UndecidedMessages(options, self.ranks)
        self._decisions: dict[int, tuple[SetDecision, PacketId]] = {}
        self._position_decided = position
        self._messages = ReferencedMessages()
        # timeout
        self._waiting_since = 0
        self._timer_is_set = False

    @property
    def idle(self) -> bool:
        return self.settled and not self._undecided and self.position_next == self._position_decided

    def on_turn(self, event: Turn, now: int) -> None:
        self._send_data()
        self._consensus.propose(self._undecided.next_set)
        self._set_timer()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case PacedData(batches=batches, bottleneck=bottleneck):
                self.accept(event.sender, batches, bottleneck)
                for batch in batches:
                    self._on_batch(batch, event.packet_id, now)
                self._append_decided()
            case SetDecision() as decision:
                self._on_decision(event.sender, decision, event.packet_id, now)
                self._append_decided()
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)
            case packet:
                ballot = self._consensus.ballot
                self._consensus.receive(event.sender, packet)
                if ballot != self._consensus.ballot:
                    self._waiting_since = now

    def on_timer(self, event: TimerFired, now: int) -> None:
        """Take over if messages have waited too long for a decision."""
        self._timer_is_set = False
        if self._undecided and now >= self._waiting_since + self._consensus.timeout_ns:
            self._consensus.take_over()
            self._waiting_since = now

    # Sender

    def _send_data(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            if self.blocked:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(PacedData(batches, bottleneck))
        self.more_to_do()

    # Leader

    def _send_decision(self, value: Value) -> None:
        self.send_all(SetDecision(self._consensus.instance, self._position_decided, value))

    # Destination

    def _on_batch(self, batch: Batch, packet_id: PacketId, now: int) -> None:
        self._messages.received(batch, packet_id)
        if not self._undecided:
            self._waiting_since = now
        self._undecided.put(batch, now)

    def _on_decision(self, sender: ProcessId, decision: SetDecision, packet_id: PacketId, now: int) -> None:
        """Keep a decision until all before it were received."""
        if decision.instance > self._consensus.instance + WINDOW_MAX:
            raise PeerFault(f"{sender} decides instance {decision.instance}, which no window allows")
        if decision.instance < self._consensus.instance:
            known = self._consensus.value_of(decision.instance)
        else:
            known = self._decisions.setdefault(decision.instance, (decision, packet_id))[0].references
        if known not in (None, decision.references):
            raise PeerFault(f"{sender} contradicts the decision of instance {decision.instance}")
        while (found := self._decisions.pop(self._consensus.instance, None)) is not None:
            self._waiting_since = now
            self._on_next_decision(sender, *found)

    def _on_next_decision(self, sender: ProcessId, decision: SetDecision, packet_id: PacketId) -> None:
        if decision.position != self._position_decided:
            raise PeerFault(
                f"{sender} decides about position {decision.position}; expected {self._position_decided}"
            )
        self._undecided.remove(sender, decision.references)
        for reference in decision.references:
            self._messages.ordered(OrderedReference(reference, sender, packet_id, False))
        self._position_decided += sum(reference.count for reference in decision.references)
        self._consensus.decided(decision.references)

    def _append_decided(self) -> None:
        """Append to the order what is decided next and was received."""
        for named, brought_by, batches in self._messages.next_ordered():
            self.depends_on(brought_by)
            self.depends_on(named.packet_id)
            for batch in batches:
                self.append(batch)

    def _set_timer(self) -> None:
        """While messages wait for a decision, a timer limits how long."""
        if self._undecided and not self._timer_is_set:
            self._timer_is_set = True
            self.set_timer(_DECISION_TIMER, self._waiting_since + self._consensus.timeout_ns)
        elif self._timer_is_set and not self._undecided:
            self._timer_is_set = False
            self.cancel_timer(_DECISION_TIMER)


class _UndecidedBatch(NamedTuple):
    """Messages that wait for a decision, with their sort key by the starvation policy and their arrival."""

    sort_key: int
    arrival: int
    urgency: int
    reference: Reference


class _UndecidedMessages:
    """What was received and waits for a decision, at every member: any of them may become the leader."""

    def __init__(self, options: OrderingOptions, ranks: dict[ProcessId, int]) -> None:
        self._sort_key = options.policy.sort_key
        self._prioritised = options.prioritised
        self._sender_ranks = ranks
        self._arrivals = 0
        self._waiting: list[_UndecidedBatch] = []
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, batch: Batch, now: int) -> None:
        """Messages arrived, possibly after the decision about them."""
        self._arrivals += 1
        reference = reference_to(batch)
        if not self._is_decided(reference):
            sort_key = self._sort_key(batch.urgency, now)
            self._waiting.append(_UndecidedBatch(sort_key, self._arrivals, batch.urgency, reference))

    def remove(self, sender: ProcessId, value: Value) -> None:
        """A set is decided: its messages wait no longer."""
        for reference in value:
            stream = (reference.sender, reference.level)
            expected = self._number_next.get(stream, reference.first)
            if reference.first != expected:
                raise PeerFault(f"{sender} decides on {reference}; expected number {expected}")
            self._number_next[stream] = expected + reference.count
        self._waiting = [each for each in self._waiting if not self._is_decided(each.reference)]

    def _is_decided(self, reference: Reference) -> bool:
        return reference.first < self._number_next.get((reference.sender, reference.level), 0)

    def next_set(self) -> Value:
        """All that waits, or the first of it by sort key, in the order that it will have.

        Of each sender's messages of equal priority the first ones are in the set: they have the lower sort
        keys.
        """
        chosen = sorted(self._waiting)[:REFERENCES_MAX]
        return _merged([each.reference for each in sorted(chosen, key=self._precedence)])

    def _precedence(self, batch: _UndecidedBatch) -> tuple[int, int, int]:
        urgency = batch.urgency if self._prioritised else 0
        return -urgency, self._sender_ranks[batch.reference.sender], batch.arrival


def _merged(references: list[Reference]) -> Value:
    """The same messages in the same order, with as few references as possible."""
    merged: list[Reference] = []
    for each in references:
        last = merged[-1] if merged else None
        if (
            last is not None
            and (last.sender, last.level, last.first + last.count) == (each.sender, each.level, each.first)
            and last.count + each.count <= BATCH_COUNT_MAX
        ):
            merged[-1] = Reference(last.sender, last.level, last.first, last.count + each.count)
        else:
            merged.append(each)
    return tuple(merged)
