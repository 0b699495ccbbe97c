"""What happened to the messages that were sent with a quality of service.

The checkers of the qualities read it when the run is over. A process is *orderly* if every view from its
first one on contains it, until it left by its own wish if it did. It is *correct* if it did not leave either.
In a group that was divided and merged again no process is orderly: each side went on without the other, and
the qualities promise nothing across the sides.
"""

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from priocast.core.quality import Quality, QualityKind, parse_quality
from priocast.core.service_promises import order_name
from priocast.simulation.checkers.checker import Checker
from priocast.simulation.checkers.rows import DepartureEvent, ViewEvent, ViewKey, name_of, process_of
from priocast.trace.schema import DELIVERED, FINISHED, LATE, SENT, ServiceRow

ServiceKey = tuple[str, str, int]
"""A message: the incarnation that sent it, the stream, and its number."""

OrderLane = tuple[str, str, int]
"""Messages that are in FIFO order: which order, whose, and for tight ones of which priority."""


class SentService(NamedTuple):
    """A message as its sender sent it."""

    key: ServiceKey
    quality: Quality
    recipients: tuple[str, ...]
    priority: int
    units: int
    time_ns: int

    @property
    def sender(self) -> str:
        """The incarnation that sent it."""
        return self.key[0]

    @property
    def lane(self) -> OrderLane:
        """The messages that it is in FIFO order with."""
        priority = self.priority if self.quality.kind is QualityKind.TIGHT else 0
        return order_name(self.quality), self.sender, priority


def service_key(row: ServiceRow) -> ServiceKey:
    """The message that a row is about."""
    return f"{row.sender}#{row.sender_incarnation}", row.stream, row.number


def service_name(key: ServiceKey) -> str:
    """A message as `TransmissionId` writes it."""
    return "/".join(map(str, key))


class ServiceHistory(Checker):
    """Collects the rows of the table `services`, and which processes were correct."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.rows: list[ServiceRow] = []
        self._received: dict[str, list[int]] = defaultdict(list)
        self._views: dict[ViewKey, tuple[str, ...]] = {}
        self._left: dict[str, bool] = {}

    def on_service(self, row: ServiceRow) -> None:
        self.rows.append(row)

    def on_view(self, event: ViewEvent) -> None:
        self._received[event.process].append(event.view[0])
        self._views[event.view] = event.members

    def on_departure(self, event: DepartureEvent) -> None:
        self._left[event.process] = event.voluntary

    @cached_property
    def correct(self) -> tuple[str, ...]:
        """The processes that did not fail, leave or drop out."""
        return tuple(process for process in self.orderly if process not in self._left)

    @cached_property
    def orderly(self) -> tuple[str, ...]:
        """The processes that did not fail or drop out, those that left by their own wish included."""
        return tuple(
            process
            for process, numbers in sorted(self._received.items())
            if self._left.get(process, True)
            and all(
                process in members
                for (number, _), members in self._views.items()
                if number >= numbers[0] and (process not in self._left or number <= numbers[-1])
            )
        )

    @cached_property
    def sent(self) -> dict[ServiceKey, SentService]:
        """Every message that was sent, in the order of sending."""
        return {
            service_key(row): SentService(
                service_key(row),
                parse_quality(row.quality),
                row.recipients,
                row.priority,
                row.units,
                row.time_ns,
            )
            for row in self.rows
            if row.event == SENT
        }

    @cached_property
    def receipts(self) -> dict[ServiceKey, ServiceRow]:
        """The receipts of the messages whose transmission has ended."""
        return {service_key(row): row for row in self.rows if row.event == FINISHED}

    @cached_property
    def delivered(self) -> dict[str, list[ServiceRow]]:
        """What each process delivered, in its order, unit by unit."""
        found: dict[str, list[ServiceRow]] = defaultdict(list)
        for row in self.rows:
            if row.event == DELIVERED:
                found[process_of(row)].append(row)
        return found

    @cached_property
    def times(self) -> dict[ServiceKey, dict[str, int]]:
        """When each process delivered the first unit of each message."""
        found: dict[ServiceKey, dict[str, int]] = defaultdict(dict)
        for process, rows in self.delivered.items():
            for row in rows:
                if row.unit == 0:
                    found[service_key(row)].setdefault(process, row.time_ns)
        return found

    @cached_property
    def late(self) -> set[tuple[ServiceKey, str]]:
        """The messages and the processes that said that they delivered them too late."""
        return {
            (service_key(row), process)
            for process, rows in self.delivered.items()
            for row in rows
            if LATE in row.reasons
        }

    def accessible(self, message: SentService) -> list[str]:
        """The correct recipients that could accept a message."""
        receipt = self.receipts.get(message.key)
        rejected = receipt.rejected if receipt is not None else ()
        return [each for each in message.recipients if each in self.correct and name_of(each) not in rejected]
