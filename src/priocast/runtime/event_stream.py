"""The ordered stream of a group as its application iterates over it: one event at a time.

What a message costs here, it costs every member. So this is a class with compiled steps, where an
asynchronous generator would be shorter: its steps cost twice as much.
"""

from collections import deque
from collections.abc import Iterator

from priocast.core.events import Delivery, Event, ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Message, OrderedBatch, Scope
from priocast.core.stamp import Stamp
from priocast.runtime.driver import Driver
from priocast.runtime.service_calls import consecutive_deliveries


class EventStream:
    """Iterates over the events of a driver's group. A message counts as consumed when it is returned.

    The messages of the last head are returned one by one, from `_index` on, until something else happened to
    the member: then the head may be another one. So are the messages with a quality of service that were
    next, until the member has a turn.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._sender = ProcessId("", 0)
        self._level = self._first = self._position = 0
        self._payloads: list[bytes] = []
        self._priorities = b""
        self._scope: Scope = TO_ALL
        self._stamp: Stamp | None = None
        self._index = self._count = 0
        self._reports = 0
        self._ready: deque[ServiceDelivery] = deque()
        self._others: Iterator[ServiceDelivery] = iter(())
        self._has_units = False
        self._turns = 0

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> Event:
        driver = self._driver
        while True:
            if self._index < self._count and driver.reports == self._reports:
                driver.taken += 1
                return self._message()
            if self._has_units and (unit := self._unit()) is not None:
                return unit
            head = driver.head()
            if head is None:
                await driver.consumable()
            elif isinstance(head, OrderedBatch):
                self._open(head)
            elif isinstance(head, ServiceDelivery):
                event, self._ready, self._others = consecutive_deliveries(driver)
                self._has_units, self._turns = True, driver.turns
                return event
            else:
                return driver.consume_event(head)

    def _open(self, head: OrderedBatch) -> None:
        """Messages of this head are next."""
        driver, batch = self._driver, head.batch
        driver.schedule.request_report()
        self._sender, self._scope = batch.sender, batch.scope
        self._level, self._first = batch.level, batch.first
        self._payloads, self._priorities = head.payloads, batch.priorities
        self._position, self._stamp = head.position, head.stamp
        self._index, self._count = head.taken, batch.count
        self._reports = driver.reports

    def _message(self) -> Delivery:
        """The next message of the head."""
        index = self._index
        self._index = index + 1
        message = Message(
            self._sender,
            self._level,
            self._first + index,
            self._priorities[index] if self._priorities else self._level,
            self._payloads[index],
            self._scope,
        )
        position = self._position + index
        if self._stamp is None:
            return Delivery(message, position)
        return Delivery(message, position, self._stamp.after(index))

    def _unit(self) -> ServiceDelivery | None:
        """The next message with a quality of service, as long as nothing can have come before it."""
        if self._ready and self._driver.turns == self._turns:
            return self._ready.popleft()
        unit = next(self._others, None)
        self._has_units = unit is not None
        return unit
