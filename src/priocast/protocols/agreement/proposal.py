"""Destinations agreement on a proposed order: members send to all, and vote on what a starter proposes.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among what a majority has,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: six hops: the message, then question, reply, proposal, vote and application. Besides the n frames of a
    message, 5n for a round of any size. One round at a time: what arrives meanwhile waits for the next.
Orders: the starter, which is the view's coordinator, if a majority of the members agrees.
Assumes: reliable FIFO links, a fixed view; a majority of its members to order anything.
Priorities act: in the sender's outgoing queue, and where the starter puts a round in order (priority-based
    consensus).
Reference: the techniques paper, sections 5.5.3 and 6.4, figure 5.
Diverges: rounds have numbers, and a late or extra reply or vote changes nothing; figure 5 mixes them up and
    leaves messages undelivered. There is one proposal and one application a round, in the order of the
    rounds, and a member waits for the messages that it lacks. The starter leaves out what is ordered already.
    There is one starter: two are unsafe. Instead of the identifiers of all messages a reply has how many of
    each sender's were received: they arrive in order. A member replies when it has all that the starter had,
    so that no round finds nothing in common. What is common to a majority is ordered, as a majority applies
    it: one slow member delays nobody, until the window is full. The starter orders as much as every member
    has room for; the backlog waits in its queue, in which the messages of all senders meet (that is why the
    window is its own and not shared out to the senders).
"""

from collections import deque
from typing import NamedTuple

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, reference_to
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.agreement.proposal_packets import (
    ApplyOrder,
    OrderVote,
    ProposedOrder,
    ReceivedCounts,
    StartConsensus,
)
from priocast.protocols.flow.coordinated import CoordinatedProtocol, check_role
from priocast.protocols.flow.frames import fill_frame
from priocast.protocols.flow.packets import Consumed, Data
from priocast.protocols.flow.references import OrderedReference, ReferencedMessages
from priocast.protocols.flow.submission_validator import SubmissionValidator


