"""Clients: processes that are not members, and have a member broadcast for them.

A client numbers its requests and sends one again, to another member if need be, until it is answered. Members
order each as often as they are asked to, and all of them pass over the repetitions: the delivery_table knows them.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Scope
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.packets import ClientReply, ClientRequest

_PENDING_MAX = 4096


class Clients:
    """The requests that came to this member. `replies` gather for the driver."""

    def __init__(self, delivery_table: DeliveryTable) -> None:
        self._delivery_table = delivery_table
        self._pending: dict[tuple[str, int], int] = {}
        self.replies: list[tuple[str, ClientReply]] = []

    def is_new(self, client: ProcessId, request: ClientRequest) -> bool:
        """Whether a request should be broadcast; one that has its place is answered at once.

        Requests of one priority are taken in order: after a gap, the client sends again what is missing.
        """
        key = (str(client), request.priority)
        placed = self._delivery_table.last_request(f"{client}/{request.priority}")
        pending = self._pending.get(key, 0)
        if request.number <= placed:
            self.replies.append((client.name, ClientReply(request.number, request.priority, -1, "")))
            return False
        if request.number <= pending or request.number > max(placed, pending, request.settled) + 1:
            return False
        self._pending.pop(key, None)
        self._pending[key] = request.number
        if len(self._pending) > _PENDING_MAX:
            del self._pending[next(iter(self._pending))]
        return True

    def placed(self, batch: Batch, position: int) -> None:
        """A batch has its place; if it is the request of a client that asked here, tell it."""
        scope = batch.scope
        if not scope.client or self._delivery_table.is_repeated(batch):
            return
        priority = batch.priority_of(0)
        if self._pending.get((scope.client, priority), 0) >= scope.request:
            name = scope.client.rpartition("#")[0]
            self.replies.append((name, ClientReply(scope.request, priority, position, "")))

    def forget_pending(self) -> None:
        """The view has ended: what was asked may have been lost, and may be asked again."""
        self._pending.clear()


def scope_of(client: ProcessId, request: ClientRequest) -> Scope:
    """What the client asked for, and that it was this client."""
    return msgspec.structs.replace(request.scope, client=str(client), request=request.number)
