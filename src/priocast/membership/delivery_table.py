"""The delivery table: which messages have been delivered here, kept from view to view.

It makes delivery "exactly once" where a message is sent again: by a client that lost its member, or by a
member that was evicted and rejoined with a new incarnation.
"""

from collections import Counter
from itertools import starmap

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.membership.packets import ClientDigest, OrderDigest, SenderDigest

CLIENTS_MAX = 1024
_OF_ONE_CLIENT_MAX = CLIENTS_MAX // 4  # all priorities of one incarnation
_NAMES_MAX = 384  # the members of the largest view, and half as many that departed: they fit into a frame


class DeliveryTable:
    """The messages that were delivered, by sender and level, and by client.

    What is bounded forgets who was silent for longest: both tables are in the order of the last deliveries.
    A client has an entry for each of its priorities and incarnations. Beyond a quarter of the table it
    displaces its own entries: it must not make the group forget what others have requested.
    """

    def __init__(self) -> None:
        self._ordered: dict[str, tuple[ProcessId, dict[int, int], int]] = {}
        self._clients: dict[str, ClientDigest] = {}
        self._entries_of: Counter[str] = Counter()

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
            self._add_request(_client_of(batch), ClientDigest(batch.scope.request, position))

    def _add_request(self, client: str, request: ClientDigest) -> None:
        name = _name_of(client)
        if self._clients.pop(client, None) is None:
            self._entries_of[name] += 1
        self._clients[client] = request
        if self._entries_of[name] > _OF_ONE_CLIENT_MAX:
            self._forget(next(each for each in self._clients if _name_of(each) == name))
        elif len(self._clients) > CLIENTS_MAX:
            self._forget(next(iter(self._clients)))

    def _forget(self, client: str) -> None:
        del self._clients[client]
        name = _name_of(client)
        self._entries_of[name] -= 1
        if not self._entries_of[name]:
            del self._entries_of[name]

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
        other._entries_of = Counter(self._entries_of)
        return other

    def digest(self, position: int) -> OrderDigest:
        """The digest of the order before this position."""
        return OrderDigest(position, self._clients, tuple(starmap(SenderDigest, self._ordered.values())))

    def adopt(self, digest: OrderDigest) -> None:
        """Continue from the digest that the group has agreed on."""
        self._clients = dict(digest.clients)
        self._entries_of = Counter(map(_name_of, self._clients))
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


def _name_of(client: str) -> str:
    """The name of a client, without incarnation and priority."""
    return client.partition("#")[0]
