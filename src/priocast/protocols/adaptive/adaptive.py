"""Adaptive total order (ATOP): senders own slots of the order, as many as they use, and fill them.

Gives: Integrity, Total order, Agreement, FIFO among equals, Causal order, Timestamp order: every message has
    a stamp; prioritised: Priority at each sender, Bounded overtaking within a sender's queue by the chosen
    starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message whose slot is the next one; one hop more, and n - 1 frames of each
    member that skips its slots, if it is not. Members that stay silent skip more and more slots ahead, and
    senders get slots in proportion to what they send, so most messages need no skip. n (n - 1) frames for a
    change of distribution. Per member, sender and quarter of a window one report of consumption.
Orders: every member by itself, from the slots that it received.
Assumes: reliable FIFO links, a fixed view, senders whose rates change slowly enough to be measured.
Priorities act: in the sender's outgoing queue (priority sending): within a sender's slots its most urgent
    message goes first. With the adaptation policy `priority-window` urgent messages also earn slots.
Reference: the adaptive paper, sections 4 to 7; the corrections are in `docs/adaptive.md`.
Diverges: a slot is filled by a packet, which may carry many messages; the stamp counts each of them, and the
    slots that were skipped. The pseudo-random sequence is replaced by one that spreads the slots of a member
    evenly. Figures 4 to 6 are one rule here: messages go in the order of (distribution, slot), and one is
    next when every other member has passed its slot, by filling or skipping a later one or by using a later
    distribution. Dummies are sent for slots that others wait for, not at the rate of the weights; a packet
    with messages also skips, at least the next three turns of its sender: they are spare, for senders that
    are late. At the end of a view the slots that nobody filled are not skipped, as they are
    in figure 6: what follows the first of them is sent again by its sender, because here a message has one
    position on all sides of a partition, too.
"""

from heapq import heappop, heappush

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.inspection import ProtocolInspection, SlotInspection
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId, Received, Turn
from priocast.core.stamp import DistributionId, Stamp
from priocast.core.view import View
from priocast.protocols.adaptive.packets import FilledSlot, SkippedTurns
from priocast.protocols.adaptive.policies import make_policy
from priocast.protocols.adaptive.round_trips import RoundTrips
from priocast.protocols.adaptive.sender_slots import SenderSlots, SlotKey, key_of
from priocast.protocols.adaptive.slots import CYCLE_MAX, Distribution, default_distribution, scaled
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.packets import Consumed

_UNORDERED_MAX = 8
_LOOKAHEAD_MAX = 256
#: A packet with messages skips this many turns besides its own. A sender that is late, and must skip, then
#: finds a turn close by and not a whole interval later, and keeps its place among steady senders. With the
#: paper's load, in the simulator, a message took 1.44 hops without spare turns, 1.12 with 3, 1.18 with 7.
_SPARE_TURNS = 3
_ANSWER_NS = 250_000_000


