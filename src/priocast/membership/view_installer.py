"""Installing a view: how one epoch ends, what it leaves, and how the next one begins.

The end of the old view goes into the stream, and this member's own messages that have no position go into the
next epoch. Everything here is local: the agreement on the view is over.
"""

from collections.abc import Callable

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import Broadcast, OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.core.starvation import parse_starvation
from priocast.links.frame import LinkOptions
from priocast.membership.epoch import Epoch
from priocast.membership.observer import Observer
from priocast.membership.packets import OrderDigest, Ordering, Proposal
from priocast.membership.stream import Stream
from priocast.membership.unordered import UnorderedMessages, resubmit
from priocast.services.service_host import ServiceHost

FindProtocol = Callable[[str], type[Protocol]]


class ViewInstaller:
    """Opens one member's epochs, one after the other.

    `unordered_messages` come from earlier incarnations, and are submitted in the first view.
    """

    def __init__(
        self,
        me: ProcessId,
        options: OrderingOptions,
        link_options: LinkOptions,
        find_protocol: FindProtocol,
        assembler: Assembler,
        stream: Stream,
        observer: Observer | None,
        unordered_messages: UnorderedMessages | None,
        services: ServiceHost,
    ) -> None:
        self.stream = stream
        self._me = me
        self._options = options
        self._link_options = link_options
        self._find_protocol = find_protocol
        self._assembler = assembler
        self._observer = observer
        self._unordered_messages = unordered_messages
        self._services = services

    def install(self, proposal: Proposal, digest: OrderDigest, before: Epoch | None, now: int) -> Epoch:
        """End the epoch before, if there is one, and open the epoch of the proposed view."""
        view, ordering, assembler = proposal.view, proposal.ordering, self._assembler
        protocol_class = self._find_protocol(ordering.order)
        protocol = protocol_class(self._me, view, self._options_of(ordering), digest.position)
        if self._unordered_messages is not None:
            resubmit(assembler, self._unordered_messages, digest, ordering.prioritised)
            self._unordered_messages = None
        unordered: list[Batch] = []
        tail: list[OrderedBatch] = []
        if before is not None:
            plan = proposal.flush_plan_of(before.view.id)
            assert plan is not None
            tail, unordered = before.ending(plan), before.unordered()
        self.stream.on_view(proposal, digest, tail)
        new = assembler.close()
        if self._observer is not None:
            backlog = before.protocol.backlog if before else 0
            for batch in new:
                self._observer.broadcast(batch, now, backlog)
        assembler.prioritised = ordering.prioritised
        epoch = self.stream.epoch = Epoch(view, protocol, self._link_options, self._observer, before, now)
        if self._observer is not None:
            self._observer.installed(view)
        self._services.on_view(view, now)
        for batch in unordered + new:
            epoch.step(Broadcast(batch), now)
        return epoch

    def _options_of(self, ordering: Ordering) -> OrderingOptions:
        """The options with which a view is ordered; they stay the same until the group changes its order."""
        options, prioritised = self._options, ordering.prioritised
        if (options.prioritised, str(options.starvation)) != (prioritised, ordering.starvation):
            starvation = parse_starvation(ordering.starvation)
            self._options = msgspec.structs.replace(options, prioritised=prioritised, starvation=starvation)
        return self._options

    def digest_after(self, epoch: Epoch | None, proposal: Proposal) -> OrderDigest:
        """The digest of the order for this member when its view has ended."""
        plan = proposal.flush_plan_of(epoch.view.id) if epoch else None
        if epoch is None or plan is None or self._me not in plan.members:
            return OrderDigest(0)
        if plan.acknowledged:
            epoch.stability.merge(plan.acknowledged)
        tail = epoch.ending(plan)
        return self.stream.digest(epoch.protocol.position_next, tail)

    def unordered_messages(self, epoch: Epoch | None) -> UnorderedMessages:
        """What this incarnation leaves to the next one: own messages that it did not deliver."""
        if epoch is not None:
            left = self.stream.own_kept + epoch.own_unconsumed() + epoch.unordered()
        else:
            left = self._unordered_messages.batches if self._unordered_messages else []
        return UnorderedMessages(left + self._assembler.close())
