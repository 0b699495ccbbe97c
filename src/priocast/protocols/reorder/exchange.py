"""The exchange that decides where messages are inserted: data, acknowledgments of all members, decision.

Acknowledgments go to the sender of the data. Once it has all of them it decides and sends the decision to
all. In the `distributed` mode they go to all, and every member comes to the same decision by itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

from priocast.core.errors import PeerFault
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.priority_queue import EMPTY
from priocast.core.protocol import Packet, PacketId
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.reorder.acknowledgments import (
    Acknowledgments,
    AcknowledgmentsToAll,
    AcknowledgmentT,
    Decisions,
    DecisionT,
    in_packets,
)
from priocast.protocols.reorder.level_order import InsertionT

DataId = tuple[int, int]
"""A packet of data: the rank of its sender, and its number among the sender's."""


class ExchangePackets(NamedTuple):
    """The packet types of one protocol."""

    acknowledgments: type[Acknowledgments[Any]]
    acknowledgments_to_all: type[AcknowledgmentsToAll[Any]]
    decisions: type[Decisions[Any]]


class Complete(NamedTuple, Generic[AcknowledgmentT]):
    """The acknowledgments of all members, by rank, and the packets that contained them."""

    acknowledgments: list[AcknowledgmentT]
    packet_ids: list[PacketId]


