"""Destinations agreement on a proposed order: members send to all, and vote on what a starter proposes.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among what a majority has,
    Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: six hops: the message, then question, answer, proposal, vote and application. Besides the n frames of a
    message, 5n for a round of whatever size. One round at a time: what comes meanwhile waits for the next.
Orders: the starter, which is the view's coordinator, if a majority of the members agrees.
Assumes: reliable FIFO links, a fixed view; a majority of its members to order anything.
Priorities act: in the sender's outgoing queue, and where the starter puts a round in order (priority-based
    consensus).
Reference: the techniques paper, sections 5.5.3 and 6.4, figure 5.
Diverges: rounds have numbers, and a late or extra answer or vote changes nothing; figure 5 mixes them up and
    leaves messages undelivered. There is one proposal and one application a round, in the order of the
    rounds, and a member waits for the messages that it lacks. The starter leaves out what is ordered already.
    There is one starter: two are unsafe. Instead of the identifiers of all messages an answer says how many
    of each sender's came: they come in order. A member answers when it has all that the starter had, so that
    no round finds nothing in common. What is common to a majority is ordered, as a majority applies it: one
    slow member holds up nobody, until the window is full. The starter orders as much as every member has
    room for; the backlog waits in its queue, in which the messages of all senders meet (that is why the
    window is its own and not shared out to the senders).
"""

from collections import deque
from typing import Annotated, NamedTuple

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, reference_to
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.base import (
    FlowControlledProtocol,
)
from priocast.protocols.flow.data import (
    Data,
)
from priocast.protocols.flow.grants import (
    BottleneckName,
    Consumed,
    Grants,
    References,
    fill_frame,
)
from priocast.protocols.flow.references import (
    OrderedReference,
    ReferencedMessages,
)
from priocast.protocols.flow.submission_validator import (
    SubmissionValidator,
)

_MEMBERS_MAX = 1024

RoundNumber = Annotated[int, msgspec.Meta(ge=1)]
Counts = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=_MEMBERS_MAX)]


class StartRound(Packet, frozen=True, tag="start-round"):
    """From the starter: I have so many messages of each member; say what you have."""

    round: RoundNumber
    held: Counts


class Holding(Packet, frozen=True, tag="holding"):
    """To the starter: I have so many messages of each member."""

    round: RoundNumber
    held: Counts


