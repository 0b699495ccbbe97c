"""The group as the application sees it: broadcast into it, iterate over it.

async with priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...]) as group:
    await group.broadcast(b"one seat", priority=priocast.URGENT)
    async for event in group:
        ...
"""

import time
from collections.abc import AsyncIterator, Iterable

from priocast.core.errors import GroupClosed, Overloaded
from priocast.core.events import DeliveredBatch, Delivery, Event
from priocast.core.identity import ProcessId
from priocast.core.message import PAYLOAD_BYTES_MAX, TO_ALL, Message, OrderedBatch
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.runtime.arguments import (
    check_kind,
    check_order_name,
    check_payload,
    check_seconds,
    payloads_of,
    scope_of,
)
from priocast.runtime.driver import Driver
from priocast.runtime.status import Status, status_of


class Group:
    """A group that this process is a member of. Use one iteration at a time."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def me(self) -> ProcessId:
        """This member, in its present life."""
        return self._driver.member.me

    @property
    def view(self) -> View:
        """The members of the group now; the stream comes to a change of them later, at its place.

        Raises GroupClosed while this member is not among them.
        """
        view = self._driver.member.view
        if view is None:
            raise GroupClosed(f"{self.me.name} is not in the group now and tries to come back")
        return view

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a place in the order."""
        return self._driver.member.backlog

    def status(self) -> Status:
        """How this member and its group are doing."""
        return status_of(self._driver)

    def broadcast_nowait(
        self, payload: bytes, priority: int = ROUTINE, *, safe: bool = False, to: Iterable[str] | None = None
    ) -> None:
        """Broadcast a message now, or raise `Overloaded` if there is no room for one of this priority."""
        check_payload(payload)
        check_priority(priority)
        if not self._driver.broadcast_many([payload], priority, scope_of(safe, to)):
            raise Overloaded(f"no room for a message of priority {priority}: {self._driver.why_full()}")

    async def broadcast(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast a message; wait for room if there is none, at most so long.

        A `safe` message is delivered only when every member of the view holds it. `to` names the members that
        deliver it; None: all of them. Members come and go, so a name need not be in the view now: the message
        has its place all the same, and whoever has that name when it comes to that place delivers it. If
        nobody has, nobody does; compare the names with `view` if that would be a mistake.
        """
        if type(payload) is not bytes or len(payload) > PAYLOAD_BYTES_MAX:
            check_payload(payload)
        check_priority(priority)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        if safe is not False or to is not None:
            await self.broadcast_many([payload], priority, safe=safe, to=to, timeout_seconds=timeout_seconds)
        elif not self._driver.broadcast(payload, priority):
            await self._driver.broadcast_when_room([payload], priority, TO_ALL, timeout_seconds)

    async def broadcast_many(
        self,
        payloads: Iterable[bytes],
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast messages of one priority, in this order; wait for room as needed, at most so long."""
        checked, scope = payloads_of(payloads), scope_of(safe, to)
        check_priority(priority)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        if checked and not self._driver.broadcast_many(checked, priority, scope):
            await self._driver.broadcast_when_room(checked, priority, scope, timeout_seconds)

    def change_order(
        self, order: str, *, prioritised: bool | None = None, starvation: Starvation | None = None
    ) -> None:
        """Let another protocol, or other priorities, order from the next view on; a ViewChange says when.

        What is not given stays as it is. Nothing is lost, delivered twice or reordered.
        """
        check_order_name(order)
        check_kind("prioritised", prioritised, bool | None, "True, False or None")
        check_kind(
            "starvation", starvation, Starvation | None, "priocast.Strict(), Ageing(...) or another policy"
        )
        now_used = self._driver.member.membership.ordering
        self._driver.member.change_order(
            Ordering(
                order,
                now_used.prioritised if prioritised is None else prioritised,
                now_used.starvation if starvation is None else str(starvation),
            ),
            time.monotonic_ns(),
        )
        self._driver.be_due()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The ordered stream, one event at a time. A message counts as consumed when it is handed out."""
        driver = self._driver
        while True:
            head = driver.head() or await driver.wait_head()
            if not isinstance(head, OrderedBatch):
                yield driver.take_event(head)
                continue
            batch, payloads, position = head.batch, head.payloads, head.position
            sender, level, first, scope = batch.sender, batch.level, batch.first, batch.scope
            priorities, settlements, last = batch.priorities, driver.settlements, batch.count - 1
            if head.taken < last:
                driver.be_due()
            for index in range(head.taken, batch.count):
                driver.taken += 1
                if index == last:
                    driver.settle()
                priority = priorities[index] if priorities else level
                message = Message(sender, level, first + index, priority, payloads[index], scope)
                yield Delivery(message, position + index)
                if driver.settlements != settlements:
                    break

    async def batches(self) -> AsyncIterator[DeliveredBatch]:
        """The ordered messages, a batch at a time. A batch counts as consumed when it is handed out."""
        driver = self._driver
        while True:
            head = driver.head() or await driver.wait_head()
            if not isinstance(head, OrderedBatch):
                driver.take_event(head)
                continue
            batch, taken = head.batch, head.taken
            payloads = head.payloads[taken:] if taken else head.payloads
            driver.taken += len(payloads)
            driver.settle()
            yield DeliveredBatch(
                batch.sender,
                batch.level,
                batch.first + taken,
                head.position + taken,
                payloads,
                batch.priorities[taken:],
            )
