"""Clients that have a member send with a quality of service on their behalf.

A client sends a request to one member, again and again until it has the receipt. The member sends the message
once, and answers repetitions with what it knows. Another member would send it once more, so a client does not
turn to another one.

The messages of one client may take an eighth of the room that a member has for messages in flight, those of
all clients a half: the rest is the application's own.
"""

from priocast.core.errors import GroupClosed, InvalidInput, NoQuorum, Overloaded, Rejected
from priocast.core.identity import ProcessId
from priocast.membership.clients import Clients
from priocast.membership.group_services import GroupServices
from priocast.membership.packets import TEXT_LENGTH_MAX, ClientReceipt, ClientSend
from priocast.services.outputs import SendReceipt
from priocast.services.packets import REASON_LENGTH_MAX, TransmissionId
from priocast.services.service_host import ServiceHost

_ANSWERS_KEPT = 1024
_SHARE_OF_ONE = 8
_SHARE_OF_ALL = 2

_RequestId = tuple[ProcessId, int]


class ServiceClients:
    """The requests of clients that came to one member; the receipts are replies of its `clients`."""

    def __init__(self, services: GroupServices, host: ServiceHost, clients: Clients) -> None:
        self._services = services
        self._host = host
        self._clients = clients
        self._pending: dict[TransmissionId, _RequestId] = {}
        self._answers: dict[_RequestId, ClientReceipt] = {}

    def on_send(self, client: ProcessId, request: ClientSend, now: int) -> None:
        """A client wants a message sent; if there is no room now, it will ask again."""
        key = client, request.number
        if key in self._answers:
            self._clients.replies.append((client.name, self._answers[key]))
        elif key not in self._pending.values():
            self._check_quota(client)
            self._send(key, request, now)

    def on_receipts(self) -> None:
        """Transmissions have ended: answer the clients whose messages they were."""
        others = []
        for receipt in self._host.receipts:
            key = self._pending.pop(receipt.message, None)
            if key is None:
                others.append(receipt)
            else:
                self._answer(key, _receipt_of(key[1], receipt))
        self._host.receipts = others

    def _send(self, key: _RequestId, request: ClientSend, now: int) -> None:
        to = request.to or None
        try:
            message = self._services.send([request.payload], request.quality, to, request.priority, now)
        except Overloaded:
            return
        except (InvalidInput, NoQuorum, GroupClosed) as error:
            self._answer(key, ClientReceipt(request.number, str(error)[:TEXT_LENGTH_MAX]))
        else:
            self._pending[message] = key

    def _check_quota(self, client: ProcessId) -> None:
        room = self._host.options.in_flight_max
        of_client = sum(process == client for process, _ in self._pending.values())
        if of_client >= max(1, room // _SHARE_OF_ONE) or len(self._pending) >= max(1, room // _SHARE_OF_ALL):
            raise Rejected("client quota")

    def _answer(self, key: _RequestId, receipt: ClientReceipt) -> None:
        self._clients.replies.append((key[0].name, receipt))
        self._answers[key] = receipt
        if len(self._answers) > _ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]


def _receipt_of(number: int, receipt: SendReceipt) -> ClientReceipt:
    return ClientReceipt(
        number,
        "",
        receipt.message,
        receipt.accepted,
        receipt.answered,
        {name: reason[:REASON_LENGTH_MAX] for name, reason in receipt.rejected.items()},
        receipt.missing,
        receipt.rounds,
    )
