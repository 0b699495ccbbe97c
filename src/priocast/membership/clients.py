"""Clients: processes that are not members, and have a member broadcast on their behalf.

A client numbers its requests, and sends a request again, to another member if need be, until it is answered.
Members broadcast a request as often as they get it, and all of them skip repetitions by the delivery table.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Scope
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.packets import ClientReply, ClientRequest

_PENDING_MAX = 4096


class Clients:
    """The requests that came to this member. The driver takes the `replies`."""

    def __init__(self, delivery_table: DeliveryTable) -> None:
        self._delivery_table = delivery_table
        self._pending: dict[tuple[str, int], int] = {}
        self.replies: list[tuple[str, ClientReply]] = []

    def is_new(self, client: ProcessId, request: ClientRequest) -> bool:
        """Whether a request should be broadcast; one that was delivered is answered at once.

        Requests of one priority are accepted in order: after a gap, the client repeats the missing ones.
        """
        key = (str(client), request.priority)
        delivered = self._delivery_table.last_request(f"{client}/{request.priority}")
        pending = self._pending.get(key, 0)
        if request.number <= delivered:
            self.replies.append((client.name, ClientReply(request.number, request.priority, -1, "")))
            return False
        if request.number <= pending or request.number > max(delivered, pending, request.settled) + 1:
            return False
        self._pending.pop(key, None)
        self._pending[key] = request.number
        if len(self._pending) > _PENDING_MAX:
            del self._pending[next(iter(self._pending))]
        return True

    def on_ordered(self, batch: Batch, position: int) -> None:
        """A batch is delivered; if it is a request that came to this member, answer the client."""
        scope = batch.scope
        if not scope.client or self._delivery_table.is_repeated(batch):
            return
        priority = batch.priority_of(0)
        if self._pending.get((scope.client, priority), 0) >= scope.request:
            name = scope.client.rpartition("#")[0]
            self.replies.append((name, ClientReply(scope.request, priority, position, "")))

    def on_view(self) -> None:
        """The view has ended: pending requests may have been lost, and clients may send them again."""
        self._pending.clear()


def scope_of(client: ProcessId, request: ClientRequest) -> Scope:
    """The scope that the client asked for, with the client and the number of its request."""
    return msgspec.structs.replace(request.scope, client=str(client), request=request.number)
