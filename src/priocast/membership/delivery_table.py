"""The delivery table: which messages have been delivered here, kept from view to view.

It makes delivery "exactly once" where a message is sent again: by a client that lost its member, or by a
member that was evicted and rejoined with a new incarnation.
"""

from itertools import starmap

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.membership.packets import ClientDigest, OrderDigest, SenderDigest

CLIENTS_MAX = 1024
_NAMES_MAX = 384  # the members of the largest view, and half as many that departed: they fit into a frame


class DeliveryTable:
    """The messages that were delivered, by sender and level, and by client.

    What is bounded forgets who was silent for longest: both tables are in the order of the last deliveries.
    """

    def __init__(self) -> None:
        self._ordered: dict[str, tuple[ProcessId, dict[int, int], int]] = {}
        self._clients: dict[str, ClientDigest] = {}

    def is_repeated(self, batch: Batch) -> bool:
        """Whether this is a client's request that was ordered before."""
        scope = batch.scope
        return bool(scope.client) and scope.request <= self.last_request(_client_of(batch))

    def add(self, batch: Batch, count: int, position: int) -> None:
        """The first `count` messages of a batch are delivered; the next message has this position."""
        sender, name = batch.sender, batch.sender.name
        process, numbers, _ = self._ordered.pop(name, (sender, {}, 0))
        if process != sender:
            numbers = {}
        # Only a faulty member can get a message ordered twice; the table does not go back for it.
        numbers[batch.level] = max(numbers.get(batch.level, 0), batch.first + count)
        self._ordered[name] = (sender, numbers, position)
        if len(self._ordered) > _NAMES_MAX:
            del self._ordered[next(iter(self._ordered))]
        if batch.scope.client and not self.is_repeated(batch):
            client = _client_of(batch)
            self._clients.pop(client, None)
            self._clients[client] = ClientDigest(batch.scope.request, position)
            if len(self._clients) > CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]

    def last_request(self, client: str) -> int:
        """The number of the last request of a client that was ordered."""
        last = self._clients.get(client)
        return last.number if last else 0

    def copy(self) -> "DeliveryTable":
        """An independent copy."""
        other = DeliveryTable()
        other._ordered = {
            name: (process, dict(numbers), position)
            for name, (process, numbers, position) in self._ordered.items()
        }
        other._clients = dict(self._clients)
        return other

    def digest(self, position: int) -> OrderDigest:
        """The digest of the order before this position."""
        return OrderDigest(position, self._clients, tuple(starmap(SenderDigest, self._ordered.values())))

    def adopt(self, digest: OrderDigest) -> None:
        """Continue from the digest that the group has agreed on."""
        self._clients = dict(digest.clients)
        self._ordered = {
            sender.process.name: (sender.process, dict(sender.next_numbers), sender.position)
            for sender in digest.ordered
        }


def merged(digests: list[OrderDigest]) -> OrderDigest:
    """The digest of the order when several views become one: who was silent for longest comes first.

    Who was silent for longest is also who is forgotten if there are too many.
    """
    clients: dict[str, ClientDigest] = {}
    ordered: dict[ProcessId, SenderDigest] = {}
    for digest in digests:
        for client, last in digest.clients.items():
            known = clients.get(client, last)
            number, position = max(last.number, known.number), max(last.position, known.position)
            clients[client] = ClientDigest(number, position)
        for sender in digest.ordered:
            ordered[sender.process] = _joined(ordered.get(sender.process, sender), sender)
    newest = {process.name: ordered[process] for process in sorted(ordered)}
    by_silence = sorted(clients.items(), key=lambda item: (item[1].position, item[0]))
    senders = sorted(newest.values(), key=lambda sender: (sender.position, sender.process))
    return OrderDigest(
        max(digest.position for digest in digests),
        dict(by_silence[-CLIENTS_MAX:]),
        tuple(senders[-_NAMES_MAX:]),
    )


def _joined(one: SenderDigest, other: SenderDigest) -> SenderDigest:
    """What was delivered of a process according to two digests."""
    levels = sorted(one.next_numbers | other.next_numbers)
    numbers = {
        level: max(one.next_numbers.get(level, 0), other.next_numbers.get(level, 0)) for level in levels
    }
    return SenderDigest(one.process, numbers, max(one.position, other.position))


def _client_of(batch: Batch) -> str:
    """Requests are counted per priority: one may overtake those of another. Each has its own batch."""
    return f"{batch.scope.client}/{batch.priority_of(0)}"
