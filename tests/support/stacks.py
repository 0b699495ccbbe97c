"""Stacks for tests, without any I/O: one view by itself, and whole members that a test drives.

`OneView` is what surrounds a protocol while a view lasts: assembler and links. `Neighbourhood` is a group of
whole members, and a network between them on which nothing happens unless a test says so.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.events import Delivery, Restored, ServiceDelivery, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Batch, OrderedBatch, Scope
from priocast.core.network_properties import NetworkProperties
from priocast.core.protocol import Broadcast, Consume, OrderingOptions, Packet
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.links.fifo_link import FifoLink
from priocast.links.frame import Frame, LinkOptions
from priocast.member import Member
from priocast.membership.departure import Departed
from priocast.membership.epoch import Epoch
from priocast.membership.observer import Observer
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Ordering
from priocast.membership.stream_items import StateRestore
from priocast.membership.unordered import UnorderedMessages
from priocast.protocols import find_protocol
from priocast.services.options import ServiceOptions
from priocast.services.outputs import SendReceipt
from priocast.services.packets import ServiceData

MILLISECOND = 1_000_000
WIDE = LinkOptions(window_bytes_first=LinkOptions().window_bytes)
CHECKED = ServiceOptions(network=NetworkProperties(error_detection=True))
_OF_ORDERING = frozenset(OrderingOptions.__struct_fields__)


def _no_queue(batch: Batch, now: int) -> None:
    """Observes nothing."""


class Unobserved:
    """An observer that ignores everything; tests override what they want to see."""

    def observes(self, packet: type[Packet]) -> bool:
        return True

    def installed(self, view: View) -> None: ...
    def view(self, view: View, ordering: Ordering, position: int, reason: ViewReason, now: int) -> None: ...
    def stopped(self, departed: Departed, now: int) -> None: ...
    def restored(self, view: View, position: int, size: int, now: int) -> None: ...
    def broadcast(self, batch: Batch, now: int, backlog: int) -> None: ...
    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None: ...
    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None: ...
    def delivered(self, ordered_batch: OrderedBatch, count: int, now: int, backlog: int) -> None: ...
    def service_sent(self, data: ServiceData, now: int) -> None: ...
    def service_delivered(self, unit: ServiceDelivery, now: int) -> None: ...
    def service_finished(self, receipt: SendReceipt, now: int) -> None: ...


class OneView:
    """One member's stack for as long as one view lasts, as `Member` assembles it.

    The numbers of messages continue from view to view: give the next view the `assembler` of the one before.
    """

    def __init__(
        self,
        me: ProcessId,
        view: View,
        order: str,
        options: OrderingOptions,
        link_options: LinkOptions | None = None,
        position: int = 0,
        assembler: Assembler | None = None,
        observer: Observer | None = None,
        queued: Callable[[Batch, int], None] = _no_queue,
    ) -> None:
        self.me = me
        self._queued = queued
        self.protocol = find_protocol(order)(me, view, options, position)
        self.epoch = Epoch(view, self.protocol, link_options or LinkOptions(), observer)
        self.assembler = assembler or Assembler(me, options.prioritised)
        self.assembler.prioritised = options.prioritised

    @property
    def links(self) -> dict[ProcessId, FifoLink]:
        return self.epoch.links

    @property
    def backlog(self) -> int:
        return self.assembler.count + self.protocol.backlog

    @property
    def idle(self) -> bool:
        return not self.assembler.count and self.epoch.idle

    def room(self, priority: int) -> int:
        return self.protocol.outgoing.room(priority, self.assembler.count, self.assembler.bytes)

    def broadcast(self, payload: bytes, priority: int) -> None:
        self.assembler.add(payload, priority)

    def broadcast_many(self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL) -> None:
        self.assembler.add_many(payloads, priority, scope)

    def resubmit(self, batches: list[Batch], now: int) -> None:
        """Give batches to the protocol, such as those that an earlier view left without a position."""
        for batch in batches:
            self._queued(batch, now)
            self.epoch.step(Broadcast(batch), now)

    def unordered(self) -> list[Batch]:
        """Messages that this view leaves without a position, and those that were not even in a batch."""
        return self.epoch.unordered() + self.assembler.close()

    def head(self) -> OrderedBatch | None:
        return self.protocol.head()

    def consume(self, count: int, now: int) -> None:
        self.epoch.step(Consume(count), now)

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        self.epoch.receive(peer, frame, now)

    @property
    def restless(self) -> bool:
        return self.epoch.restless or len(self.epoch.to_myself) > 0 or self.assembler.count > 0

    def act(self, now: int) -> None:
        self.resubmit(self.assembler.close(), now)
        if not self.epoch.frozen:
            self.epoch.act(now, may_order=True)

    def turn(self, now: int) -> None:
        self.act(now)
        while self.restless:
            self.act(now)

    def tick(self, now: int) -> None:
        self.epoch.tick(now)

    @property
    def deadline(self) -> int | None:
        return self.epoch.deadline


class Application:
    """What one incarnation delivered; its state is the list of all payloads."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.events: list[ViewChange | Restored] = []
        self.pages: list[bytes] = []
        self.units: list[ServiceDelivery] = []
        self.receipts: list[SendReceipt] = []
        self.takes_messages = True

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.message.payload for delivery in self.deliveries]

    @property
    def reasons(self) -> list[str]:
        return [str(event.reason) for event in self.events if isinstance(event, ViewChange)]

    def take(self, member: Member, now: int) -> None:
        """Consume everything that is deliverable."""
        if member.snapshot_wanted:
            member.offer_snapshot(b"\n".join(self.pages))
        self.receipts += member.services.receipts
        member.services.receipts.clear()
        while (head := member.service_head(order := member.head(now)) or order) is not None:
            if isinstance(head, ServiceDelivery):
                self.units.append(member.take_service(now))
            elif not isinstance(head, OrderedBatch):
                if isinstance(head, StateRestore):
                    self.pages = head.snapshot.data.split(b"\n") if head.snapshot.data else []
                self.events.append(member.consume_event(now))
            elif not self.takes_messages:
                return
            else:
                delivery = Delivery(head.message(head.taken), head.position + head.taken)
                self.deliveries.append(delivery)
                self.pages.append(delivery.message.payload)
                member.consume(1, now)


