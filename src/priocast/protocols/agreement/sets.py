"""Destinations agreement on sets: members send to all, and consensus decides which messages are next.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority within a set. Plain: FIFO
    order. It goes on while a majority of the view's members is there, until the window is full.
Costs: four hops: the message, the proposal, its acceptance, the decision. Besides the n frames of a message,
    3n for a set of whatever size; all that waits at the leader goes into the next set.
Orders: the leader of the consensus: the first member, until it is silent for too long.
Assumes: reliable FIFO links, a fixed view; a majority of its members to decide anything.
Priorities act: in the sender's outgoing queue, and where a set is put in order (priority-based consensus).
Reference: the techniques paper, sections 5.5.2 and 6.4; L. Lamport, Paxos made simple, 2001.
Diverges: the paper leaves the consensus open. Here it is Paxos, which survives crashed leaders and is safe
    with several at once; a value is a set in its order, by (urgency, sender, number). Sets have no limit but
    that of a frame, and what goes into a frame is up to the starvation policy. Every sender has a share of
    the window, and the backlog waits in its queue.

Only decisions are packets to all. Nobody gives a place without one, so at the end of a view all who go on
know the places that any of them has given. What was promised and accepted may get lost then: the next view
starts anew. Two leaders may tell one decision, and a member takes the one that comes first, so members know a
place from different packets: the class is not for groups that go on on both sides of a cut.
"""

from typing import Annotated, NamedTuple

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_COUNT_MAX, Batch, Reference, reference_to
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, TimerFired, Turn
from priocast.core.view import View
from priocast.protocols.agreement.consensus import (
    CONSENSUS_PACKETS,
    REFERENCES_MAX,
    Consensus,
    Instance,
    Value,
)
from priocast.protocols.flow.data import Data
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Consumed, References
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages

_PATIENCE = "patience with the leader"


class Decide(Packet, frozen=True, tag="decide"):
    """From a leader to all: this is the set of that instance, in its order, from this place on."""

    TO_ALL = True

    instance: Instance
    position: Annotated[int, msgspec.Meta(ge=0)]
    references: References


class AgreementSets(PacedProtocol):
    """A member's part in the protocol; any of them may come to lead."""

    NAME = "agreement-sets"
    PRIORITIES_ACT = "consensus"
    PARTITIONABLE = False
    PACKETS = (Data, Decide, *CONSENSUS_PACKETS, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._consensus = Consensus(me, view.members, self.send, self.send_each, self._tell)
        self._candidates = _Candidates(options, self.ranks)
        self._waits = False
        self._waits_since = 0
        self._decisions: dict[int, tuple[Decide, PacketId]] = {}
        self._position_decided = position
        self._messages = ReferencedMessages()

    @property
    def idle(self) -> bool:
        return self.settled and not self._candidates and self.position_next == self._position_decided

    def on_turn(self, event: Turn, now: int) -> None:
        self._send_data()
        self._consensus.propose(self._candidates.next_set)
        self._watch(now)

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches, bottleneck=bottleneck):
                self.accept(event.sender, batches, bottleneck)
                for batch in batches:
                    self._on_batch(batch, event.packet_id, now)
                self._place_decided()
            case Decide() as decide:
                self._on_decide(event.sender, decide, event.packet_id, now)
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)
            case packet:
                ballot = self._consensus.ballot
                self._consensus.receive(event.sender, packet)
                if ballot != self._consensus.ballot:
                    self._waits_since = now

    def on_timer(self, event: TimerFired, now: int) -> None:
        self._waits = False
        if self._candidates and now >= self._waits_since + self._consensus.patience_ns:
            self._consensus.take_over()
            self._waits_since = now

    # Sender

    def _send_data(self) -> None:
        for _ in range(FRAMES_PER_TURN):
            if self.blocked:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self.send_all(Data(batches, bottleneck))
        self.more_to_do()

    # Leader

    def _tell(self, value: Value) -> None:
        self.send_all(Decide(self._consensus.instance, self._position_decided, value))

    def _watch(self, now: int) -> None:
        """While something waits for a decision, see to it that there is a leader."""
        if self._candidates and not self._waits:
            self._waits = True
            self.set_timer(_PATIENCE, self._waits_since + self._consensus.patience_ns)
        elif self._waits and not self._candidates:
            self._waits = False
            self.cancel_timer(_PATIENCE)

    # Destination

    def _on_batch(self, batch: Batch, packet_id: PacketId, now: int) -> None:
        self._messages.came(batch, packet_id)
        if not self._candidates:
            self._waits_since = now
        self._candidates.put(batch, now)

    def _on_decide(self, sender: ProcessId, decide: Decide, packet_id: PacketId, now: int) -> None:
        if decide.instance < self._consensus.instance:
            known = self._consensus.value_of(decide.instance)
        else:
            known = self._decisions.setdefault(decide.instance, (decide, packet_id))[0].references
        if known not in (None, decide.references):
            raise PeerFault(f"{sender} decides in instance {decide.instance} otherwise than was decided")
        while (decision := self._decisions.pop(self._consensus.instance, None)) is not None:
            self._waits_since = now
            self._on_next_decision(sender, *decision)
        self._place_decided()

    def _on_next_decision(self, sender: ProcessId, decide: Decide, packet_id: PacketId) -> None:
        if decide.position != self._position_decided:
            raise PeerFault(
                f"{sender} decides about position {decide.position}; expected {self._position_decided}"
            )
        self._candidates.decided(sender, decide.references)
        for reference in decide.references:
            self._messages.named(OrderedReference(reference, sender, packet_id, held=False))
        self._position_decided += sum(reference.count for reference in decide.references)
        self._consensus.decided(decide.references)

    def _place_decided(self) -> None:
        for place, brought_by, batches in self._messages.next_ordered():
            self.depends_on(brought_by)
            self.depends_on(place.packet_id)
            for batch in batches:
                self.append(batch)


