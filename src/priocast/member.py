"""One process's whole stack in one group, without any I/O: application in, frames out.

    broadcast ─▶ assembler ─▶ protocol ─▶ links ─▶ frames for the network
      consume ◀─ stream ◀──── protocol ◀─ links ◀─ frames from the network
                                 │
                             membership: which protocol and links, in which view

A driver (the asyncio runtime, the simulator) hands over what happens and the time at which it happens, gives
a `turn` when it has handed over all that was ready, transmits the frames that gather, and calls `tick` at
the `deadline`. The observer, which belongs to the driver, sees what goes in and out.

A member is one life of a process in the group: once it is `out`, it is over. What it leaves (`remains`) its
next life may take over.
"""

from collections.abc import Iterator

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.errors import PeerFault
from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Batch, Scope
from priocast.core.protocol import Broadcast, OrderingOptions, Packet
from priocast.core.starvation import parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import Eviction, ViewReason
from priocast.links.fifo_link import FifoLink, Frame, LinkOptions
from priocast.membership.clients import Clients, scope_of
from priocast.membership.datagrams import CHANNEL, frames_of, read
from priocast.membership.departure import Departed
from priocast.membership.epoch import Epoch
from priocast.membership.ledger import Ledger
from priocast.membership.life import Life
from priocast.membership.membership import Membership
from priocast.membership.observer import Observer
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import (
    Control,
    FetchState,
    Ordering,
    Proposal,
    Reply,
    Request,
    Standing,
    StateChunk,
)
from priocast.membership.reports import Reports
from priocast.membership.slowness import Slowness
from priocast.membership.state_transfer import StateTransfer
from priocast.membership.stream import Head, Stream
from priocast.membership.unordered import UnorderedMessages, resubmit
from priocast.protocols import check_order, find_protocol