class Propose(Packet, frozen=True, tag="propose"):
    """From the starter to all: these should be next in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    TO_ALL = True

    round: RoundNumber
    position: Annotated[int, msgspec.Meta(ge=0)]
    references: References
    bottleneck: BottleneckName = ""


class Vote(Packet, frozen=True, tag="vote"):
    """To the starter: I accept that. Whoever does not agree has found a fault, and does not vote at all."""

    round: RoundNumber


class Apply(Packet, frozen=True, tag="apply"):
    """From the starter to all: a majority has accepted; what was proposed is next in the order."""

    TO_ALL = True

    round: RoundNumber


class AgreementProposal(FlowControlledProtocol):
    """A member's part in the protocol; the view's coordinator is the starter, too."""

    NAME = "agreement-proposal"
    PRIORITIES_ACT = "consensus"
    PACKETS = (Data, StartRound, Holding, Propose, Vote, Apply, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._starter = view.coordinator
        # destination
        # A sender may know places of its messages that this member does not know yet: those in the window.
        self._validator = SubmissionValidator(view, options.submit_max + WINDOW_MAX)
        self._held = [0] * len(view.members)
        self._question: StartRound | None = None
        self._proposal: Propose | None = None
        self._proposed_round = 0
        self._proposed_end = position
        self._messages = ReferencedMessages()
        # starter
        self._round = _Round(0)
        self._received: deque[_Received] = deque()
        size = len(view.members)
        self._common = PriorityQueue(
            options.policy, size * options.submit_max, size * options.submit_bytes_max
        )
        self._grants = Grants(view, options)
        self._number_next = position

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._common.count + sum(each.batch.count for each in self._received)

    @property
    def idle(self) -> bool:
        return (
            self.settled
            and not (self._received or self._common or self._round.is_open)
            and self.position_next == self._proposed_end
        )

    def bottleneck(self) -> ProcessId | None:
        """Who could consume what is ordered; what is being voted on nobody can."""
        return None if self._round.is_open else self._bottleneck()

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._common.waiting(now) if self.me == self._starter else super().waiting(now)

    def on_turn(self, event: Turn, now: int) -> None:
        self._send_data()
        if self.me == self._starter and not self.blocked:
            self._run_round()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Data(batches=batches):
                self._on_data(event.sender, batches, event.packet_id, now)
            case StartRound() as question:
                self._on_start(event.sender, question)
            case Holding() as answer:
                self._on_holding(event.sender, answer)
            case Propose() as proposal:
                self._on_propose(event.sender, proposal)
            case Vote(round=number):
                self._on_vote(event.sender, number)
            case Apply(round=number):
                self._on_apply(event.sender, number, event.packet_id)
            case Consumed(total=total, window=window):
                self._check_asked(event.sender)
                self._grants.granted(event.sender, total, window)

    # Sender

    def _send_data(self) -> None:
        self.send_own(None, Data)

    # Starter

    def _run_round(self) -> None:
        """Take the next step of the round, if it is time for it."""
        current = self._round
        if not current.is_open:
            if self._received or (self._common and self._grants.of_level(self._common.head_level()) > 0):
                self._round = _Round(current.number + 1, is_open=True)
                self.send_each(StartRound(self._round.number, tuple(self._held)))
        elif not current.is_proposed:
            if self._is_majority(len(current.answers)):
                self._find_common(current)
                self._propose(current)
        elif self._is_majority(len(current.votes)):
            current.is_open = False
            self.send_all(Apply(current.number))

    def _find_common(self, current: "_Round") -> None:
        """What all who answered hold can be ordered; what is not among it waits for another round."""
        counts = [min(column) for column in zip(*current.answers.values(), strict=True)]
        received, self._received = self._received, deque()
        for each in received:
            if each.end <= counts[self.ranks[each.batch.sender]]:
                self._common.put(each.batch, each.at)
            else:
                self._received.append(each)

    def _propose(self, current: "_Round") -> None:
        position = self._number_next
        batches = fill_frame(self._common, self._grants.of_level, self._number)
        if not batches:
            current.is_open = False
            return
        current.is_proposed = True
        bottleneck = self._bottleneck()
        references = tuple(map(reference_to, batches))
        self.send_all(Propose(current.number, position, references, bottleneck.name if bottleneck else ""))

    def _number(self, batch: Batch) -> None:
        self._number_next += batch.count
        self._grants.placed(batch)

    def _bottleneck(self) -> ProcessId | None:
        return self._grants.bottleneck(self._common.head_level()) if self._common else None

    def _on_holding(self, sender: ProcessId, answer: Holding) -> None:
        self._check_asked(sender)
        self._check_counts(sender, answer.held)
        if answer.round == self._round.number:
            self._round.answers[sender] = answer.held

    def _on_vote(self, sender: ProcessId, number: int) -> None:
        self._check_asked(sender)
        if number == self._round.number:
            self._round.votes[sender] = True

    def _is_majority(self, count: int) -> bool:
        return 2 * count > len(self.view.members)

    def _check_asked(self, sender: ProcessId) -> None:
        if self.me != self._starter:
            raise PeerFault(f"{sender} takes {self.me} for the starter, which is {self._starter}")

    # Destination

    def _on_data(self, sender: ProcessId, batches: tuple[Batch, ...], packet_id: PacketId, now: int) -> None:
        rank = self.ranks[sender]
        for batch in batches:
            self._validator.check(sender, batch)
            self._messages.came(batch, packet_id)
            self._held[rank] += batch.count
            if self.me == self._starter:
                self._received.append(_Received(batch, self._held[rank], now))
        self._answer()
        self._place_applied()

    def _on_start(self, sender: ProcessId, question: StartRound) -> None:
        self._check_starter(sender)
        self._check_counts(sender, question.held)
        self._question = question
        self._answer()

    def _answer(self) -> None:
        """Answer the starter's last question as soon as we have all that it had."""
        question = self._question
        if question is not None and all(map(int.__ge__, self._held, question.held)):
            self._question = None
            self.send(self._starter, Holding(question.round, tuple(self._held)))

    def _on_propose(self, sender: ProcessId, proposal: Propose) -> None:
        self._check_starter(sender)
        if self._proposal is not None or proposal.round <= self._proposed_round:
            raise PeerFault(
                f"{sender} proposes round {proposal.round} while round {self._proposed_round} lasts"
            )
        if proposal.position != self._proposed_end:
            raise PeerFault(f"{sender} proposes position {proposal.position}; expected {self._proposed_end}")
        self._proposal, self._proposed_round = proposal, proposal.round
        self._proposed_end += sum(reference.count for reference in proposal.references)
        self.send(self._starter, Vote(proposal.round))

    def _on_apply(self, sender: ProcessId, number: int, packet_id: PacketId) -> None:
        self._check_starter(sender)
        if self._proposal is None or number != self._proposal.round:
            raise PeerFault(f"{sender} applies round {number}, which is not proposed")
        held = self._proposal.bottleneck == self.me.name
        for reference in self._proposal.references:
            self._messages.named(OrderedReference(reference, sender, packet_id, held))
        self._proposal = None
        self._place_applied()

    def _place_applied(self) -> None:
        """Place what is next and has come; the packet that applied it came after the one that proposed it."""
        for place, brought_by, batches in self._messages.next_ordered():
            self.depends_on(brought_by)
            self.depends_on(place.packet_id)
            self._validator.placed(place.reference)
            self.append_ordered(batches, place.held)

    def report(self, source: ProcessId, consumed: Consumed) -> None:
        self.send(self._starter, consumed)

    def _check_starter(self, sender: ProcessId) -> None:
        if sender != self._starter:
            raise PeerFault(f"{sender} acts as the starter, which is {self._starter}")

    def _check_counts(self, sender: ProcessId, counts: tuple[int, ...]) -> None:
        if len(counts) != len(self.view.members):
            raise PeerFault(f"{sender} counts the messages of {len(counts)} members")


class _Received(NamedTuple):
    """What the starter has, but may not have in common with others: the `end` is its sender's count."""

    batch: Batch
    end: int
    at: int


class _Round:
    """What the starter knows about one round: who answered what, and who voted for its proposal."""

    def __init__(self, number: int, is_open: bool = False) -> None:
        self.number = number
        self.is_open = is_open
        self.is_proposed = False
        self.answers: dict[ProcessId, tuple[int, ...]] = {}
        self.votes: dict[ProcessId, bool] = {}