class AgreementProposal(CoordinatedProtocol):
    """A member's part in the protocol; the view's coordinator is the starter as well."""

    NAME = "agreement-proposal"
    ROLE = "starter"
    PRIORITIES_ACT = "consensus"
    PACKETS = (Data, StartConsensus, ReceivedCounts, ProposedOrder, OrderVote, ApplyOrder, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._starter = view.coordinator
        # destination
        # A sender may know positions of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)
        self._received_counts = [0] * len(view.members)
        self._question: StartConsensus | None = None
        self._proposal: ProposedOrder | None = None
        self._proposed_round = 0
        self._proposed_end = position
        self._messages = ReferencedMessages()
        # starter
        self._round = _Round(0)
        self._received: deque[_ReceivedBatch] = deque()

    @property
    def backlog(self) -> int:
        return super().backlog + sum(each.batch.count for each in self._received)

    @property
    def idle(self) -> bool:
        return (
            super().idle
            and not (self._received or self._round.is_open)
            and self.position_next == self._proposed_end
        )

    def inspect(self, now: int) -> ProtocolInspection:
        """The bottleneck could consume ordered messages; nobody can, while members vote."""
        inspection = super().inspect(now)
        return msgspec.structs.replace(inspection, bottleneck=None) if self._round.is_open else inspection

    def on_turn(self, event: Turn, now: int) -> None:
        self.send_own(None, Data)
        if self.me == self._starter and not self.blocked:
            self._run_round()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case StartConsensus() as question:
                self._on_start(event.sender, question)
            case ReceivedCounts() as reply:
                self._on_counts(event.sender, reply)
            case ProposedOrder() as proposal:
                self._on_proposal(event.sender, proposal)
            case OrderVote(round=number):
                self._on_vote(event.sender, number)
            case ApplyOrder(round=number):
                self._on_apply(event.sender, number, event.packet_id)
            case Consumed() as report:
                self._on_consumed_report(event.sender, report)

    # Starter

    def _run_round(self) -> None:
        """Take the next step of the round, if its condition holds."""
        current = self._round
        if not current.is_open:
            if self._received or (self._incoming and self._grants.room(self._incoming.head_level) > 0):
                self._round = _Round(current.number + 1, is_open=True)
                self.send_each(StartConsensus(self._round.number, tuple(self._received_counts)))
        elif not current.is_proposed:
            if self._is_majority(len(current.counts)):
                self._find_common(current)
                self._propose(current)
        elif self._is_majority(len(current.votes)):
            current.is_open = False
            self.send_all(ApplyOrder(current.number))

    def _on_counts(self, sender: ProcessId, reply: ReceivedCounts) -> None:
        check_role(self.ROLE, self.me, self._coordinator, sender)
        self._check_counts(sender, reply.received)
        if reply.round == self._round.number:
            self._round.counts[sender] = reply.received

    def _find_common(self, current: "_Round") -> None:
        """What all that replied have received can be ordered; the rest waits for another round."""
        counts = [min(column) for column in zip(*current.counts.values(), strict=True)]
        received, self._received = self._received, deque()
        for each in received:
            if each.end <= counts[self.ranks[each.batch.sender]]:
                self._incoming.put(each.batch, each.at)
            else:
                self._received.append(each)

    def _propose(self, current: "_Round") -> None:
        """Propose the common messages in the order of their priorities, as far as there is room."""
        position = self._number_next
        batches = fill_frame(self._incoming, self._grants.room, self._number)
        if not batches:
            current.is_open = False
            return
        current.is_proposed = True
        bottleneck = self._grants.bottleneck_name(self._incoming)
        references = tuple(map(reference_to, batches))
        self.send_all(ProposedOrder(current.number, position, references, bottleneck))

    def _number(self, batch: Batch) -> None:
        self._number_next += batch.count
        self._grants.ordered(batch)

    def _on_vote(self, sender: ProcessId, number: int) -> None:
        check_role(self.ROLE, self.me, self._coordinator, sender)
        if number == self._round.number:
            self._round.votes[sender] = True

    def _is_majority(self, count: int) -> bool:
        return 2 * count > len(self.view.members)

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        rank = self.ranks[sender]
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.received(batch, packet_id)
            self._received_counts[rank] += batch.count
            if self.me == self._starter:
                self._received.append(_ReceivedBatch(batch, self._received_counts[rank], now))
        self._reply()
        self._append_applied()

    def _on_start(self, sender: ProcessId, question: StartConsensus) -> None:
        self._check_from_starter(sender)
        self._check_counts(sender, question.received)
        self._question = question
        self._reply()

    def _reply(self) -> None:
        """Reply to the starter's last question as soon as this member has all that the starter had."""
        question = self._question
        if question is not None and all(map(int.__ge__, self._received_counts, question.received)):
            self._question = None
            self.send(self._starter, ReceivedCounts(question.round, tuple(self._received_counts)))

    def _on_proposal(self, sender: ProcessId, proposal: ProposedOrder) -> None:
        self._check_from_starter(sender)
        if self._proposal is not None or proposal.round <= self._proposed_round:
            state = "is open" if self._proposal is not None else "was the last"
            raise PeerFault(f"{sender} proposes round {proposal.round}; round {self._proposed_round} {state}")
        if proposal.position != self._proposed_end:
            raise PeerFault(f"{sender} proposes position {proposal.position}; expected {self._proposed_end}")
        self._proposal, self._proposed_round = proposal, proposal.round
        self._proposed_end += sum(reference.count for reference in proposal.references)
        self.send(self._starter, OrderVote(proposal.round))

    def _on_apply(self, sender: ProcessId, number: int, packet_id: PacketId) -> None:
        self._check_from_starter(sender)
        if self._proposal is None or number != self._proposal.round:
            raise PeerFault(f"{sender} applies round {number}, which is not proposed")
        is_bottleneck = self._proposal.bottleneck == self.me.name
        for reference in self._proposal.references:
            self._messages.ordered(OrderedReference(reference, sender, packet_id, is_bottleneck))
        self._proposal = None
        self._append_applied()

    def _append_applied(self) -> None:
        """Append what is next and was received; the packet that applies an order follows the proposal."""
        for named, brought_by, batches in self._messages.next_ordered():
            self.depends_on(brought_by)
            self.depends_on(named.packet_id)
            self._validator.ordered(named.reference)
            self.append_ordered(batches, named.is_bottleneck)

    # Checks

    def _check_from_starter(self, sender: ProcessId) -> None:
        if sender != self._starter:
            raise PeerFault(f"{sender} acts as the starter, which is {self._starter}")

    def _check_counts(self, sender: ProcessId, counts: tuple[int, ...]) -> None:
        if len(counts) != len(self.view.members):
            raise PeerFault(f"{sender} counts the messages of {len(counts)} members")


class _ReceivedBatch(NamedTuple):
    """What the starter has received and others may not have; `end` is its sender's count with this batch."""

    batch: Batch
    end: int
    at: int


class _Round:
    """What the starter knows about one round: the counts of those that replied, and the votes."""

    def __init__(self, number: int, is_open: bool = False) -> None:
        self.number = number
        self.is_open = is_open
        self.is_proposed = False
        self.counts: dict[ProcessId, tuple[int, ...]] = {}
        self.votes: dict[ProcessId, bool] = {}
