"""An observer of a member that writes down what it sees, as lines of text."""

from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import Packet
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.departure import Departed
from priocast.membership.packets import Ordering
from priocast.services.outputs import SendReceipt
from priocast.services.packets import ServiceData
from priocast.services.units import message_of


class Notebook:
    """An observer that writes everything down, except packets of the types that it ignores."""

    def __init__(self, *ignored: str) -> None:
        self.lines: list[str] = []
        self._ignored = ignored

    def observes(self, packet: type[Packet]) -> bool:
        return packet.name() not in self._ignored

    def installed(self, view: View) -> None:
        self.lines.append(f"installed view {view.number}")

    def view(self, view: View, ordering: Ordering, position: int, reason: ViewReason, now: int) -> None:
        self.lines.append(f"view {view.number} by {ordering.order} from {position}: {reason}")

    def stopped(self, departed: Departed, now: int) -> None:
        self.lines.append(f"stopped: {departed}")

    def restored(self, view: View, position: int, size: int, now: int) -> None:
        self.lines.append(f"restored {size} bytes at {position} in view {view.number}")

    def broadcast(self, batch: Batch, now: int, backlog: int) -> None:
        self.lines.append(f"broadcast {batch} backlog {backlog}")

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        self.lines.append(f"sent {packet.name()} to {to or 'all'} backlog {backlog}")

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        self.lines.append(f"received {packet.name()} from {peer} backlog {backlog}")

    def delivered(self, ordered_batch: OrderedBatch, count: int, now: int, backlog: int) -> None:
        self.lines.append(
            f"delivered {count} of {ordered_batch.batch} at {ordered_batch.position} backlog {backlog}"
        )

    def service_sent(self, data: ServiceData, now: int) -> None:
        self.lines.append(f"sent {data.id} with {data.quality} to {', '.join(map(str, data.recipients))}")

    def service_delivered(self, unit: ServiceDelivery, now: int) -> None:
        self.lines.append(f"delivered unit {unit.index} of {message_of(unit)} with {unit.quality}")

    def service_finished(self, receipt: SendReceipt, now: int) -> None:
        self.lines.append(f"finished {receipt.message}: {'accepted' if receipt.accepted else 'rejected'}")

    def cut(self) -> list[str]:
        """The lines since the last call."""
        lines, self.lines = self.lines, []
        return lines
