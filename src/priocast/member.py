"""One process's whole stack in one group, without any I/O: application in, frames out.

    broadcast ─▶ assembler ─▶ protocol ─▶ links ─▶ frames for the network
      consume ◀─ stream ◀──── protocol ◀─ links ◀─ frames from the network
         send ─▶ qualities of service ───────────▶
                                 │
                             membership: which protocol, links and members, in which view

A driver (the asyncio runtime, the simulator) gives the member its inputs and the time of each. When it has
given all that were ready it calls `turn`, transmits the `frames`, and calls `tick` at the `deadline`. The
observer, which belongs to the driver, sees what goes in and out.

A member is one incarnation of a process in the group. Once it has `departed` it is over; the next incarnation
may submit its `unordered_messages` again. If it was evicted as slow, the next one is on `probation`.
"""

from priocast.core.assembler import Assembler, Run
from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Scope
from priocast.core.protocol import OrderingOptions
from priocast.core.role import Role
from priocast.core.starvation import FirstInFirstOut, parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.links.frame import LinkOptions
from priocast.membership.clients import Clients, scope_of
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.departure import Departed
from priocast.membership.epoch import Epoch
from priocast.membership.fault_handler import FaultHandler
from priocast.membership.group_services import GroupServices
from priocast.membership.incoming_datagrams import IncomingDatagrams
from priocast.membership.incoming_frames import IncomingFrames
from priocast.membership.membership import Membership
from priocast.membership.message_meter import MessageMeter
from priocast.membership.message_steps import MessageSteps
from priocast.membership.observer import Observer
from priocast.membership.options import MembershipOptions
from priocast.membership.outgoing_frames import OutgoingFrames
from priocast.membership.packets import ClientRequest, Ordering
from priocast.membership.progress_monitor import ProgressMonitor
from priocast.membership.service_clients import ServiceClients
from priocast.membership.stability_reporter import StabilityReporter
from priocast.membership.stream import Stream
from priocast.membership.unordered import UnorderedMessages
from priocast.membership.view_installer import ViewInstaller
from priocast.protocols import check_order, find_protocol
from priocast.protocols.adaptive.policies import check_adaptation
from priocast.services.options import ServiceOptions
from priocast.services.service_host import ServiceHost


