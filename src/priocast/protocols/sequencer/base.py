"""The state that the fixed sequencers share which queue messages: one member assigns all positions."""

from functools import partial

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.consumption import Consumed
from priocast.protocols.flow.grants import Grants


class QueueingSequencer(FlowControlledProtocol):
    """The view's coordinator is the sequencer. All messages without a position wait in its `_incoming` queue.

    Members report to it what they have consumed. `_grants` is what they have room for, `_number_next` the
    next position to assign.
    """

    PRIORITIES_ACT = "sequencing"

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position, reports_to=view.coordinator)
        size = len(view.members)
        self._sequencer = view.coordinator
        self._incoming = PriorityQueue(
            options.policy, size * options.submit_max, size * options.submit_bytes_max
        )
        self._grants = Grants(view, options)
        self._number_next = position

    @classmethod
    def orderer(cls, view: View) -> ProcessId:
        return view.coordinator

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._incoming.count

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self._incoming or self.in_flight.count)

    def inspect(self, now: int) -> ProtocolInspection:
        inspection = super().inspect(now)
        if self.me != self._sequencer:
            return inspection
        return msgspec.structs.replace(
            inspection,
            queues_of=partial(self._incoming.inspect, now),
            bottleneck=self._grants.bottleneck_of(self._incoming),
        )

    def _on_consumed_report(self, sender: ProcessId, report: Consumed) -> None:
        check_sequencer(self.me, self._sequencer, sender)
        self._grants.granted(sender, report.total, report.window)


def check_sequencer(me: ProcessId, sequencer: ProcessId, sender: ProcessId) -> None:
    """Raise if a member sent something to this one that only the sequencer handles."""
    if me != sequencer:
        raise PeerFault(f"{sender} takes {me} for the sequencer, which is {sequencer}")