class Member:
    """A member of a group, from its wish to join until it is out (`out` says why, `left` if it wanted to)."""

    def __init__(
        self,
        me: ProcessId,
        order: str,
        options: OrderingOptions,
        membership: MembershipOptions,
        link_options: LinkOptions,
        observer: Observer | None = None,
        now: int = 0,
        unordered_messages: UnorderedMessages | None = None,
    ) -> None:
        check_order(order, membership.primary)
        self.me = me
        self.departed: str | None = None
        self.left = False
        self.rejections: dict[str, int] = {}
        self._options = options
        self._link_options = link_options
        self._observer = observer
        self._unordered_messages = unordered_messages
        self._assembler = Assembler(me, options.prioritised)
        self._ledger = Ledger()
        self.clients = Clients(self._ledger)
        self.stream = Stream(me, membership, self._ledger, self.clients.placed)
        self.slowness = Slowness(membership.slow_ns, now)
        self._reports = Reports(membership)
        self.membership = Membership(
            me,
            membership,
            membership.agreed_on(order, options),
            Ordering(order, options.prioritised, str(options.starvation)),
            Life(self._begin, self._depart, self.stream.standing),
            now,
        )
        if unordered_messages is not None and membership.primary:
            self.membership.wishes.may_found = False
        self.state = StateTransfer(membership, self.membership.tell, self.stream.restore)

    # The application's side

    @property
    def view(self) -> View | None:
        """The view that this member is in."""
        return self.membership.view

    @property
    def epoch(self) -> Epoch | None:
        """This member's part in its view."""
        return self.membership.epoch

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a place in the order."""
        epoch = self.membership.epoch
        return self._assembler.count + (epoch.protocol.backlog if epoch else 0)

    @property
    def idle(self) -> bool:
        """Whether nobody needs this member any more: all is ordered, and all was received."""
        epoch = self.membership.epoch
        in_view = epoch is None or (epoch.idle and not self.membership.changing)
        return in_view and not self._assembler.count

    def may_leave(self, now: int) -> bool:
        """Whether every message that was broadcast here has its place, and nobody fetches our state now."""
        epoch = self.membership.epoch
        if self.state.is_asked(now):
            return False
        in_view = epoch is None or (epoch.protocol.settled and not self.membership.changing)
        return in_view and not self._assembler.count

    def room(self, priority: int) -> int:
        """How many messages of this priority may be broadcast now."""
        epoch, assembler = self.membership.epoch, self._assembler
        if epoch is None:
            full = assembler.bytes >= self._options.queue_bytes_max
            return 0 if full else self._options.queue_max - assembler.count
        return epoch.protocol.outgoing.room(priority, assembler.count, assembler.bytes)

    def broadcast(self, payload: bytes, priority: int) -> None:
        """Take a message; it leaves with the next turn. The caller has asked for room."""
        self._assembler.add(payload, priority)

    def broadcast_many(self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL) -> None:
        """Take messages of one priority; they leave with the next turn. The caller has asked for room."""
        self._assembler.add_many(payloads, priority, scope)

    def head(self, now: int) -> Head | None:
        """What the application may consume next; valid until anything else is handed over."""
        return self.stream.head(self.membership.epoch, now)

    def consume(self, count: int, now: int) -> None:
        """The application took the next `count` messages of the head."""
        head = self.stream.taken_from(self.membership.epoch)
        if self._observer is not None:
            self._observer.delivered(head, count, now, self.backlog)
        self.stream.consume(head, count, self.membership.epoch, now)

    def consume_event(self, now: int) -> ViewChange | Restored:
        """The application took the head, which is not a message."""
        event = self.stream.consume_event()
        if self._observer is not None:
            view, ordering = self.stream.view, self.stream.ordering
            assert view is not None and ordering is not None, "a state comes after a view"
            if isinstance(event, ViewChange):
                self._observer.view(view, ordering, event.position, _as_data(event.reason), now)
            else:
                self._observer.restored(view, event.position, event.bytes, now)
        return event

    def leave(self, now: int) -> None:
        """Ask the group to let this member go; it is `out` when it has."""
        self.membership.leave(now)

    def end(self, reason: str, now: int) -> None:
        """The process will not take part any more, whether the group has let it go or not."""
        self._depart(reason, True, now)

    def change_order(self, ordering: Ordering, now: int) -> None:
        """Let another protocol order, from the next view on."""
        check_order(ordering.order, self.membership.options.primary)
        parse_starvation(ordering.starvation)
        self.membership.change_order(ordering, now)

    @property
    def snapshot_wanted(self) -> bool:
        """Whether the application's state is asked for, and it is far enough to give it."""
        wanted = self.state.donor.wanted
        return wanted is not None and self.stream.position >= wanted and not self.stream.awaits_state

    def offer_snapshot(self, data: bytes) -> None:
        """The application's state, with everything in it that it has consumed so far."""
        self.state.offer(self.stream.position, data)

    def unordered_messages(self) -> UnorderedMessages:
        """What this life, which is over, leaves to the next one: its own messages that it did not deliver."""
        epoch = self.membership.epoch
        if epoch is None:
            return UnorderedMessages(
                (self._unordered_messages.batches if self._unordered_messages else [])
                + self._assembler.close()
            )
        return UnorderedMessages(epoch.own_unconsumed() + epoch.unordered() + self._assembler.close())

    # The driver's side

    def reachable(self, name: str, now: int) -> None:
        """The network can reach a process of this name; what was sent to it before may be lost."""
        self.membership.reachable(name, now)
        epoch = self.membership.epoch
        if epoch is not None and not epoch.frozen:
            for peer, link in epoch.links.items():
                if peer.name == name:
                    link.reconnected(now)

    def receive(self, peer: ProcessId, frames: list[Frame], now: int) -> None:
        """Frames came from a process, all that were ready."""
        for frame in frames:
            try:
                if frame.channel == CHANNEL:
                    self._on_datagram(peer, read(peer, frame), now)
                else:
                    self._on_link_frame(peer, frame, now)
            except PeerFault as fault:
                self.reject(type(fault).__name__)
                self.membership.evict(peer, f"was put out: {fault}", now)

    def reject(self, reason: str) -> None:
        """Count what was not accepted."""
        self.rejections[reason] = self.rejections.get(reason, 0) + 1

    @property
    def restless(self) -> bool:
        """Whether anything was handed over that a turn would act on."""
        epoch = self.membership.epoch
        return epoch is not None and (self._assembler.count > 0 or epoch.has_work)

    def turn(self, now: int) -> None:
        """All that was ready has been handed over: act on it until nothing is left to do."""
        self.act(now)
        while self.restless:
            self.act(now)

    def act(self, now: int) -> None:
        """One step of a turn; what comes of it can be transmitted before the next one.

        A packet to all waits for the next step at its own sender: the others should not wait for that.
        """
        epoch = self.membership.epoch
        if epoch is None:
            return
        if self._assembler.count:
            for batch in self._assembled(now):
                epoch.step(Broadcast(batch), now)
        if epoch.frozen:
            return
        epoch.act(now, may_order=not self.membership.suspended)
        for peer in epoch.overflowing:
            self.membership.evict(peer, "did not take what it was sent", now)
        if self.stream.awaits_state:
            self.stream.catch_up(epoch, now)

    def tick(self, now: int) -> None:
        """Do what is due at this time."""
        epoch = self.membership.epoch
        if epoch is not None and not epoch.frozen:
            epoch.tick(now)
            slow = self.slowness.found(epoch.protocol, self._could_consume(epoch, now), now)
            if slow is not None and len(epoch.view.members) > 1:
                self.membership.evict(slow, "was too slow", now)
        if now >= self.membership.deadline:
            self.state.tick(now)
            self.membership.tick(now)

    @property
    def deadline(self) -> int:
        """When `tick` has something to do next."""
        epoch, deadline = self.membership.epoch, self.membership.deadline
        of_epoch = epoch.deadline if epoch else None
        return deadline if of_epoch is None else min(deadline, of_epoch)

    def frames(self, now: int, first: ProcessId | None = None) -> Iterator[tuple[str, list[Frame]]]:
        """What is to be transmitted, to whom, by name; each is given out once, this peer's first."""
        membership = self.membership
        epoch = membership.epoch
        if epoch is not None and not epoch.frozen:
            held = self._reports.due(epoch)
            if held is not None:
                for peer in epoch.links:
                    membership.tell(peer, held)
            if first is not None and first in epoch.links and epoch.links[first].frames:
                yield self._link_frames(first, epoch.links[first], now)
            for peer, link in epoch.links.items():
                if link.frames:
                    yield self._link_frames(peer, link, now)
        if membership.datagrams:
            datagrams, membership.datagrams = membership.datagrams, []
            yield from frames_of(datagrams)
        if self.clients.replies:
            replies, self.clients.replies = self.clients.replies, []
            yield from frames_of(replies)

    @property
    def has_timers(self) -> bool:
        """Whether the protocol has set a timer."""
        epoch = self.membership.epoch
        return epoch is not None and epoch.has_timers

    # Between them

    def _link_frames(self, peer: ProcessId, link: FifoLink, now: int) -> tuple[str, list[Frame]]:
        frames, link.frames = link.frames, []
        self.membership.spoke(peer.name, now)
        return peer.name, frames

    def _on_link_frame(self, peer: ProcessId, frame: Frame, now: int) -> None:
        epoch = self.membership.epoch
        if not self.membership.heard(peer, now):
            self.reject("earlier life")
        elif epoch is not None and frame.channel == epoch.channel and not epoch.frozen:
            epoch.receive(peer, frame, now)

    def _on_datagram(self, peer: ProcessId, control: Control, now: int) -> None:
        if isinstance(control, Request):
            self._on_request(peer, control)
        elif isinstance(control, Reply):
            self.reject("reply to a member")
        elif not self.membership.heard(peer, now):
            self.reject("earlier life")
        elif isinstance(control, FetchState):
            self.state.on_fetch(peer, control, now)
        elif isinstance(control, StateChunk):
            self.state.on_chunk(peer, control, now)
        else:
            self.membership.receive(peer, control, now)

    def _on_request(self, client: ProcessId, request: Request) -> None:
        """A client wants something broadcast; if there is no room now, it will ask again."""
        has_room = self.membership.epoch is not None and self.room(request.priority) > 0
        if has_room and self.clients.is_new(client, request):
            self._assembler.add_many([request.payload], request.priority, scope_of(client, request))

    def _could_consume(self, epoch: Epoch, now: int) -> bool:
        """Whether only its application can keep a member from consuming, and its state is not awaited."""
        trusted = all(self.membership.trusts(peer, now) for peer in epoch.links)
        awaited = self.stream.awaits_state or self.state.is_asked(now)
        return trusted and not awaited and self._reports.are_complete(epoch)

    def _assembled(self, now: int) -> list[Batch]:
        """What the application has broadcast since the last step."""
        batches = self._assembler.close()
        if self._observer is not None:
            for batch in batches:
                self._observer.broadcast(batch, now, self.backlog)
        return batches

    # What membership decides

    def _begin(self, proposal: Proposal, standing: Standing, before: Epoch | None, now: int) -> Epoch:
        """End the old view, and open an epoch for the new one."""
        view, ordering = proposal.view, proposal.ordering
        if self._unordered_messages is not None:
            own = self._assembler.close()
            self._assembler = resubmit(self.me, self._unordered_messages, own, standing, ordering.prioritised)
            self._unordered_messages = None
        unordered = self._end(proposal, standing, before) + self._assembled(now)
        options = msgspec.structs.replace(
            self._options, prioritised=ordering.prioritised, starvation=parse_starvation(ordering.starvation)
        )
        self._assembler.prioritised = ordering.prioritised
        protocol = find_protocol(ordering.order)(self.me, view, options, standing.position)
        epoch = Epoch(view, protocol, self._link_options, self._sent, self._received, before, now)
        if self._observer is not None:
            self._observer.installed(view)
        if self.state.begin(self.me, view, before is None, standing.position, now):
            self.stream.awaits_state = True
        for batch in unordered:
            epoch.step(Broadcast(batch), now)
        self._reports.begin()
        self.clients.forget_pending()
        return epoch

    def _end(self, proposal: Proposal, standing: Standing, before: Epoch | None) -> list[Batch]:
        """Take the end of the old view into the stream; return our messages that it left without a place."""
        if before is None:
            self.stream.begin(proposal, standing, [])
            return []
        closure = proposal.closure_of(before.view.id)
        assert closure is not None
        tail = before.ending(closure)
        self.stream.begin(proposal, standing, tail)
        return before.unordered()

    def _depart(self, reason: str, wanted: bool, now: int) -> None:
        if self.departed is None:
            self.departed, self.left = reason, wanted
            if self._observer is not None:
                self._observer.stopped(Departed(wanted, _as_data(reason.rpartition(": ")[2])), now)

    def _sent(self, packet: Packet, to: ProcessId | None, now: int) -> None:
        if self._observer is not None and self.membership.epoch is not None:
            self._observer.sent(packet, to, now, self.membership.epoch.protocol.backlog)

    def _received(self, packet: Packet, peer: ProcessId | None, now: int) -> None:
        if self._observer is not None and self.membership.epoch is not None and peer is not None:
            self._observer.received(packet, peer, now, self.membership.epoch.protocol.backlog)


def _as_data(reason: str) -> ViewReason:
    """The reason for a view, from its text."""
    said = [part.partition(" ") for part in reason.split("; ")]
    changed = "the order changes to "
    return ViewReason(
        founded=reason == "the group was founded",
        joined=tuple(name for name, _, what in said if what == "joined"),
        left=tuple(name for name, _, what in said if what == "left"),
        failed=tuple(name for name, _, what in said if what == "failed"),
        evicted=tuple(
            Eviction(name, "slow", what)
            for name, _, what in said
            if what and name != "the" and what not in ("joined", "left", "failed")
        ),
        order="".join(part.removeprefix(changed) for part in reason.split("; ") if part.startswith(changed)),
    )
