"""The delivery_table: which messages have been delivered here, kept from view to view.

It is what makes "exactly once" hold where a message is sent again: by a client that lost its member, or by a
member that was put out of the group and came back under a new incarnation.
"""

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.membership.packets import OrderDigest, SenderDigest

CLIENTS_MAX = 1024
_NAMES_MAX = 512


class DeliveryTable:
    """What has its place, by sender and level, and by client."""

    def __init__(self) -> None:
        self._placed: dict[str, tuple[ProcessId, dict[int, int]]] = {}
        self._clients: dict[str, int] = {}

    def is_repeated(self, batch: Batch) -> bool:
        """Whether this is a client's request that was ordered before."""
        scope = batch.scope
        return bool(scope.client) and scope.request <= self._clients.get(_client_of(batch), 0)

    def place(self, batch: Batch, count: int) -> None:
        """The first `count` messages of a batch have their place."""
        process, numbers = self._placed.get(batch.sender.name, (batch.sender, {}))
        if process != batch.sender:
            numbers = {}
        elif batch.sender.name in self._placed:
            assert batch.first + count > numbers.get(batch.level, 0), f"{batch} was placed before"
        numbers[batch.level] = batch.first + count
        self._placed.pop(batch.sender.name, None)
        self._placed[batch.sender.name] = (batch.sender, numbers)
        if len(self._placed) > _NAMES_MAX:
            del self._placed[next(iter(self._placed))]
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
        """A delivery_table of its own that says the same."""
        other = DeliveryTable()
        other._placed = {name: (process, dict(numbers)) for name, (process, numbers) in self._placed.items()}
        other._clients = dict(self._clients)
        return other

    def digest(self, position: int) -> OrderDigest:
        """Where the order stands before this position."""
        placed = tuple(SenderDigest(process, numbers) for process, numbers in self._placed.values())
        return OrderDigest(position, self._clients, placed)

    def adopt(self, digest: OrderDigest) -> None:
        """Go on from where the group stands."""
        self._clients = dict(digest.clients)
        self._placed = {
            placed.process.name: (placed.process, dict(placed.next_numbers)) for placed in digest.ordered
        }


def merged(digests: list[OrderDigest]) -> OrderDigest:
    """Where the order stands when several views become one."""
    clients: dict[str, int] = {}
    placed: dict[ProcessId, dict[int, int]] = {}
    for digest in digests:
        for client, number in digest.clients.items():
            clients[client] = max(number, clients.get(client, 0))
        for each in digest.ordered:
            numbers = placed.setdefault(each.process, {})
            for level, number in each.next_numbers.items():
                numbers[level] = max(number, numbers.get(level, 0))
    newest = {process.name: process for process in sorted(placed)}
    return OrderDigest(
        max(digest.position for digest in digests),
        dict(sorted(clients.items())[-CLIENTS_MAX:]),
        tuple(SenderDigest(newest[name], placed[newest[name]]) for name in sorted(newest)),
    )


def _client_of(batch: Batch) -> str:
    """Requests are counted per priority: one of another priority may overtake. A request is a batch alone."""
    return f"{batch.scope.client}/{batch.priority_of(0)}"