class Exchange(Generic[InsertionT, AcknowledgmentT, DecisionT]):
    """One member's part in the exchange.

    `own_undecided` counts its own packets of data without a decision; `undecided` has the insertions of all
    packets of data that were received and wait for their decision. `awaited` are those of other members that
    already waited when the last of its own was decided, and still do. The protocol provides `decision`, which
    computes a decision from the acknowledgments of all members, `check_decision`, which raises an error if
    another member's decision is wrong, and `insert`, which carries a decision out.
    """

    def __init__(
        self,
        me: ProcessId,
        members: Sequence[ProcessId],
        distributed: bool,
        packets: ExchangePackets,
        decision: Callable[[int, list[AcknowledgmentT]], DecisionT],
        check_decision: Callable[[ProcessId, list[InsertionT], DecisionT], None],
        insert: Callable[[list[InsertionT], DecisionT], None],
    ) -> None:
        self._me = me
        self._members = members
        self._rank = members.index(me)
        self._distributed = distributed
        self._packets = packets
        self._decision = decision
        self._check_decision = check_decision
        self._insert = insert
        # sender
        self._sent_count = 0
        self.own_undecided = 0
        self._decisions_due: list[DecisionT] = []
        # destination
        self._received_counts = [0] * len(members)
        self.undecided: dict[DataId, list[InsertionT]] = {}
        self.awaited: set[DataId] = set()
        self._acknowledgments_due: dict[int, list[AcknowledgmentT]] = {}
        # the member that decides
        self._number_next = [[0] * len(members) for _ in members]
        self._highest = 0
        self._collected: dict[DataId, list[tuple[AcknowledgmentT, PacketId] | None]] = {}

    @property
    def urgency(self) -> int:
        """How urgent the most urgent message is that was received and is not decided."""
        waiting = [each.batch.urgency for insertions in self.undecided.values() for each in insertions]
        return max(waiting, default=EMPTY)

    @property
    def nothing_due(self) -> bool:
        """Whether all acknowledgments and decisions were sent."""
        return not (self._acknowledgments_due or self._decisions_due)

    def send_due(self, protocol: OrderingProtocol) -> None:
        """Send the acknowledgments and decisions of this turn."""
        if self._acknowledgments_due:
            due, self._acknowledgments_due = self._acknowledgments_due, {}
            if self._distributed:
                for together in in_packets(
                    [each for acknowledgments in due.values() for each in acknowledgments]
                ):
                    protocol.send_all(self._packets.acknowledgments_to_all(together))
            else:
                for rank, acknowledgments in due.items():
                    for together in in_packets(acknowledgments):
                        protocol.send(self._members[rank], self._packets.acknowledgments(together))
        if self._decisions_due:
            decisions, self._decisions_due = self._decisions_due, []
            for decided in in_packets(decisions):
                protocol.send_all(self._packets.decisions(decided))

    def next_number(self) -> int:
        """The number of this member's next packet of data, which is about to be sent."""
        number = self._sent_count
        self._sent_count += 1
        self.own_undecided += 1
        return number

    def check_number(self, sender: ProcessId, rank: int, number: int) -> None:
        """A packet of data arrived: it must be its sender's next one."""
        expected = self._received_counts[rank]
        if number != expected:
            raise PeerFault(f"{sender} sends data {number}; expected {expected}")
        self._received_counts[rank] += 1

    def acknowledge(
        self, acknowledgment: AcknowledgmentT, insertions: list[InsertionT], packet_ids: Sequence[PacketId]
    ) -> None:
        """Acknowledge a packet of data, and keep its insertions until they are decided."""
        self._highest = max(self._highest, *acknowledgment.proposals)
        for insertion in insertions:
            insertion.packet_ids += packet_ids
        self.undecided[acknowledgment.sender, acknowledgment.number] = insertions
        self._acknowledgments_due.setdefault(acknowledgment.sender, []).append(acknowledgment)

    def receive(self, sender: ProcessId, rank: int, packet: Packet, packet_id: PacketId) -> None:
        """Handle one of the packet types of this exchange."""
        distributed = isinstance(packet, AcknowledgmentsToAll)
        if distributed != self._distributed:
            modes = ("at the sender", "distributed")
            raise PeerFault(f"{sender} decides {modes[distributed]}, {self._me} {modes[not distributed]}")
        match packet:
            case Acknowledgments() | AcknowledgmentsToAll():
                for acknowledgment in packet.acknowledgments:
                    self._on_acknowledgment(rank, acknowledgment, packet_id)
            case Decisions(decisions=decisions):
                for decision in decisions:
                    self._on_decision(sender, rank, decision, packet_id)

    def _on_acknowledgment(self, rank: int, acknowledgment: AcknowledgmentT, packet_id: PacketId) -> None:
        """With the acknowledgments of all members, decide: for all, or for this member."""
        complete = self.collect(rank, acknowledgment, packet_id)
        if complete is None:
            return
        decision = self._decision(acknowledgment.number, complete.acknowledgments)
        if self._distributed:
            data_id = (acknowledgment.sender, acknowledgment.number)
            self._carry_out(data_id, decision, complete.packet_ids)
        else:
            self._decisions_due.append(decision)

    def collect(
        self, rank: int, acknowledgment: AcknowledgmentT, packet_id: PacketId
    ) -> Complete[AcknowledgmentT] | None:
        """Add a member's acknowledgment; return those of all members if it was the last one."""
        data_id = (acknowledgment.sender, acknowledgment.number)
        self._check_acknowledgment(self._members[rank], acknowledgment, self._number_next[rank])
        self._number_next[rank][acknowledgment.sender] += 1
        collected = self._collected.get(data_id)
        if collected is None:
            collected = self._collected[data_id] = [None] * len(self._members)
        collected[rank] = (acknowledgment, packet_id)
        if None in collected:
            return None
        del self._collected[data_id]
        acknowledgments = [each for each in collected if each is not None]
        complete = Complete([each for each, _ in acknowledgments], [by for _, by in acknowledgments])
        self._check_lengths(data_id, complete.acknowledgments)
        return complete

    def _check_acknowledgment(
        self, member: ProcessId, acknowledgment: AcknowledgmentT, number_next: list[int]
    ) -> None:
        """Members acknowledge a sender's data once, in order and, if not `distributed`, only to it."""
        sender, number = acknowledgment.sender, acknowledgment.number
        if sender >= len(self._members):
            raise PeerFault(f"{member} acknowledges data of rank {sender}, which is no member")
        if not self._distributed and (sender != self._rank or number >= self._sent_count):
            raise PeerFault(f"{member} acknowledges data {number}, which {self._me} never sent")
        if number != number_next[sender]:
            raise PeerFault(
                f"{member} acknowledges data {(sender, number)}; expected number {number_next[sender]}"
            )
        self._check_near(member, acknowledgment.proposals)
        if not acknowledgment.is_consistent(len(self._members)):
            raise PeerFault(f"{member} sends an inconsistent acknowledgment of data {number}")

    def _check_near(self, member: ProcessId, numbers: Sequence[int]) -> None:
        """Members count on from the highest number."""
        if max(numbers) > self._highest + STEP_MAX:
            raise PeerFault(f"{member} gives number {max(numbers)} after {self._highest}")

    def _check_lengths(self, data_id: DataId, acknowledgments: list[AcknowledgmentT]) -> None:
        """All acknowledge as many batches as this member does."""
        length = len(acknowledgments[self._rank].proposals)
        for member, acknowledgment in zip(self._members, acknowledgments, strict=True):
            if len(acknowledgment.proposals) != length:
                raise PeerFault(f"{member} does not acknowledge each batch of data {data_id}")

    def _on_decision(self, sender: ProcessId, rank: int, decision: DecisionT, packet_id: PacketId) -> None:
        if sender != self._me:
            insertions = self.undecided.get((rank, decision.number), [])
            if len(insertions) != len(decision.finals):
                raise PeerFault(
                    f"{sender} decides on data {decision.number}, which does not wait for a decision"
                )
            if any(final < each.proposal for each, final in zip(insertions, decision.finals, strict=True)):
                raise PeerFault(
                    f"{sender} gives data {decision.number} a lower number than {self._me} proposed"
                )
            self._check_near(sender, decision.finals)
            self._check_decision(sender, insertions, decision)
        self._carry_out((rank, decision.number), decision, [packet_id])

    def _carry_out(self, data_id: DataId, decision: DecisionT, packet_ids: Sequence[PacketId]) -> None:
        """Insert what is decided; its position depends on these packets, too."""
        insertions = self.undecided.pop(data_id)
        self.awaited.discard(data_id)
        if data_id[0] == self._rank:
            self.own_undecided -= 1
            if not self.own_undecided:
                self.awaited = set(self.undecided)
        for insertion in insertions:
            insertion.packet_ids += packet_ids
        self._insert(insertions, decision)
