"""Calls of `send`: those that wait for room, and those whose messages are transmitted.

A call ends with the receipt of its message, at its deadline, or when no receipt can come any more, because
this incarnation of the member is over. Calls that wait for room are served by priority, and equal ones in
turn.
"""

import asyncio
import time
from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from priocast.core.errors import DeadlineExceeded, GroupClosed, Overloaded, PriocastError
from priocast.core.events import ServiceDelivery
from priocast.core.quality import Quality
from priocast.member import Member
from priocast.membership.stream_items import Head
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.turn_schedule import TurnSchedule
from priocast.runtime.waits import logged_if_long
from priocast.services.outputs import SendReceipt
from priocast.services.packets import TransmissionId

_SECOND = 1_000_000_000


class ServiceMessage(NamedTuple):
    """What is sent: one or more units, with a quality, to the members with these names or to all."""

    units: Sequence[bytes]
    quality: Quality
    to: tuple[str, ...] | None
    priority: int


class ServiceCall:
    """One call of `send`: its message, its receipt when there is one, and whether the message was sent."""

    __slots__ = ("message", "number", "receipt", "sent")

    def __init__(self, message: ServiceMessage, number: int) -> None:
        self.message = message
        self.number = number
        self.receipt: asyncio.Future[SendReceipt] = asyncio.get_running_loop().create_future()
        self.sent: TransmissionId | None = None

    def fail(self, error: PriocastError) -> None:
        """There will be no receipt, because of this error; nobody has to ask for it."""
        if not self.receipt.done():
            self.receipt.set_exception(error)
            self.receipt.exception()


class CallsOwner(Protocol):
    """What the calls need from the driver of a member."""

    configuration: MemberConfiguration
    member: Member
    turns: int
    schedule: TurnSchedule

    def check_open(self) -> None: ...
    def report_taken(self, now: int) -> bool: ...
    def turn(self) -> None: ...


class ServiceCalls:
    """The calls of one driver."""

    def __init__(self, owner: CallsOwner) -> None:
        self._owner = owner
        self._count = 0
        self._waiting: list[ServiceCall] = []
        self._transmitted: dict[TransmissionId, ServiceCall] = {}

    @property
    def waiting(self) -> int:
        """How many calls wait for room."""
        return len(self._waiting)

    async def send(self, message: ServiceMessage, seconds: float | None) -> SendReceipt:
        """Send a message when there is room for it; return its receipt."""
        is_alone = not self._owner.schedule.is_scheduled
        call = self.start(message, seconds, waits=True)
        if is_alone and call.sent is not None:
            self._owner.turn()  # the caller waits for this message; others of this iteration go together
        if seconds is None:
            seconds = self._owner.configuration.deadlines.broadcast_seconds
        try:
            with logged_if_long(f"a message with {message.quality} has waited", lambda: self._why_open(call)):
                async with asyncio.timeout(seconds):
                    return await call.receipt
        except TimeoutError:
            raise DeadlineExceeded(f"timed out after {seconds:g} s: {self._why_open(call)}") from None
        finally:
            if call in self._waiting:
                self._waiting.remove(call)

    def start(self, message: ServiceMessage, seconds: float | None, *, waits: bool) -> ServiceCall:
        """Send a message, or let it wait for room if it `waits`; otherwise Overloaded is raised.

        Everything else that is wrong with it is raised at once, and nothing is sent. `seconds` is how long
        the caller waits for the receipt.
        """
        owner, now = self._owner, time.monotonic_ns()
        owner.check_open()
        owner.report_taken(now)
        member = owner.member
        deadline = None if seconds is None else now + int(seconds * _SECOND)
        self._count += 1
        call = ServiceCall(message, self._count)
        if not self._is_behind_another(call) and member.services.room(message.quality):
            self._send(member, call, now, deadline)
            return call
        member.check_send(message.units, message.quality, message.to, now, deadline)
        if not waits:
            raise Overloaded(f"no room for a message with {message.quality}: {self._why_full()}")
        insort(self._waiting, call, key=_turn_of)
        return call

    def on_turn(self, member: Member) -> None:
        """The member has had a turn: pass on its receipts, and send what there is room for now."""
        receipts, member.services.receipts = member.services.receipts, []
        for receipt in receipts:
            call = self._transmitted.pop(receipt.message, None)
            if call is not None and not call.receipt.done():
                call.receipt.set_result(receipt)
        for call in list(self._waiting):
            if not member.services.room(call.message.quality):
                break
            self._waiting.remove(call)
            try:
                self._send(member, call, time.monotonic_ns())
            except PriocastError as error:
                call.fail(error)

    def on_evicted(self, member: Member) -> None:
        """This incarnation is over, and the next one knows nothing of its messages."""
        self.fail(GroupClosed(f"{member.me} was evicted: what became of its message is not known"))

    def fail(self, error: PriocastError) -> None:
        """No receipt will come any more, because of this error."""
        calls = [*self._waiting, *self._transmitted.values()]
        self._waiting.clear()
        self._transmitted.clear()
        for call in calls:
            call.fail(error)

    def _send(self, member: Member, call: ServiceCall, now: int, deadline: int | None = None) -> None:
        message = call.message
        call.sent = member.send(message.units, message.quality, message.to, message.priority, now, deadline)
        self._transmitted[call.sent] = call
        self._owner.schedule.request_turn()

    def _is_behind_another(self, call: ServiceCall) -> bool:
        return bool(self._waiting) and _turn_of(self._waiting[0]) < _turn_of(call)

    def _why_full(self) -> str:
        member = self._owner.member
        return f"{member.services.in_flight} messages of {member.me.name} are being transmitted"

    def _why_open(self, call: ServiceCall) -> str:
        if call.sent is None:
            return f"it was not sent, because there is no room: {self._why_full()}"
        return "it was sent, and not all recipients that it needs have answered; they may still receive it"


def consecutive_deliveries(
    owner: CallsOwner,
) -> tuple[ServiceDelivery, deque[ServiceDelivery], Iterator[ServiceDelivery]]:
    """The head, which is a unit, and what follows it as long as the member has no other turn.

    What the total order has next stays the same until then, so it is asked for only once. If it has nothing,
    the units that are `ready` need not be compared with anything: the caller takes one after the other,
    which costs less than a step of a generator, and then the others.
    """
    member, turns, now = owner.member, owner.turns, time.monotonic_ns()
    of_order = member.head(now)
    owner.schedule.request_turn()
    first = member.take_service(now)
    ready = member.services.ready_alone if of_order is None else None
    return first, deque() if ready is None else ready, _others(owner, turns, of_order)


def _others(owner: CallsOwner, turns: int, of_order: Head | None) -> Iterator[ServiceDelivery]:
    """The units that the application takes until the next turn, each compared with all others."""
    member = owner.member
    if of_order is None:
        while owner.turns == turns and (unit := member.services.take(time.monotonic_ns())) is not None:
            yield unit
    while owner.turns == turns and member.service_head(of_order) is not None:
        yield member.take_service(time.monotonic_ns())


def _turn_of(call: ServiceCall) -> tuple[int, int]:
    return -call.message.priority, call.number
