"""Moving sequencer, unicast-broadcast: members send to whoever has the token, who numbers and broadcasts.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at whoever has the token,
    over what was submitted there and what was handed over; Bounded overtaking by the chosen starvation
    policy. Plain: FIFO order.
Costs: two hops and n frames a message (one submission, n - 1 copies) and one for the token, shared by all
    messages of a turn. The token takes along the most urgent of what is pending, at most a frame, and no
    more than the window allows. A message that comes too late for the token waits for up to a round, after
    n - 1 frames that ask for it. Per member and quarter of a window one report of consumption to all.
Orders: the holder of the token; each member in its turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the queues of all members that the token comes to
    (priority sequencing). Waiting goes on counting when a message is handed over.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: the paper hands over all that is pending with the token. Here a message stays where it was submitted
    until it has a place, and the next holder gets copies of as many, the most urgent ones, as it could order
    at one visit; so nothing is lost with a copy, and little is sent in vain. The token is accepted only when
    everything below its number is here, or its holder would order again what others have ordered. A sender
    turns to another member only when all its messages have their places: of those that wait at two members
    the later might be first. The token does not go round for ever: it moves when its holder has ordered
    something, or has nothing that there is room for and another member has. As in `sequencer-ub`, a message
    gets its place only when every member has room for it. Batches move, not messages.
"""

from heapq import merge
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.grants import FRAME_BATCHES_MAX, Batches, BottleneckName, Consumed
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.base import (
    NOTHING,
    Number,
    RequestToken,
    Token,
    TokenRequests,
    TokenRequestsOfAll,
)
from priocast.protocols.ring.moving import MovingSequencer, Places
from priocast.protocols.ring.pending_queue import PendingQueue


class Submit(Packet, frozen=True, tag="submit"):
    """From a member to the one that it takes for the holder: order these."""

    batches: Batches


class Ordered(Places, frozen=True, tag="ordered"):
    """From the holder to all: these are next in the order.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    batches: Batches
    bottleneck: BottleneckName = ""


class Pending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A copy of messages that wait for a place, and for how long they have waited (ns)."""

    batch: Batch
    waited: Number

    def __str__(self) -> str:
        return f"{self.batch} for {self.waited} ns"


class LadenToken(Token, frozen=True, tag="token"):
    """From the holder to another member: it is your turn, and this is what waits elsewhere.

    The copies are not `batches`: what they are copies of waits where it was submitted, and for a trace, too.
    """

    wishes: TokenRequestsOfAll
    pending: Annotated[tuple[Pending, ...], msgspec.Meta(max_length=FRAME_BATCHES_MAX)]


class _Desk:
    """What the holder orders: what was submitted to it, and the copies that came with the token."""

    def __init__(self, submitted: PendingQueue, options: OrderingOptions) -> None:
        self._submitted = submitted
        self._policy = options.policy
        self._copies = PriorityQueue(self._policy, 0, 0)

    def __bool__(self) -> bool:
        return bool(self._copies or self._submitted)

    def _first(self) -> PriorityQueue:
        """Where the next one is; of equals those that came with the token."""
        copies, submitted = self._copies, self._submitted
        if copies and (not submitted or copies.head_sort_key() <= submitted.head_sort_key()):
            return copies
        return submitted

    def head_level(self) -> int:
        return self._first().head_level()

    def take(self, count_max: int) -> Batch:
        return self._first().take(count_max)

    def lay(self, batch: Batch, since: int) -> None:
        """A copy came with the token."""
        self._copies.put(batch, since)

    def clear(self, count_max: int, now: int) -> tuple[Pending, ...]:
        """The token leaves: return the copies that it takes along, which are gone from here."""
        pending: list[Pending] = []
        count = size = 0
        for _, since, batch in merge(self._copies.leaving(), self._submitted.leaving(), key=_rank):
            if count >= count_max or size >= BATCH_BYTES_CUT or len(pending) == FRAME_BATCHES_MAX:
                break
            pending.append(Pending(batch, now - since))
            count += batch.count
            size += len(batch.block)
        self._copies = PriorityQueue(self._policy, 0, 0)
        return tuple(pending)


def _rank(leaving: tuple[int, int, Batch]) -> int:
    return leaving[0]


class MovingUb(MovingSequencer):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-ub"
    PACKETS = (Submit, Ordered, RequestToken, LadenToken, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        # What others have ordered of their copies may be here still: a visit's worth, less than two windows.
        self._validator = SubmissionValidator(view, options.submit_max + 2 * WINDOW_MAX, gaps=True)
        submitted = PendingQueue(options.policy, self._validator.placed)
        super().__init__(me, view, options, position, submitted)
        self._token_requests = TokenRequests(me, view)
        self._desk = _Desk(submitted, options)
        # sender
        self._holder = view.coordinator
        self._sequencer = view.coordinator

    def on_turn(self, event: Turn, now: int) -> None:
        self._submit()
        if self._number_next is not None:
            self._visit(now)
        elif self._token is None:
            self._ask()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_places(event.sender, ordered, event.packet_id)
            case Submit(batches=batches):
                self._on_submit(event.sender, batches, now)
            case LadenToken() as token:
                self._on_laden_token(event.sender, token, now)
            case RequestToken(wish=wish):
                self._token_requests.learn(event.sender, wish)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _submit(self) -> None:
        if not self.in_flight.count:
            self._sequencer = self._holder if self._number_next is None else self.me
        self.send_own(self._sequencer, Submit)

    # Whoever is taken for the holder

    def _on_submit(self, sender: ProcessId, batches: tuple[Batch, ...], now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._pending.put(batch, now)

    def _ask(self) -> None:
        wish = self._token_requests.renewed(self._wish())
        if wish is not None:
            self.send_each(RequestToken(wish))

    def _wish(self) -> int:
        return self._pending.head_level() if self._pending else NOTHING

    # Holder

    def _on_laden_token(self, sender: ProcessId, token: LadenToken, now: int) -> None:
        self._on_token(sender, token)
        self._token_requests.learn_all(sender, token.wishes)
        for pending in token.pending:
            if pending.batch.sender not in self.ranks:
                raise PeerFault(f"{sender} hands over {pending.batch}, which is no member's")
            if not self._validator.came(pending.batch):
                self._desk.lay(pending.batch, now - pending.waited)

    def _visit(self, now: int) -> None:
        """Order what may be ordered at a visit; who can order nothing lets those go on who can."""
        if self._desk:
            if self.blocked:
                return
            if self._order(self._desk):
                self._pass_on(now)
                return
        to = self._token_requests.first_with_room(self._reachable(), self._grants)
        if to is not None:
            self._pass_token(to, now)

    def _places(self, position: int, batches: tuple[Batch, ...], bottleneck: str) -> Ordered:
        return Ordered(position, batches, bottleneck)

    def _token_with(self, number: int, now: int) -> LadenToken:
        self._token_requests.state(self._wish())
        return LadenToken(number, self._token_requests.of_all(), self._desk.clear(self._grants.window, now))

    # Destination

    def _on_next(self, orderer: ProcessId, places: Places, packet_id: PacketId) -> None:
        assert isinstance(places, Ordered)
        self.depends_on(packet_id)
        self._holder = self._successor(orderer)
        for batch in places.batches:
            self._place(orderer, (batch,), places.bottleneck == self.me.name)
