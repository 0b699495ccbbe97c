"""The one stream that the application consumes: messages, views, and the state that a new member restores.

What is left of ended views is kept here, in order. After it comes what the current view's protocol has
ordered. A message of the current view is deliverable when

- *safe*: every member of the view has acknowledged the packets that its position depends on;
- in a partitionable group: its sender has acknowledged those packets. Otherwise a partition might separate
  the sender, which would not know the position and would give the message another one on its side.
"""

from collections import deque
from collections.abc import Callable

from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import Consume
from priocast.core.view import View
from priocast.membership.clients import Clients
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.own_positions import OwnPositions
from priocast.membership.packets import OrderDigest, Ordering, Proposal
from priocast.membership.snapshot import Snapshot
from priocast.membership.stream_items import Head, StateRestore, ViewStart

_KEPT_BYTES_MAX = 64 * 1024 * 1024
_BATCH_OVERHEAD_BYTES = 512  # of the objects that represent a batch, which exceed the payload of a short one


OnFailure = Callable[[Exception, int], None]


class Stream:
    """What one member's application has not consumed yet.

    While the member `awaits_state`, no messages are delivered. `view` and `ordering` are those of the last
    view that the application consumed, `position` is that of the next message. `epoch` is this member's part
    in its view. `offered` is the head that the application was given last; no input may come between that and
    what the application consumes of it. `on_failure` is called if the next head cannot be determined.
    """

    def __init__(
        self,
        me: ProcessId,
        options: MembershipOptions,
        delivery_table: DeliveryTable,
        clients: Clients,
        on_failure: OnFailure,
    ) -> None:
        self._me = me
        self._all_safe = options.delivery == "safe"
        self._primary = options.primary
        self._all_may_wait = self._all_safe or not options.primary
        self._delivery_table = delivery_table
        self._clients = clients
        self._on_failure = on_failure
        self._items: deque[Head] = deque()
        self._kept_bytes = 0
        self._restored_from = 0
        self.own_positions = OwnPositions()
        self.epoch: Epoch | None = None
        self.offered: Head | None = None
        self.awaits_state = False
        self.position = 0
        self.view: View | None = None
        self.ordering: Ordering | None = None

    def head(self, now: int) -> Head | None:
        """What can be consumed next; messages that are not for this application are skipped.

        The head is valid until the member's next input.
        """
        epoch = self.epoch
        try:
            while True:
                if self._items:
                    self.offered = head = self._items[0]
                    if not isinstance(head, OrderedBatch):
                        return head
                    if self.awaits_state:
                        return None
                else:
                    ordered = None if epoch is None or self.awaits_state else epoch.protocol.head()
                    if epoch is None or ordered is None:
                        return None
                    may_wait = self._all_may_wait or ordered.batch.scope.safe
                    if may_wait and not self._is_deliverable(ordered, epoch):
                        epoch.protocol.on_undeliverable()
                        return None
                    self.offered = head = ordered
                scope = head.batch.scope
                may_skip = scope.to or scope.client or head.position < self._restored_from
                if not may_skip or not (skipped := self._skipped(head)):
                    return head
                self.consume(head, skipped, now)
        except Exception as error:
            self._on_failure(error, now)
            return None

    def consume(self, head: OrderedBatch, count: int, now: int) -> bool:
        """The application took `count` messages of the head, or they are skipped.

        Returns whether the protocol reacted to it.
        """
        self.offered = None
        batch, taken = head.batch, head.taken + count
        if batch.scope.client:
            self._clients.on_ordered(batch, head.position)
        self.position = head.position + taken
        self._delivery_table.add(batch, taken, self.position)
        if batch.sender == self._me:
            own = self.own_positions
            own.recent.append((batch.level, batch.first + taken - count, count, self.position - count))
            if own.awaited:
                own.resolve()
        if not self._items:
            assert self.epoch is not None
            return self.epoch.step(Consume(count), now)
        assert head is self._items[0] and taken <= batch.count
        head.taken = taken
        if taken == batch.count:
            self._items.popleft()
            self._kept_bytes -= _kept_bytes_of(head)
        return False

    def consume_event(self) -> ViewChange | Restored:
        """The application took the head, which is not a message."""
        head = self._items.popleft()
        assert not isinstance(head, OrderedBatch)
        if isinstance(head, StateRestore):
            self.position = max(self.position, head.snapshot.position)
            return Restored(head.snapshot.position, len(head.snapshot.data))
        proposal, digest = head.proposal, head.digest
        self._delivery_table.adopt(digest)
        self.position = digest.position
        self.view = proposal.view
        self.ordering = proposal.ordering
        return ViewChange(proposal.view, digest.position, proposal.reason, proposal.ordering.order)

    def on_view(self, proposal: Proposal, digest: OrderDigest, tail: list[OrderedBatch]) -> None:
        """A view was installed; the one before has ended with this tail."""
        self._keep(tail)
        self._items.append(ViewStart(proposal, digest))
        self._clients.on_view()

    def catch_up(self, epoch: Epoch, now: int) -> None:
        """Keep what is ordered until the application takes it, so that the group does not wait for it."""
        while not self.is_full:
            head = epoch.protocol.head()
            if head is None or not self._is_deliverable(head, epoch):
                return
            taken = head.taken
            epoch.step(Consume(head.batch.count - taken), now)
            head.taken = taken  # the application may be about to take more of it
            self._keep([head])

    @property
    def is_full(self) -> bool:
        """Whether there is no more room to keep what is ordered."""
        return self._kept_bytes >= _KEPT_BYTES_MAX

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept here that the application has not taken."""
        return not self._items

    @property
    def own_kept(self) -> list[Batch]:
        """Own messages that are ordered and kept here; nobody else may have received them."""
        return [
            item.batch.after(item.taken)
            for item in self._items
            if isinstance(item, OrderedBatch) and item.batch.sender == self._me
        ]

    def _keep(self, batches: list[OrderedBatch]) -> None:
        self._items.extend(batches)
        self._kept_bytes += sum(map(_kept_bytes_of, batches))

    def restore(self, snapshot: Snapshot) -> None:
        """The state is complete: messages before its position are skipped, the others follow it."""
        self.awaits_state = False
        self._restored_from = snapshot.position
        for index, item in enumerate(self._items):
            if isinstance(item, OrderedBatch) and item.position + item.batch.count > snapshot.position:
                self._items.insert(index, StateRestore(snapshot))
                return
        self._items.append(StateRestore(snapshot))

    @property
    def has_state(self) -> bool:
        """Whether the application has the group's state: it need not restore it, or has done so."""
        return not (self.awaits_state or any(isinstance(item, StateRestore) for item in self._items))

    def digest(self, position: int, tail: list[OrderedBatch]) -> OrderDigest:
        """The digest of the order before this position, when everything here and the tail is consumed."""
        delivery_table = self._delivery_table.copy()
        for item in (*self._items, *tail):
            if isinstance(item, OrderedBatch):
                delivery_table.add(item.batch, item.batch.count, item.position + item.batch.count)
            elif isinstance(item, ViewStart):
                delivery_table.adopt(item.digest)
        return delivery_table.digest(position)

    def _is_deliverable(self, head: OrderedBatch, epoch: Epoch) -> bool:
        batch, stability = head.batch, epoch.stability
        if (self._all_safe or batch.scope.safe) and not stability.is_stable(head.dependencies):
            return False
        return self._primary or stability.is_received_by(epoch.ranks[batch.sender], head.dependencies)

    def _skipped(self, head: OrderedBatch) -> int:
        """How many of the head's messages are not for this application."""
        if head.position + head.taken < self._restored_from:
            return min(head.batch.count - head.taken, self._restored_from - head.position - head.taken)
        scope = head.batch.scope
        if not scope.includes(self._me) or (scope.client and self._delivery_table.is_repeated(head.batch)):
            return head.batch.count - head.taken
        return 0


def _kept_bytes_of(ordered_batch: OrderedBatch) -> int:
    return _BATCH_OVERHEAD_BYTES + len(ordered_batch.batch.block)
