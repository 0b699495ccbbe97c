"""Moving sequencer, unicast-broadcast: members send to the holder of the token, which numbers and broadcasts.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority at the holder of the token,
    over what was submitted there and what the token carried; Bounded overtaking by the chosen starvation
    policy and one round of the token: what it cannot carry waits until it is back. Plain: FIFO order.
Costs: two hops and n frames a message (one submission, n - 1 copies) and one for the token, shared by all
    messages of a turn. The token carries the most urgent pending messages, at most a frame, and no more than
    the window allows. A message that arrives after the token has left waits for up to a round, after n - 1
    frames that request the token. Per member and quarter of a window one report of consumption to all.
Orders: the holder of the token; each member in its turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue and in the queues of all members that the token visits
    (priority sequencing). The waiting time of a message continues to count when the token carries it.
Reference: the techniques paper, sections 5.2 and 6.1.
Diverges: the paper's token carries everything that is pending. Here a message stays where it was submitted
    until it is ordered, and the next holder gets copies of the most urgent ones, as many as it could order
    in one visit; so nothing is lost with a copy, and few copies are sent in vain. The token is accepted only
    when everything below its position is here, or its holder would order again what others have ordered. A
    sender submits to another member only when all its messages are ordered: of those that wait at two members
    the later could be ordered first. The token does not circulate for ever: it moves when its holder has
    ordered something, or has nothing that there is room for and another member has. As in `sequencer-ub`, a
    message gets its position only when every member has room for it. Batches move, not messages.
"""

from heapq import merge

from priocast.core.errors import PeerFault
from priocast.core.identity import NUMBER_MAX, ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import WINDOW_MAX, OrderingOptions, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX
from priocast.protocols.flow.packets import Consumed, Ordered, Submit
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.ring.moving import MovingSequencer
from priocast.protocols.ring.moving_packets import PendingCopy, TokenWithMessages
from priocast.protocols.ring.pending_queue import PendingQueue
from priocast.protocols.ring.ring import WAITED_NS_MAX
from priocast.protocols.ring.token_packets import NOTHING, RequestToken
from priocast.protocols.ring.token_requests import TokenRequests


class _HolderQueue:
    """What the holder orders: the messages submitted to it, and the copies that the token carried."""

    def __init__(self, submitted: PendingQueue, options: OrderingOptions) -> None:
        self._submitted = submitted
        self._policy = options.policy
        self._copies = PriorityQueue(self._policy, 0, 0)

    @property
    def count(self) -> int:
        return self._copies.count + self._submitted.count

    def _first(self) -> PriorityQueue:
        """The queue that the next batch leaves; of equals those that the token carried."""
        copies, submitted = self._copies, self._submitted
        if copies.count and (not submitted.count or copies.head_sort_key() <= submitted.head_sort_key()):
            return copies
        return submitted

    @property
    def head_level(self) -> int:
        return self._first().head_level

    def take(self, count_max: int) -> Batch:
        return self._first().take(count_max)

    def put_copy(self, batch: Batch, since: int) -> None:
        """The token carried a copy of messages that have waited since then."""
        self._copies.put(batch, since)

    def take_copies(self, count_max: int, now: int) -> tuple[PendingCopy, ...]:
        """The token leaves: return the copies that it carries, and forget those that it brought."""
        pending: list[PendingCopy] = []
        count = size = 0
        for _, since, batch in merge(self._copies.leaving(), self._submitted.leaving(), key=_sort_key):
            if count >= count_max or size >= BATCH_BYTES_CUT or len(pending) == FRAME_BATCHES_MAX:
                break
            pending.append(PendingCopy(batch, now - since))
            count += batch.count
            size += len(batch.block)
        self._copies = PriorityQueue(self._policy, 0, 0)
        return tuple(pending)


def _sort_key(leaving: tuple[int, int, Batch]) -> int:
    return leaving[0]


