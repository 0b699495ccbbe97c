"""The state that the unicast-unicast-broadcast classes share: numbers are requested, granted and used."""

from typing import Generic, TypeVar

import msgspec

from priocast.core.compiling import mypyc_attr
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.protocol import WINDOW_MAX, Broadcast, OrderingOptions, PacketId
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.reorder_buffer import ReorderBuffer
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.numbering.giver import NumberGiver
from priocast.protocols.numbering.packets import Numbered
from priocast.protocols.numbering.requester import NumberRequester
from priocast.protocols.numbering.requests import NumberReservations

NumberedT = TypeVar("NumberedT", bound=Numbered)


@mypyc_attr(allow_interpreted_subclasses=True)
class NumberingProtocol(FlowControlledProtocol, Generic[NumberedT]):
    """A member that requests numbers (`_requester`) and may have to grant them (`_giver`).

    A message has its position by its number: what arrives ahead of earlier numbers waits in `_ahead`.
    """

    PRIORITIES_ACT = "sequencing"

    def __init__(
        self,
        me: ProcessId,
        view: View,
        options: OrderingOptions,
        position: int,
        reservations: NumberReservations,
        reports_to: ProcessId | None = None,
    ) -> None:
        super().__init__(me, view, options, position, reports_to)
        self._requester = NumberRequester(options, position)
        self._giver = NumberGiver(view, options, position, reservations)
        self._validator = SubmissionValidator(view, WINDOW_MAX)
        self._ahead: ReorderBuffer[tuple[NumberedT, PacketId]] = ReorderBuffer()

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._giver.requests.count - self._giver.requested_by[self.me]

    @property
    def idle(self) -> bool:
        return self.settled and not self._giver.requests

    def inspect(self, now: int) -> ProtocolInspection:
        """No member can consume more while messages with granted numbers have not arrived."""
        inspection, giver = super().inspect(now), self._giver
        return msgspec.structs.replace(
            inspection,
            queues_of=lambda: giver.requests.inspect(now) or inspection.queues,
            bottleneck=giver.bottleneck() if self.position_next >= giver.position_end else None,
        )

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        self.outgoing.put(event.batch, now)
        self._requester.add(event.batch)

    def _keep_numbered(self, sender: ProcessId, numbered: NumberedT, packet_id: PacketId) -> None:
        """Check a packet that uses numbers, and keep it until all messages before it are here."""
        self._ahead.check(sender, numbered.position, self.position_next, self.position_next)
        self._giver.check_used(sender, numbered)
        for batch in numbered.batches:
            self._validator.check(sender, batch)
        self._ahead.put(numbered.position, (numbered, packet_id))
