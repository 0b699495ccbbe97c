"""The delivery table: which messages have been delivered here, kept from view to view.

It makes delivery "exactly once" where a message is sent again: by a client that lost its member, or by a
member that was evicted and rejoined with a new incarnation.
"""

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.membership.packets import OrderDigest, SenderDigest

CLIENTS_MAX = 1024
_NAMES_MAX = 512


class DeliveryTable:
    """The messages that were delivered, by sender and level, and by client."""

    def __init__(self) -> None:
        self._ordered: dict[str, tuple[ProcessId, dict[int, int]]] = {}
        self._clients: dict[str, int] = {}

    def is_repeated(self, batch: Batch) -> bool:
        """Whether this is a client's request that was ordered before."""
        scope = batch.scope
        return bool(scope.client) and scope.request <= self._clients.get(_client_of(batch), 0)

    def add(self, batch: Batch, count: int) -> None:
        """The first `count` messages of a batch are delivered."""
        process, numbers = self._ordered.get(batch.sender.name, (batch.sender, {}))
        if process != batch.sender:
            numbers = {}
        # Only a faulty member can get a message ordered twice; the table does not go back for it.
        numbers[batch.level] = max(numbers.get(batch.level, 0), batch.first + count)
        self._ordered.pop(batch.sender.name, None)
        self._ordered[batch.sender.name] = (batch.sender, numbers)
        if len(self._ordered) > _NAMES_MAX:
            del self._ordered[next(iter(self._ordered))]
        if batch.scope.client and not self.is_repeated(batch):
            client = _client_of(batch)
            self._clients.pop(client, None)
            self._clients[client] = batch.scope.request
            if len(self._clients) > CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]

    def last_request(self, client: str) -> int:
        """The number of the last request of a client that was ordered."""
        return self._clients.get(client, 0)

    def copy(self) -> "DeliveryTable":
        """An independent copy."""
        other = DeliveryTable()
        other._ordered = {
            name: (process, dict(numbers)) for name, (process, numbers) in self._ordered.items()
        }
        other._clients = dict(self._clients)
        return other

    def digest(self, position: int) -> OrderDigest:
        """The digest of the order before this position."""
        ordered = tuple(SenderDigest(process, numbers) for process, numbers in self._ordered.values())
        return OrderDigest(position, self._clients, ordered)

    def adopt(self, digest: OrderDigest) -> None:
        """Continue from the digest that the group has agreed on."""
        self._clients = dict(digest.clients)
        self._ordered = {
            sender.process.name: (sender.process, dict(sender.next_numbers)) for sender in digest.ordered
        }


def merged(digests: list[OrderDigest]) -> OrderDigest:
    """The digest of the order when several views become one."""
    clients: dict[str, int] = {}
    ordered: dict[ProcessId, dict[int, int]] = {}
    for digest in digests:
        for client, number in digest.clients.items():
            clients[client] = max(number, clients.get(client, 0))
        for each in digest.ordered:
            numbers = ordered.setdefault(each.process, {})
            for level, number in each.next_numbers.items():
                numbers[level] = max(number, numbers.get(level, 0))
    newest = {process.name: process for process in sorted(ordered)}
    return OrderDigest(
        max(digest.position for digest in digests),
        dict(sorted(clients.items())[-CLIENTS_MAX:]),
        tuple(SenderDigest(newest[name], ordered[newest[name]]) for name in sorted(newest)),
    )


def _client_of(batch: Batch) -> str:
    """Requests are counted per priority: one may overtake those of another. Each has its own batch."""
    return f"{batch.scope.client}/{batch.priority_of(0)}"
