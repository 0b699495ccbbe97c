"""The one stream that the application consumes: messages, views, and the state that a new member takes over.

What ended views left is kept here, in order; after it comes what the present view's protocol has ordered. A
message of the present view is handed out when it is ripe:

- *safe*: every member of the view is known to hold the packets that placed it;
- in a partitionable group: its sender is known to hold those packets. Otherwise the sender might be cut off,
  not know the place, and give the message another one on its side.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import Consume
from priocast.core.view import View
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.epoch import Epoch
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import OrderDigest, Ordering, Proposal
from priocast.membership.state_transfer import Snapshot

_CATCH_UP_BYTES_MAX = 64 * 1024 * 1024


class ViewStart(msgspec.Struct, frozen=True):
    """The place where a view begins."""

    proposal: Proposal
    digest: OrderDigest


class StateRestore(msgspec.Struct, frozen=True):
    """The place where the application takes over the group's state."""

    snapshot: Snapshot


Head = OrderedBatch | ViewStart | StateRestore


class Stream:
    """What one member's application has not consumed yet. `placed` is told of each batch as it is passed."""

    def __init__(
        self,
        me: ProcessId,
        options: MembershipOptions,
        delivery_table: DeliveryTable,
        placed: Callable[[Batch, int], None],
    ) -> None:
        self._me = me
        self._safe = options.delivery == "safe"
        self._primary = options.primary
        self._delivery_table = delivery_table
        self._placed = placed
        self._items: deque[Head] = deque()
        self._kept_bytes = 0
        self._restored_from = 0
        self.awaits_state = False
        self.position = 0
        self.view: View | None = None
        self.ordering: Ordering | None = None

    def head(self, epoch: Epoch | None, now: int) -> Head | None:
        """What may be consumed next; messages that are not for this application are passed over."""
        while (head := self._next(epoch)) is not None:
            if not isinstance(head, OrderedBatch):
                return head
            scope = head.batch.scope
            if not (scope.to or scope.client or head.position < self._restored_from):
                return head
            passed = self._passed_over(head)
            if not passed:
                return head
            self._pass(head, passed, epoch, now)
        return None

    def taken_from(self, epoch: Epoch | None) -> OrderedBatch:
        """The head, which the application was given and takes messages of."""
        head = self._items[0] if self._items else epoch and epoch.protocol.head()
        assert isinstance(head, OrderedBatch)
        return head

    def consume(self, head: OrderedBatch, count: int, epoch: Epoch | None, now: int) -> None:
        """The application took messages of the head."""
        self._pass(head, count, epoch, now)

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

    def begin(self, proposal: Proposal, digest: OrderDigest, tail: list[OrderedBatch]) -> None:
        """A view has ended with this tail, and the next one has begun."""
        self._items.extend(tail)
        self._items.append(ViewStart(proposal, digest))

    def catch_up(self, epoch: Epoch, now: int) -> None:
        """While the state is awaited, keep what is ordered here, so that the group need not wait for us."""
        while self._kept_bytes < _CATCH_UP_BYTES_MAX and (head := self._ripe(epoch)) is not None:
            self._items.append(OrderedBatch(head.view, head.position, head.batch, head.dependencies))
            self._kept_bytes += len(head.batch.block)
            epoch.step(Consume(head.batch.count), now)

    def restore(self, snapshot: Snapshot) -> None:
        """The state is here: what came before it is passed over, the rest follows it."""
        self.awaits_state = False
        self._kept_bytes = 0
        self._restored_from = snapshot.position
        for index, item in enumerate(self._items):
            if isinstance(item, OrderedBatch) and item.position + item.batch.count > snapshot.position:
                self._items.insert(index, StateRestore(snapshot))
                return
        self._items.append(StateRestore(snapshot))

    def digest(self, position: int, tail: list[OrderedBatch]) -> OrderDigest:
        """Where the order will stand, before this position, when all this and then the tail is consumed."""
        delivery_table = self._delivery_table.copy()
        for item in (*self._items, *tail):
            if isinstance(item, OrderedBatch):
                delivery_table.place(item.batch, item.batch.count)
            elif isinstance(item, ViewStart):
                delivery_table.adopt(item.digest)
        return delivery_table.digest(position)

    def _next(self, epoch: Epoch | None) -> Head | None:
        if self._items:
            item = self._items[0]
            return None if self.awaits_state and isinstance(item, OrderedBatch) else item
        return None if epoch is None or self.awaits_state else self._ripe(epoch)

    def _ripe(self, epoch: Epoch) -> OrderedBatch | None:
        head = epoch.protocol.head()
        if head is None:
            return None
        batch = head.batch
        if (self._safe or batch.scope.safe) and not epoch.stability.is_stable(head.dependencies):
            return None
        if not self._primary and not epoch.stability.is_received_by(
            epoch.ranks[batch.sender], head.dependencies
        ):
            return None
        return head

    def _passed_over(self, head: OrderedBatch) -> int:
        """How many of the head's messages are not for this application."""
        if head.position + head.taken < self._restored_from:
            return min(head.batch.count - head.taken, self._restored_from - head.position - head.taken)
        scope = head.batch.scope
        if not scope.includes(self._me) or (scope.client and self._delivery_table.is_repeated(head.batch)):
            return head.batch.count - head.taken
        return 0

    def _pass(self, head: OrderedBatch, count: int, epoch: Epoch | None, now: int) -> None:
        batch, position = head.batch, head.position + head.taken + count
        self._placed(batch, head.position)
        self._delivery_table.place(batch, head.taken + count)
        self.position = position
        if self._items:
            assert head is self._items[0]
            head.taken += count
            assert head.taken <= batch.count
            if head.taken == batch.count:
                self._items.popleft()
        else:
            assert epoch is not None
            epoch.step(Consume(count), now)
