"""The group as the application sees it: broadcast to it, iterate over it.

async with priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...]) as group:
    await group.broadcast(b"one seat", priority=priocast.URGENT)
    async for event in group:
        ...
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from priocast.core.errors import GroupClosed, Overloaded
from priocast.core.events import (
    DeliveredBatch,
    Event,
    Evicted,
    Restored,
    ServiceDelivery,
    ViewChange,
)
from priocast.core.identity import ProcessId
from priocast.core.message import PAYLOAD_BYTES_MAX, TO_ALL, OrderedBatch, Scope
from priocast.core.priority import HIGHEST, LOWEST, ROUTINE, check_priority
from priocast.core.quality import Quality
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.runtime.arguments import (
    check_kind,
    check_order_name,
    check_payload,
    check_seconds,
    payloads_of,
    recipients_of,
    scope_of,
    units_of,
)
from priocast.runtime.broadcast_handle import BroadcastHandle
from priocast.runtime.driver import Driver, DriverHead
from priocast.runtime.entering import Leave, left
from priocast.runtime.event_stream import EventStream
from priocast.runtime.parameters import OrderName
from priocast.runtime.service_calls import ServiceMessage
from priocast.runtime.status import Status, status_of
from priocast.runtime.waits import log
from priocast.services.outputs import SendReceipt

_WARNED_OF_MAX = 64


class Group:
    """A group that this process is a member of; `join` and `Node.join` yield one.

    Iterate over it (`async for`) for the ordered stream of events. Use one iteration at a time. When the
    group is closed, iterating and broadcasting raise `GroupClosed`.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._leave: Leave | None = None
        self._recipients_warned_of: dict[tuple[str, ...], None] = {}

    def left_by(self, leave: Leave) -> None:
        """The group was joined with `await`, without a block: `leave` is what leaves it."""
        self._leave = leave

    async def leave(self) -> None:
        """Leave the group, if it was joined with `await`; the end of `async with` leaves it by itself."""
        await left(self._leave, "group", "leave")

    @property
    def me(self) -> ProcessId:
        """This member: its name and its current incarnation."""
        return self._driver.member.me

    @property
    def view(self) -> View:
        """The current members of the group; the `ViewChange` follows in the stream, at its position.

        Raises `GroupClosed` while this member is not among them.
        """
        view = self._driver.member.view
        if view is None:
            raise GroupClosed(f"{self.me.name} is not in the group now and tries to rejoin")
        return view

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a position in the order."""
        return self._driver.member.backlog

    def status(self) -> Status:
        """The status of this member and its group."""
        return status_of(self._driver)

    def broadcast_nowait(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        traceparent: str | None = None,
    ) -> BroadcastHandle:
        """Broadcast a message without waiting, or raise `Overloaded` if there is no room for it.

        `payload`, `priority`, `safe`, `to` and `traceparent`, and what is returned, are those of `broadcast`.
        """
        check_payload(payload)
        check_priority(priority)
        if safe is False and to is None and traceparent is None:
            handle = self._driver.broadcast(payload, priority)
        else:
            scope = self._scope(safe, to, traceparent)
            handle = self._driver.broadcast_many([payload], priority, scope)
        if handle is None:
            raise Overloaded(f"no room for a message of priority {priority}: {self._driver.why_full()}")
        return handle

    async def broadcast(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        traceparent: str | None = None,
        timeout_seconds: float | None = None,
    ) -> BroadcastHandle:
        """Broadcast a message; wait while there is no room for it.

        The message is on its way then. What is returned can be awaited in turn, for the message's position:
        `position = await (await group.broadcast(b"..."))`, while another task consumes the stream.

        - `payload`: at most 1 MiB.
        - `priority`: 0 to 255, higher is more urgent.
        - `safe`: deliver it only once every member of the view has received it.
        - `to`: the names of the members that deliver it; None means all. A name need not be in the view now:
          the message gets a position anyway, and the members that have these names by then deliver it. If
          there are none, nobody delivers it: compare the names with `view` if that would be a mistake.
        - `traceparent`: the trace context of the caller (W3C, as OpenTelemetry injects it), which members get
          with the message as `message.traceparent`. Such a message shares a batch only with messages of the
          same context.
        - `timeout_seconds`: how long to wait for room; by default the `broadcast_seconds` of `join`. Then
          `DeadlineExceeded` is raised.
        """
        if type(payload) is not bytes or len(payload) > PAYLOAD_BYTES_MAX:
            check_payload(payload)
        if type(priority) is not int or not LOWEST <= priority <= HIGHEST:
            check_priority(priority)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        driver = self._driver
        if safe is False and to is None and traceparent is None:
            scope, handle = TO_ALL, driver.broadcast(payload, priority)
        else:
            scope = self._scope(safe, to, traceparent)
            handle = driver.broadcast_many([payload], priority, scope)
        if handle is None:
            return await driver.broadcast_when_room([payload], priority, scope, timeout_seconds)
        return handle

    async def broadcast_many(
        self,
        payloads: Iterable[bytes],
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        traceparent: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast the messages `payloads` of one priority, in this order; wait for room as needed.

        `priority`, `safe`, `to`, `traceparent` and `timeout_seconds` are those of `broadcast`. After a
        timeout, the error says how many messages, the last ones, were not broadcast.
        """
        checked, scope = payloads_of(payloads), self._scope(safe, to, traceparent)
        check_priority(priority)
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        if checked and not self._driver.broadcast_many(checked, priority, scope):
            await self._driver.broadcast_when_room(checked, priority, scope, timeout_seconds)

    async def send(
        self,
        payload: bytes | Iterable[bytes],
        *,
        quality: Quality,
        to: Iterable[str] | None = None,
        priority: int = ROUTINE,
        deadline: float | None = None,
    ) -> SendReceipt:
        """Send a message with a quality of service, beside the total order; return its receipt.

        The receipt says who answered, who rejected the message and why, and in how many rounds. Members
        deliver the message as a `ServiceDelivery`.

        - `payload`: at most 1 MiB; or several units, which are sent together and delivered one by one.
        - `quality`: for example `priocast.at_least(3)` or `priocast.ATOMIC`; see the page on qualities. One
          that the network cannot give is rejected, with the property that is missing.
        - `to`: the names of the recipients (a selective address), which must be members now; None means all
          members (the logical address of the group). This member may be one of them.
        - `priority`: 0 to 255, higher is more urgent.
        - `deadline`: how many seconds to wait for the receipt; by default the `broadcast_seconds` of `join`.
          Then `DeadlineExceeded` is raised, and the error says whether the message was sent.
        """
        return await self._driver.service_calls.send(
            self._message(payload, quality, to, priority, deadline), deadline
        )

    def send_nowait(
        self,
        payload: bytes | Iterable[bytes],
        *,
        quality: Quality,
        to: Iterable[str] | None = None,
        priority: int = ROUTINE,
    ) -> "asyncio.Future[SendReceipt]":
        """Send a message without waiting, or raise `Overloaded` if there is no room for it.

        `payload`, `quality`, `to` and `priority` are those of `send`. The future is that of the receipt; it
        need not be awaited.
        """
        message = self._message(payload, quality, to, priority, None)
        return self._driver.service_calls.start(message, None, waits=False).receipt

    def _message(
        self,
        payload: bytes | Iterable[bytes],
        quality: Quality,
        to: Iterable[str] | None,
        priority: int,
        deadline: float | None,
    ) -> ServiceMessage:
        """What is sent, checked as far as it does not depend on the group."""
        check_kind("quality", quality, Quality, "a quality of service such as priocast.at_least(3)")
        check_priority(priority)
        if deadline is not None:
            check_seconds("deadline", deadline)
        return ServiceMessage(units_of(payload), quality, recipients_of(to), priority)

    def _scope(self, safe: bool, to: Iterable[str] | None, traceparent: str | None) -> Scope:
        """The send options, checked; recipients none of which is in the view are logged, once."""
        scope, view = scope_of(safe, to, traceparent), self._driver.member.view
        if scope.to and view is not None and scope.to not in self._recipients_warned_of:
            names = [member.name for member in view.members]
            if not any(name in names for name in scope.to):
                warned_of = self._recipients_warned_of
                warned_of[scope.to] = None
                if len(warned_of) > _WARNED_OF_MAX:
                    del warned_of[next(iter(warned_of))]
                log.warning(
                    "a message to %s is delivered by nobody: the members are %s",
                    ", ".join(scope.to),
                    ", ".join(names),
                    extra={"group": self._driver.configuration.group, "member": str(self.me)},
                )
        return scope

    def change_order(
        self,
        order: OrderName | str,
        *,
        prioritised: bool | None = None,
        starvation: Starvation | None = None,
    ) -> None:
        """Change how the group orders messages, from the next view on; a `ViewChange` says when.

        No message is lost, delivered twice or reordered.

        - `order`: the protocol, as for `Node.join`.
        - `prioritised`: whether urgent messages go first; None keeps what is.
        - `starvation`: the starvation policy; None keeps what is.
        """
        check_order_name(order)
        check_kind("prioritised", prioritised, bool | None, "True, False or None")
        check_kind(
            "starvation", starvation, Starvation | None, "priocast.Strict(), Ageing(...) or another policy"
        )
        current = self._driver.member.membership.ordering
        self._driver.change_order(
            Ordering(
                order,
                current.prioritised if prioritised is None else prioritised,
                current.starvation if starvation is None else str(starvation),
            )
        )

    def __aiter__(self) -> AsyncIterator[Event]:
        """The ordered stream, one event at a time. A message counts as consumed when it is returned."""
        return EventStream(self._driver)

    async def batches(self) -> AsyncIterator[DeliveredBatch]:
        """The ordered messages, a batch at a time. A batch counts as consumed when it is yielded.

        Other events are consumed and not yielded, except for messages with a quality of service: those wait
        until the group is iterated over. This is faster than iterating over single messages.
        """
        driver = self._driver
        while True:
            head = driver.head(with_services=False)
            if head is None:
                await driver.consumable()
            elif isinstance(head, OrderedBatch):
                yield self._take_batch(head)
            else:
                self._take_event(head)

    async def events_by_batch(self) -> AsyncIterator[DeliveredBatch | ViewChange | Restored | Evicted]:
        """The ordered stream with its messages a batch at a time, without those of a quality of service."""
        driver = self._driver
        while True:
            head = driver.head(with_services=False)
            if head is None:
                await driver.consumable()
            else:
                yield self._take_batch(head) if isinstance(head, OrderedBatch) else self._take_event(head)

    def _take_event(self, head: DriverHead) -> ViewChange | Restored | Evicted:
        """The head, which is neither a message nor a batch."""
        assert not isinstance(head, OrderedBatch | ServiceDelivery), "those are not taken by batches"
        return self._driver.consume_event(head)

    def _take_batch(self, head: OrderedBatch) -> DeliveredBatch:
        """What is left of the batch at the head."""
        driver, batch, taken = self._driver, head.batch, head.taken
        payloads = head.payloads[taken:] if taken else head.payloads
        driver.taken += len(payloads)
        driver.schedule.request_report()
        return DeliveredBatch(
            batch.sender,
            batch.level,
            batch.first + taken,
            head.position + taken,
            payloads,
            batch.priorities[taken:],
            head.stamp and head.stamp.after(taken),
            batch.scope.traceparent,
        )