class Adaptive(PacedProtocol):
    """A member's part in the protocol (the paper's ATOM module); all members do the same."""

    NAME = "adaptive"
    PRIORITIES_ACT = "sending"
    PACKETS = (FilledSlot, SkippedTurns, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        default = default_distribution(len(view.members))
        self._rank = self.ranks[me]
        self._policy = make_policy(options.adaptation, me, view)
        self._round_trips = RoundTrips(self._policy, len(view.members))
        # sender
        self._sending = default
        self._announced = default.id
        self._turn_next = 0
        self._unordered_own = 0
        self._lookahead = 0
        self._observed = False
        # destination
        self._distributions = {default.id: default}
        self._senders = [SenderSlots(default, rank) for rank in range(len(view.members))]
        self._slowest = 0
        self._complete = self._senders[0].clock
        self._awaited: SlotKey = key_of(default.id, -1)
        self._unordered: list[tuple[int, int, int, int]] = []
        self._waits_since = 0
        self._stamp = Stamp(view.id, default.id, 0)
        self._beyond_slots = 0

    @property
    def idle(self) -> bool:
        return self.settled and not self._unordered and self._announced == self._sending.id

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the distribution that this member sends in, by rank."""
        return self._sending.weights

    def inspect(self, now: int) -> ProtocolInspection:
        """A member that does not use its turns is a bottleneck, too: the sooner, the larger its weight."""
        sending = SlotInspection(str(self._sending.id), self._sending.weights)
        found = msgspec.structs.replace(super().inspect(now), slots=sending)
        slowest = self._senders[self._slowest].distribution
        patience_ns = _ANSWER_NS * slowest.cycle // (len(self._senders) * slowest.weights[self._slowest])
        is_late = self._unordered and now - self._waits_since >= patience_ns
        if found.bottleneck is not None or not is_late or self._slowest == self._rank:
            return found
        return msgspec.structs.replace(found, bottleneck=self.view.members[self._slowest])

    def on_turn(self, event: Turn, now: int) -> None:
        """Fill the next slots with own messages, and skip those that others wait for."""
        if self.blocked:
            return
        self._adapt(now)
        while self._unordered_own < _UNORDERED_MAX:
            batches, bottleneck = self.take_frame()
            if not batches:
                break
            self._fill_slot(batches, bottleneck, now)
        self._skip_turns()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case FilledSlot() as filled:
                self.accept(event.sender, filled.batches, filled.bottleneck)
                self._receive(event.sender, filled, event.packet_id, now)
                first = filled.batches[0]
                count = sum(batch.count for batch in filled.batches)
                self._policy.on_messages(self.ranks[event.sender], count, first.urgency, now)
                self._observed = True
            case SkippedTurns() as skipped:
                self._receive(event.sender, skipped, event.packet_id, now)
            case Consumed(total=total, window=window):
                self.grants.granted(event.sender, total, window)

    # Sender

    def _adapt(self, now: int) -> None:
        """Ask the policy for other weights, unless a change of distribution is in progress."""
        if not self._observed or self._complete[:2] != self._sending.id:
            return
        self._observed = False
        proposed = self._policy.proposed(self._sending.weights, now)
        if proposed is None:
            return
        assert len(proposed) == len(self._senders), "a policy proposes a weight for every member"
        weights = scaled(proposed)
        if weights != self._sending.weights:
            self._use(self._added(DistributionId(self._sending.id.number + 1, self._rank), weights))

    def _fill_slot(self, batches: tuple[Batch, ...], bottleneck: str, now: int) -> None:
        turn = self._turn_next
        self._turn_next = max(turn + 1 + _SPARE_TURNS, self._turn_due())
        self._unordered_own += 1
        self._lookahead = 0
        self._round_trips.sent(key_of(self._sending.id, self._sending.slot(self._rank, turn)), now)
        weights, report = self._first_weights(), self._policy.report()
        self.send_all(
            FilledSlot(self._sending.id, turn, self._turn_next, batches, weights, report, bottleneck)
        )

    def _skip_turns(self) -> None:
        """Skip the turns that others wait for, unless own messages wait only for those before them.

        Whoever skips turn after turn without a message skips ever more of them in advance: others then need
        not wait for the next ones, and the member pays with one hop when it has a message again.
        """
        is_new, due = self._announced != self._sending.id, self._turn_due()
        is_paced = self.outgoing.count and self._unordered_own == _UNORDERED_MAX
        if not is_new and (is_paced or due <= self._turn_next):
            return
        if due > self._turn_next:
            self._turn_next = due + self._lookahead
            self._lookahead = min(2 * self._lookahead or 1, _LOOKAHEAD_MAX)
        self.send_all(
            SkippedTurns(self._sending.id, self._turn_next, self._first_weights(), self._policy.report())
        )

    def _turn_due(self) -> int:
        """The first turn whose slot is after all messages that were received."""
        if self._awaited[:2] != self._sending.id:
            return self._turn_next
        return self._sending.turns_before(self._rank, self._awaited[2])

    def _first_weights(self) -> tuple[int, ...]:
        """What the next packet carries: the weights, if it is this member's first one in the distribution."""
        if self._announced == self._sending.id:
            return ()
        self._announced = self._sending.id
        return self._sending.weights

    def _use(self, distribution: Distribution) -> None:
        """Send in this distribution from here on."""
        self._sending = distribution
        self._turn_next = 0

    # Destination

    def _receive(
        self, sender: ProcessId, packet: FilledSlot | SkippedTurns, packet_id: PacketId, now: int
    ) -> None:
        rank = self.ranks[sender]
        slots = self._senders[rank]
        distribution = self._distribution_of(sender, slots.distribution, packet)
        is_same = distribution is slots.distribution
        first = slots.turn_next if is_same else 0
        turn = packet.turn if isinstance(packet, FilledSlot) else packet.turn_next - is_same
        if not first <= turn <= packet.turn_next - isinstance(packet, FilledSlot) <= first + STEP_MAX:
            raise PeerFault(f"{sender} uses turn {turn} up to {packet.turn_next}; {first} is next")
        slots.advance(distribution, packet.turn_next, packet_id[1])
        if distribution.id > self._sending.id:
            self._use(distribution)
        self._round_trips.passed(rank, slots.clock, now)
        if isinstance(packet, FilledSlot):
            key = key_of(distribution.id, distribution.slot(rank, turn))
            self._awaited = max(self._awaited, key)
            if not self._unordered:
                self._waits_since = now
            heappush(self._unordered, (*key, rank))
            slots.filled.append(packet.batches)
        self._policy.on_report(rank, packet.report)
        if rank == self._slowest:
            self._advance(now)
        self._append_next()

    def _distribution_of(
        self, sender: ProcessId, last: Distribution, packet: FilledSlot | SkippedTurns
    ) -> Distribution:
        """The distribution of a packet: the one that its sender used last, or a later one, with weights."""
        id_, weights = packet.distribution, packet.weights
        if id_ == last.id and not weights:
            return last
        known = self._distributions.get(id_)
        if id_ <= last.id or (known is not None and known.weights != weights):
            raise PeerFault(f"{sender} uses distribution {id_} with weights {weights} after {last.id}")
        if known is not None:
            return known
        is_valid = len(weights) == len(self._senders) > id_.rank and sum(weights) <= CYCLE_MAX
        if not is_valid or id_.number > self._sending.id.number + STEP_MAX:
            raise PeerFault(f"{sender} uses distribution {id_}, of which the weights are not those of a view")
        return self._added(id_, weights)

    def _added(self, id_: DistributionId, weights: tuple[int, ...]) -> Distribution:
        distribution = self._distributions[id_] = Distribution(id_, weights)
        return distribution

    def _advance(self, now: int) -> None:
        """The member that all were waiting for has passed a slot: another one may be the slowest now."""
        before = self._complete[:2]
        clocks = [slots.clock for slots in self._senders]
        self._complete = min(clocks)
        self._slowest = clocks.index(self._complete)
        self._waits_since = now
        if self._complete[:2] != before:
            oldest = self._complete[:2]
            self._distributions = {id_: each for id_, each in self._distributions.items() if id_ >= oldest}

    def _append_next(self) -> None:
        """Order the messages of all slots that every member has passed."""
        while self._unordered and self._unordered[0] < self._complete:
            number, proposer, slot, rank = heappop(self._unordered)
            key = (number, proposer, slot)
            self.depends_on_all([slots.packet_after(key) for slots in self._senders])
            id_ = DistributionId(number, proposer)
            if id_ != self._stamp.distribution:
                self._beyond_slots = 0
            for batch in self._senders[rank].filled.popleft():
                self._stamp = Stamp(self._view_id, id_, slot + self._beyond_slots)
                self._beyond_slots += batch.count
                self.append(batch)
            self._beyond_slots -= 1
            if rank == self._rank:
                self._unordered_own -= 1

    def queue_ordered(self, batch: Batch) -> None:
        super().queue_ordered(batch)
        self._ordered_batches[-1].stamp = self._stamp
