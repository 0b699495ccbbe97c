"""Clients: processes that are not members, and have a member broadcast on their behalf.

A client numbers its requests, and sends a request again, to another member if need be, until it is answered.
Members broadcast a request as often as they get it, and all of them skip repetitions by the delivery table.

The requests of one client may take an eighth of the room that a member has for messages, those of all clients
a half: the rest is the application's own.
"""

import msgspec

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Scope
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.packets import ClientReceipt, ClientReply, ClientRequest

_PENDING_MAX = 4096
_SHARE_OF_ONE = 8
_SHARE_OF_ALL = 2


class Clients:
    """The requests that came to this member, which has room for `queue_max` messages.

    The driver takes the `replies`.
    """

    def __init__(self, delivery_table: DeliveryTable, me: ProcessId, queue_max: int) -> None:
        self._delivery_table = delivery_table
        self._me = me
        self._of_one_max = max(1, queue_max // _SHARE_OF_ONE)
        self._of_all_max = max(1, queue_max // _SHARE_OF_ALL)
        self._undelivered: dict[str, int] = {}
        self._undelivered_all = 0
        self._pending: dict[tuple[str, int], int] = {}
        self.replies: list[tuple[str, ClientReply | ClientReceipt]] = []

    def is_new(self, client: ProcessId, request: ClientRequest) -> bool:
        """Whether a request should be broadcast; one that was delivered is answered at once.

        Requests of one priority are accepted in order: after a gap, the client repeats the missing ones. A
        client that has too many undelivered requests is rejected, and asks again.
        """
        key = (str(client), request.priority)
        delivered = self._delivery_table.last_request(f"{client}/{request.priority}")
        pending = self._pending.get(key, 0)
        if request.number <= delivered:
            self.replies.append((client.name, ClientReply(request.number, request.priority, -1, "")))
            return False
        if request.number <= pending or request.number > max(delivered, pending, request.settled) + 1:
            return False
        undelivered = self._undelivered.get(client.name, 0)
        if undelivered >= self._of_one_max or self._undelivered_all >= self._of_all_max:
            raise Rejected("client quota")
        self._undelivered[client.name] = undelivered + 1
        self._undelivered_all += 1
        self._pending.pop(key, None)
        self._pending[key] = request.number
        if len(self._pending) > _PENDING_MAX:
            del self._pending[next(iter(self._pending))]
        return True

    def on_ordered(self, batch: Batch, position: int) -> None:
        """A batch is delivered; if it is a request that came to this member, answer the client."""
        scope = batch.scope
        name = scope.client.rpartition("#")[0]
        if batch.sender == self._me and name in self._undelivered:
            self._undelivered_all -= 1
            self._undelivered[name] -= 1
            if not self._undelivered[name]:
                del self._undelivered[name]
        if not scope.client or self._delivery_table.is_repeated(batch):
            return
        priority = batch.priority_of(0)
        if self._pending.get((scope.client, priority), 0) >= scope.request:
            self.replies.append((name, ClientReply(scope.request, priority, position, "")))

    def on_view(self) -> None:
        """The view has ended: pending requests may have been lost, and clients may send them again."""
        self._pending.clear()


def scope_of(client: ProcessId, request: ClientRequest) -> Scope:
    """The scope that the client asked for, with the client and the number of its request."""
    return msgspec.structs.replace(request.scope, client=str(client), request=request.number)