class MovingUb(MovingSequencer[Ordered]):
    """A member's part in the protocol; the view's coordinator has the token first."""

    NAME = "moving-ub"
    PACKETS = (Submit, Ordered, RequestToken, TokenWithMessages, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        # Messages that others have ordered as copies may still be here: a visit's worth, less than two
        # windows.
        self._validator = SubmissionValidator(view, options.submit_max + 2 * WINDOW_MAX, gaps=True)
        submitted = PendingQueue(options.policy, self._validator.ordered)
        super().__init__(me, view, options, position, submitted)
        self._token_requests = TokenRequests(me, view)
        self._queue = _HolderQueue(submitted, options)
        # sender
        self._holder = view.coordinator
        self._sequencer = view.coordinator

    def on_turn(self, event: Turn, now: int) -> None:
        self._submit()
        if self._ring.position is not None:
            self._visit(self._ring.position, now)
        elif self._ring.is_elsewhere:
            self._request_token()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Ordered() as ordered:
                self._on_ordered(event.sender, ordered, event.packet_id)
            case Submit(batches=batches):
                self._on_submit(event.sender, batches, now)
            case TokenWithMessages() as token:
                self._on_token(event.sender, token, now)
            case RequestToken(request=request):
                self._token_requests.learn(event.sender, request)
            case Consumed(total=total, window=window):
                self._grants.granted(event.sender, total, window)

    # Sender

    def _submit(self) -> None:
        if not self.in_flight.count:
            self._sequencer = self._holder if self._ring.position is None else self.me
        self.send_own(self._sequencer, Submit)

    # A member that others believe to be the holder

    def _on_submit(self, sender: ProcessId, batches: tuple[Batch, ...], now: int) -> None:
        for batch in batches:
            self._validator.check(sender, batch)
            self._pending.put(batch, now)

    def _request_token(self) -> None:
        request = self._token_requests.next_own(self._pending_level())
        if request is not None:
            self.send_each(RequestToken(request))

    def _pending_level(self) -> int:
        return self._pending.head_level if self._pending else NOTHING

    # Holder

    def _on_token(self, sender: ProcessId, token: TokenWithMessages, now: int) -> None:
        self._ring.receive(sender, token, self.position_next)
        self._token_requests.learn_all(sender, token.requests)
        for copy in token.pending:
            if copy.batch.sender not in self.ranks or copy.batch.first + copy.batch.count > NUMBER_MAX:
                raise PeerFault(f"{sender} passes on {copy.batch}, which no member sent")
            if not self._validator.received(copy.batch):
                self._queue.put_copy(copy.batch, now - min(copy.waited, WAITED_NS_MAX))
        self._ring.accept(self.position_next)

    def _visit(self, position: int, now: int) -> None:
        """Order one visit's worth; if nothing can be ordered, pass the token to a member that can order."""
        to: ProcessId | None
        if self._queue.count and self.blocked:
            return
        if self._order(position):
            to = next(iter(self._ring.others), None)
        else:
            to = self._token_requests.first_with_room(self._ring.reachable(self.blocked), self._grants)
        if to is not None:
            self.send(to, self._release_token(now))

    def _order(self, first: int) -> bool:
        """Number the most urgent messages that all members have room for, and broadcast them.

        Return whether there were any.
        """
        for position, batches, bottleneck in self._numbered_frames(self._queue):
            self.send_all(Ordered(position, batches, bottleneck))
        return self._ring.position != first

    def _release_token(self, now: int) -> TokenWithMessages:
        self._token_requests.update_own(self._pending_level())
        pending = self._queue.take_copies(self._grants.window, now)
        return TokenWithMessages(self._ring.release(), self._token_requests.of_all(), pending)

    # Destination

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        for orderer, next_ordered, ordered_by in self._in_order(sender, ordered, packet_id):
            self.depends_on(ordered_by)
            self._holder = self._ring.successor(orderer)
            is_bottleneck = next_ordered.bottleneck == self.me.name
            for batch in next_ordered.batches:
                if orderer != self.me:
                    self._grants.ordered(batch)
                self.append_ordered((batch,), is_bottleneck)
        self._ring.accept(self.position_next)
