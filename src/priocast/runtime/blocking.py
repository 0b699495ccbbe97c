"""The group for programs without asyncio: the same calls, as blocking functions.

    with priocast.join_blocking("tickets", member="a", listen=..., peers=[...]) as group:
        group.broadcast(b"one seat", priority=priocast.URGENT)
        for event in group:
            ...

The event loop runs in its own thread. Switching threads costs about 120 us per call: for speed, use batches
or asyncio.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar, Unpack

from priocast.core.events import DeliveredBatch, Event
from priocast.core.identity import ProcessId
from priocast.core.priority import ROUTINE
from priocast.core.quality import Quality
from priocast.core.starvation import Starvation
from priocast.core.view import View
from priocast.runtime.arguments import payloads_of, units_of
from priocast.runtime.event_loop import new_event_loop
from priocast.runtime.group import Group
from priocast.runtime.node import WithNode, join
from priocast.runtime.parameters import JoinParameters, OrderName, check_keywords
from priocast.runtime.status import Status
from priocast.services.outputs import SendReceipt

T = TypeVar("T")


class BlockingGroup:
    """A group with blocking calls; `join_blocking` yields one.

    Iterate over it for the ordered stream of events. Use one iteration at a time.
    """

    def __init__(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        self._group = group
        self._loop = loop

    @property
    def view(self) -> View:
        """The current members of the group; the `ViewChange` follows in the stream, at its position."""
        return self._group.view

    @property
    def me(self) -> ProcessId:
        """This member: its name and its current incarnation."""
        return self._group.me

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a position in the order."""
        return self._group.backlog

    def status(self) -> Status:
        """The status of this member and its group."""
        return self._call(self._group.status)

    def broadcast(
        self,
        payload: bytes,
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        traceparent: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast a message; block while there is no room for it.

        `payload`, `priority`, `safe`, `to`, `traceparent` and `timeout_seconds` are those of
        `Group.broadcast`.
        """
        self._run(
            self._group.broadcast(
                payload,
                priority,
                safe=safe,
                to=to,
                traceparent=traceparent,
                timeout_seconds=timeout_seconds,
            )
        )

    def broadcast_many(
        self,
        payloads: Iterable[bytes],
        priority: int = ROUTINE,
        *,
        safe: bool = False,
        to: Iterable[str] | None = None,
        traceparent: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Broadcast the messages `payloads` of one priority, in this order; block for room as needed.

        `priority`, `safe`, `to`, `traceparent` and `timeout_seconds` are those of `Group.broadcast`.
        """
        checked = payloads_of(payloads)  # in the caller's thread: a generator may be slow
        self._run(
            self._group.broadcast_many(
                checked,
                priority,
                safe=safe,
                to=to,
                traceparent=traceparent,
                timeout_seconds=timeout_seconds,
            )
        )

    def send(
        self,
        payload: bytes | Iterable[bytes],
        *,
        quality: Quality,
        to: Iterable[str] | None = None,
        priority: int = ROUTINE,
        deadline: float | None = None,
    ) -> SendReceipt:
        """Send a message with a quality of service, beside the total order; return its receipt.

        `payload`, `quality`, `to`, `priority` and `deadline` are those of `Group.send`.
        """
        units = units_of(payload)  # in the caller's thread: a generator may be slow
        return self._run(
            self._group.send(units, quality=quality, to=to, priority=priority, deadline=deadline)
        )

    def change_order(
        self, order: OrderName | str, *, prioritised: bool | None = None, starvation: Starvation | None = None
    ) -> None:
        """Change how the group orders messages, from the next view on; a `ViewChange` says when.

        `order`, `prioritised` and `starvation` are those of `Group.change_order`.
        """
        self._call(partial(self._group.change_order, order, prioritised=prioritised, starvation=starvation))

    def __iter__(self) -> Iterator[Event]:
        return self._iterate(aiter(self._group))

    def batches(self) -> Iterator[DeliveredBatch]:
        """The ordered messages, a batch at a time, as in `Group.batches`."""
        return self._iterate(self._group.batches())

    def _iterate(self, events: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> T:
            return await anext(events)

        while True:
            yield self._run(following())

    def _call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread of the event loop."""

        async def work() -> T:
            return function()

        return self._run(work())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def join_blocking(
    group: str, *, member: str, **parameters: Unpack[JoinParameters]
) -> AbstractContextManager[BlockingGroup]:
    """Join a group, as a context manager that yields the `BlockingGroup`.

    - `group`: the name of the group.
    - `member`: the name of this process, unique in the group.
    - `parameters`: those of `open_node` (which network) and of `Node.join` (which kind of group).
    """
    check_keywords(join_blocking, parameters, JoinParameters)
    return _entered(join(group, member=member, **parameters), group)


@contextmanager
def _entered(joining: WithNode[Group], group: str) -> Iterator[BlockingGroup]:
    loop = new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=f"priocast {group}", daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        joined = run(joining.__aenter__())
        try:
            yield BlockingGroup(joined, loop)
        finally:
            run(joining.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