class Neighbourhood:
    """Whole members that can reach each other, and the time. A frame takes a millisecond.

    Frames are lost between the pairs in `lost`, from the first to the second. Clients and other processes can
    send as well: frames to a name that no member has are in `letters`.
    """

    def __init__(self, names: str, founders: int | None = None, **options: Any) -> None:
        ordering = {name: options.pop(name) for name in list(options) if name in _OF_ORDERING}
        self.order: str = options.pop("order", "sequencer-ub")
        self.ordering = OrderingOptions(**ordering)
        self.links = options.pop("link_options", WIDE)
        self.services: ServiceOptions = options.pop("services", CHECKED)
        membership = {"heartbeat_ms": 20.0, "failure_ms": 100.0, "slow_ms": 2_000.0, **options}
        self.membership = MembershipOptions(founders=founders or len(names), **membership)
        self.now = 0
        self.members: dict[str, Member] = {}
        self.applications: dict[str, Application] = {}
        self.lost: set[tuple[str, str]] = set()
        self.letters: list[tuple[str, ProcessId, Frame]] = []
        self._in_flight: deque[tuple[int, ProcessId, str, list[Frame]]] = deque()
        for name in names:
            self.start(name)

    def start(
        self,
        name: str,
        incarnation: int = 1,
        unordered_messages: UnorderedMessages | None = None,
        observer: Observer | None = None,
        on_probation: bool = False,
        **changes: Any,
    ) -> Member:
        """Start an incarnation; `changes` are options that differ from those of the neighbourhood."""
        ordering = {key: changes.pop(key) for key in list(changes) if key in _OF_ORDERING}
        member = Member(
            ProcessId(name, incarnation),
            self.order,
            msgspec.structs.replace(self.ordering, **ordering),
            msgspec.structs.replace(self.membership, **changes),
            self.links,
            observer,
            self.now,
            unordered_messages,
            on_probation=on_probation,
            service_options=self.services,
        )
        for other, there in self.members.items():
            if other != name:
                there.reachable(name, self.now)
                member.reachable(other, self.now)
        self.members[name] = member
        self.applications[name] = Application()
        return member

    def kill(self, name: str) -> None:
        """Crash a process: what is sent to it is lost."""
        del self.members[name]

    def cut(self, one: str, other: str) -> None:
        """Lose every frame between these processes (a letter each), in both directions."""
        self.lost |= {way for a in one for b in other for way in ((a, b), (b, a))}

    def run(self, milliseconds: int) -> None:
        """Let this much time pass."""
        for _ in range(milliseconds):
            self.now += MILLISECOND
            self._deliver()
            for name, member in list(self.members.items()):
                self._drive(name, member)

    def run_until(self, condition: Callable[[], object], milliseconds_max: int = 5_000) -> None:
        """Let time pass until a condition holds."""
        for _ in range(milliseconds_max):
            if condition():
                return
            self.run(1)
        delivered = {name: application.payloads for name, application in self.applications.items()}
        raise AssertionError(f"not within {milliseconds_max} ms: {self.views()}, {delivered}")

    def receive(self, sender: ProcessId, to: str, *frames: Frame) -> None:
        """Frames from any process reach a member now."""
        self.members[to].receive(sender, list(frames), self.now)

    def broadcast(self, name: str, *payloads: str, priority: int = 7, scope: Scope = TO_ALL) -> None:
        """Let a member's application broadcast these."""
        self.members[name].broadcast_many([each.encode() for each in payloads], priority, scope)

    def payloads(self, name: str) -> list[str]:
        """What the current incarnation of a member has delivered."""
        return [payload.decode() for payload in self.applications[name].payloads]

    def wait_payloads(self, names: str, *payloads: str) -> None:
        """Wait until each of these members has delivered this, and nothing else."""
        self.run_until(lambda: all(self.payloads(name) == list(payloads) for name in names))

    def views(self) -> dict[str, str]:
        """The members of each one's view, a letter each."""
        return {
            name: "".join(member.name for member in each.view.members) if each.view else ""
            for name, each in self.members.items()
        }

    def wait_view(self, names: str, of: str | None = None) -> None:
        """Wait until all of these (or `of` these) are in a view of exactly these members."""
        self.run_until(lambda: all(self.views()[name] == names for name in of or names))

    def _deliver(self) -> None:
        while self._in_flight and self._in_flight[0][0] <= self.now:
            _, sender, to, frames = self._in_flight.popleft()
            if to not in self.members:
                self.letters += [(to, sender, frame) for frame in frames]
            elif (sender.name, to) not in self.lost and self.members[to].departed is None:
                self.members[to].receive(sender, frames, self.now)
                if self.members[to].faults:
                    raise self.members[to].faults[0].error

    def _drive(self, name: str, member: Member) -> None:
        if member.departed is None and member.deadline <= self.now:
            member.tick(self.now)
        member.turn(self.now)
        self.applications[name].take(member, self.now)
        member.turn(self.now)
        for to, frames in member.frames(self.now):
            if (name, to) not in self.lost:
                self._in_flight.append((self.now + MILLISECOND, member.me, to, frames))


def founded(names: str, **options: Any) -> Neighbourhood:
    """A neighbourhood whose members are in their first view."""
    neighbourhood = Neighbourhood(names, **options)
    neighbourhood.wait_view(names)
    neighbourhood.run(5)
    return neighbourhood


def epoch_of(member: Member) -> Epoch:
    """A member's part in its view."""
    assert member.epoch is not None
    return member.epoch
