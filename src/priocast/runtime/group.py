"""The group as the application sees it: broadcast into it, iterate over it.

async with priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...]) as group:
    await group.broadcast(b"one seat", priority=priocast.URGENT)
    async for event in group:
        ...
"""

import time
from collections.abc import AsyncIterator, Sequence

from priocast.core.errors import GroupClosed, InvalidInput, Overloaded, PayloadTooLarge
from priocast.core.events import DeliveredBatch, Delivery, Event
from priocast.core.identity import ProcessId, check_name
from priocast.core.message import PAYLOAD_BYTES_MAX, TO_ALL, Message, Scope, Stretch
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.membership.packets import Ordering
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
        self, payload: bytes, priority: int = ROUTINE, *, safe: bool = False, to: Sequence[str] = ()
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
        to: Sequence[str] = (),
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast a message; wait for room if there is none, at most so long.

        A `safe` message is delivered only when every member of the view holds it. `to` names the members that
        deliver it; all of them if it is empty.
        """
        if type(payload) is not bytes or len(payload) > PAYLOAD_BYTES_MAX:
            check_payload(payload)
        check_priority(priority)
        if safe or to:
            await self.broadcast_many([payload], priority, safe=safe, to=to, timeout_seconds=timeout_seconds)
        elif not self._driver.broadcast(payload, priority):
            await self._driver.broadcast_when_room([payload], priority, TO_ALL, timeout_seconds)

    async def broadcast_many(
        self,
        payloads: list[bytes],
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Sequence[str] = (),
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast messages of one priority, in this order; wait for room as needed, at most so long."""
        if set(map(type, payloads)) != {bytes} or max(map(len, payloads)) > PAYLOAD_BYTES_MAX:
            for payload in payloads:
                check_payload(payload)
        check_priority(priority)
        scope = scope_of(safe, to) if safe or to else TO_ALL
        if payloads and not self._driver.broadcast_many(payloads, priority, scope):
            await self._driver.broadcast_when_room(payloads, priority, scope, timeout_seconds)

    def change_order(
        self, order: str, *, prioritised: bool | None = None, starvation: Starvation | None = None
    ) -> None:
        """Let another protocol, or other priorities, order from the next view on; a ViewChange says when.

        What is not given stays as it is. Nothing is lost, delivered twice or reordered.
        """
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
            if not isinstance(head, Stretch):
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
            if not isinstance(head, Stretch):
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


def scope_of(safe: bool, to: Sequence[str]) -> Scope:
    """What a sender asks for, checked."""
    if isinstance(to, str):
        raise InvalidInput(f"to is a list of names of members, not the text {to!r}: write [{to!r}]")
    return Scope(safe, tuple(check_name(name, "member") for name in to)) if safe or to else TO_ALL


def check_payload(payload: bytes) -> None:
    """Raise if this cannot be the payload of a message."""
    if type(payload) is not bytes:
        raise InvalidInput(f"a payload is bytes, not {type(payload).__name__}: encode it first")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(
            f"a payload of {len(payload):,} bytes is over the limit of {PAYLOAD_BYTES_MAX:,}: split it"
        )