class _Candidate(NamedTuple):
    """Messages that have no place yet, with their rank by the starvation policy and their arrival."""

    rank: int
    arrival: int
    urgency: int
    reference: Reference


class _Candidates:
    """What came and waits for a decision, at every member: any of them may come to lead."""

    def __init__(self, options: OrderingOptions, ranks: dict[ProcessId, int]) -> None:
        self._rank = options.policy.sort_key
        self._prioritised = options.prioritised
        self._sender_ranks = ranks
        self._arrivals = 0
        self._waiting: list[_Candidate] = []
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, batch: Batch, now: int) -> None:
        """Messages came; the decision about them may have come before."""
        self._arrivals += 1
        if not self._is_decided(reference_to(batch)):
            rank = self._rank(batch.urgency, now)
            self._waiting.append(_Candidate(rank, self._arrivals, batch.urgency, reference_to(batch)))

    def decided(self, sender: ProcessId, value: Value) -> None:
        """A set is decided: its messages wait no longer."""
        for reference in value:
            stream = (reference.sender, reference.level)
            expected = self._number_next.get(stream, reference.first)
            if reference.first != expected:
                raise PeerFault(f"{sender} decides on {reference}, where number {expected} is next")
            self._number_next[stream] = expected + reference.count
        self._waiting = [each for each in self._waiting if not self._is_decided(each.reference)]

    def _is_decided(self, reference: Reference) -> bool:
        return reference.first < self._number_next.get((reference.sender, reference.level), 0)

    def next_set(self) -> Value:
        """All that waits, or the first of it by rank, in the order that it will have.

        Of each sender's equals the first ones are in the set, because they have the better rank.
        """
        chosen = sorted(self._waiting)[:REFERENCES_MAX]
        return _joined([candidate.reference for candidate in sorted(chosen, key=self._precedence)])

    def _precedence(self, candidate: _Candidate) -> tuple[int, int, int]:
        urgency = candidate.urgency if self._prioritised else 0
        return -urgency, self._sender_ranks[candidate.reference.sender], candidate.arrival


def _joined(references: list[Reference]) -> Value:
    """The same messages in the same order, with as few references as possible."""
    joined: list[Reference] = []
    for each in references:
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.sender, last.level, last.first + last.count) == (each.sender, each.level, each.first)
            and last.count + each.count <= BATCH_COUNT_MAX
        ):
            joined[-1] = Reference(last.sender, last.level, last.first, last.count + each.count)
        else:
            joined.append(each)
    return tuple(joined)