class Member:
    """A member of a group, from its first attempt to join until it has departed.

    `rejections` counts by reason what was not accepted. The driver takes the `faults`, and logs them, and
    the `frames` and the receipts of what was sent with a quality of service from `services`. The application
    can take the `service_head` beside the `head` of the total order. What every message needs is done by the
    parts themselves: `room`, `broadcast`, `act` and `consume` are those of `MessageSteps`, `head` that of the
    stream, `receive` that of `IncomingFrames` and `frames` that of `OutgoingFrames`.
    """

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
        *,
        on_probation: bool = False,
        service_options: ServiceOptions | None = None,
        meter: MessageMeter | None = None,
    ) -> None:
        check_order(order, membership.primary, options.policy)
        check_adaptation(options.adaptation)
        self.me = me
        self._primary = membership.primary
        self._options = options
        self._observer = observer
        self._meter = meter
        self._assembler = Assembler(me, options.prioritised, link_options.batch_bytes)
        delivery_table = DeliveryTable()
        self.clients = Clients(delivery_table, me, options.queue_max)
        self.stream = Stream(me, membership, delivery_table, self.clients, self._on_step_failed)
        reporter = StabilityReporter(membership)
        self.services = ServiceHost(me, service_options, observer, is_strict=membership.primary)
        self._installer = ViewInstaller(
            me,
            options,
            link_options,
            find_protocol,
            self._assembler,
            self.stream,
            observer,
            unordered_messages,
            self.services,
        )
        self.membership = Membership(
            me,
            membership,
            membership.agreed_on(order, options, service_options),
            Ordering(order, options.prioritised, str(options.starvation)),
            self._installer,
            observer,
            self._check_ordering,
            may_found=unordered_messages is None or not membership.primary,
            now=now,
        )
        self.state = self.membership.state
        self.progress = ProgressMonitor(membership, self.membership, self.stream, reporter, on_probation, now)
        self._connect(reporter)

    def _connect(self, reporter: StabilityReporter) -> None:
        """Connect the parts with each other, and with those who use the member."""
        self._group_services = GroupServices(self.services, self.membership, self.stream)
        self.send, self.check_send = self._group_services.send, self._group_services.check
        self.service_head, self.take_service = self._group_services.head, self._group_services.take
        self.frames = OutgoingFrames(self.membership, reporter, self.clients, self.services).take
        self._fault_handler = FaultHandler(self.membership)
        self.rejections, self.faults = self._fault_handler.rejections, self._fault_handler.faults
        self.reject = self._fault_handler.reject
        self._service_clients = ServiceClients(self._group_services, self.services, self.clients)
        on_send = self._service_clients.on_send
        datagrams = IncomingDatagrams(self.membership, self._on_request, on_send, self.reject)
        self.receive = IncomingFrames(self.membership, datagrams, self.services, self._fault_handler).receive
        steps = MessageSteps(
            self._options,
            self.membership,
            self._assembler,
            self.stream,
            self.progress,
            self.services,
            self._serve,
            self._observer,
            self._fault_handler,
            self._meter,
        )
        self.room, self.broadcast = steps.room, steps.broadcast
        self.act, self.consume, self.head = steps.act, steps.consume, self.stream.head

    # The application's side

    @property
    def view(self) -> View | None:
        """The view that this member is in."""
        return self.membership.view

    @property
    def incarnation_known(self) -> int:
        """The highest incarnation number of this process that any process knows."""
        return self.membership.neighbours.own_incarnation_max

    @property
    def epoch(self) -> Epoch | None:
        """This member's part in its view."""
        return self.membership.epoch

    @property
    def departed(self) -> Departed | None:
        """Why this member is no longer in the group; None while it is, or tries to join."""
        return self.membership.departed

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a position."""
        epoch = self.membership.epoch
        return self._assembler.count + (epoch.protocol.backlog if epoch else 0)

    @property
    def idle(self) -> bool:
        """Whether no member needs this one any more: everything is ordered, and was received."""
        epoch = self.membership.epoch
        in_view = epoch is None or (epoch.idle and not self.membership.changing)
        return in_view and not self._assembler.count and self.services.idle

    def may_leave(self, now: int) -> bool:
        """Whether all messages that were broadcast or sent here are settled, and nobody fetches the state."""
        epoch = self.membership.epoch
        if self.state.is_asked(now) or self.services.in_flight:
            return False
        in_view = epoch is None or (epoch.protocol.settled and not self.membership.changing)
        return in_view and not self._assembler.count

    def broadcast_many(self, payloads: list[bytes], priority: int, scope: Scope = TO_ALL) -> Run:
        """Accept messages of one priority, which are sent in the next turn. The caller has asked for room."""
        return self._assembler.add_many(payloads, priority, scope)

    def consume_event(self, now: int) -> ViewChange | Restored:
        """The application took the head, which is not a message."""
        event = self.stream.consume_event()
        if self._observer is not None:
            view, ordering = self.stream.view, self.stream.ordering
            assert view is not None and ordering is not None, "a state comes after a view"
            if isinstance(event, ViewChange):
                self._observer.view(view, ordering, event.position, event.reason, now)
            else:
                self._observer.restored(view, event.position, event.bytes, now)
        return event

    def leave(self, now: int) -> None:
        """Leave the group; this member has `departed` when the others have agreed."""
        self.membership.leave(now)

    def end(self, now: int) -> None:
        """The process stops taking part, whether the others have agreed or not."""
        self.membership.depart(Departed(True, ViewReason(left=(self.me.name,))), now)

    def change_order(self, ordering: Ordering, now: int) -> None:
        """Let another protocol order, from the next view on."""
        self._check_ordering(ordering)
        self.membership.change_order(ordering, now)

    @property
    def snapshot_wanted(self) -> bool:
        """Whether a member asks for the application's state, and the application has consumed enough."""
        wanted = self.state.donor.wanted
        return wanted is not None and self.stream.position >= wanted and self.stream.has_state

    def offer_snapshot(self, data: bytes, base: bytes = b"") -> None:
        """The application's state, which includes every message that it has consumed so far.

        `base`: it is for the members that have this already, one of `state.donor.bases`.
        """
        self.membership.on_snapshot(self.stream.position, data, base)

    def unordered_messages(self) -> UnorderedMessages:
        """What this incarnation, which is over, leaves to the next one: own messages not delivered here."""
        try:
            return self._installer.unordered_messages(self.membership.epoch)
        except Exception:
            if not self._fault_handler.is_tainted:
                raise
            return self._installer.unordered_messages(None)

    # The driver's side

    def reachable(self, name: str, now: int, role: Role = Role.MEMBER) -> None:
        """The network can reach a process of this name; frames sent to it before may be lost."""
        if role is Role.CLIENT:
            return
        self.membership.heartbeats.meet(name, now)
        epoch = self.membership.epoch
        if epoch is not None and not epoch.frozen:
            for peer, link in epoch.links.items():
                if peer.name == name:
                    link.reconnected(now)

    def turn(self, now: int) -> None:
        """All inputs that were ready were given: act on them until nothing is left to do."""
        while self.act(now):
            pass

    def tick(self, now: int) -> None:
        """Do what is due at this time."""
        try:
            self._tick(now)
        except Exception as error:
            self._fault_handler.on_step(error, now)

    def _tick(self, now: int) -> None:
        epoch = self.membership.epoch
        if epoch is not None and not epoch.frozen:
            epoch.tick(now)
            self.progress.on_tick(epoch, now)
        if self.services.in_use:
            self._group_services.tick(now)
        if now >= self.membership.deadline:
            if epoch is not None and not epoch.frozen:
                self.progress.on_heartbeat(epoch, now)
            self.membership.tick(now)

    @property
    def deadline(self) -> int:
        """When `tick` has something to do next."""
        epoch, deadline = self.membership.epoch, self.membership.deadline
        of_epoch = epoch.deadline if epoch else None
        if of_epoch is not None:
            deadline = min(deadline, of_epoch)
        if self.services.in_use and (of_services := self.services.deadline) is not None:
            deadline = min(deadline, of_services)
        return deadline

    # Between them

    def _serve(self, now: int) -> None:
        """A turn of the qualities of service."""
        services = self.services
        if services.turn_is_due:
            services.turn(now)
        if services.suspects:
            self._group_services.on_suspects(now)
        if services.receipts:
            self._service_clients.on_receipts()

    def _on_step_failed(self, error: Exception, now: int) -> None:
        self._fault_handler.on_step(error, now)

    def _on_request(self, client: ProcessId, request: ClientRequest) -> None:
        """A client wants a message broadcast; if there is no room now, it will ask again."""
        has_room = self.membership.epoch is not None and self.room(request.priority) > 0
        if has_room and self.clients.is_new(client, request):
            self._assembler.add_many([request.payload], request.priority, scope_of(client, request))

    def _check_ordering(self, ordering: Ordering) -> None:
        """Raise InvalidInput if no view of this group can be ordered like this."""
        policy = parse_starvation(ordering.starvation)
        check_order(ordering.order, self._primary, policy if ordering.prioritised else FirstInFirstOut())
