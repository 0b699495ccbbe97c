"""The base of protocols in which the view's coordinator assigns all positions, from one queue."""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import msgspec

from priocast.core.compiling import mypyc_attr
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.frames import FRAMES_PER_TURN, fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Consumed


@mypyc_attr(allow_interpreted_subclasses=True)
class CoordinatedProtocol(FlowControlledProtocol):
    """All messages without a position wait in the coordinator's `_incoming` queue.

    Members report to it what they have consumed. `_grants` is what they have room for, `_number_next` the
    next position to assign. `ROLE` is what the paper calls the coordinator.
    """

    ROLE: ClassVar[str]

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position, reports_to=view.coordinator)
        self._coordinator = view.coordinator
        size = len(view.members)
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
        return not (self.outgoing.count or self._incoming.count or self.in_flight.count)

    def inspect(self, now: int) -> ProtocolInspection:
        inspection = super().inspect(now)
        if self.me != self._coordinator:
            return inspection
        return msgspec.structs.replace(
            inspection,
            queues_of=partial(self._incoming.inspect, now),
            bottleneck=self._grants.bottleneck_of(self._incoming),
        )

    def _numbered_frames(self) -> Iterator[tuple[int, tuple[Batch, ...], str]]:
        """Number the most urgent messages that all members have room for, a frame at a time.

        Yields the first position of a frame, its batches, and the name of the member that the rest waits for.
        """
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self._incoming.count:
                return
            batches = fill_frame(self._incoming, self._grants.room, self._grants.ordered)
            if not batches:
                return
            yield self._number_next, batches, self._grants.bottleneck_name(self._incoming)
            for batch in batches:
                self._number_next += batch.count
        self.more_to_do()

    def _on_consumed_report(self, sender: ProcessId, report: Consumed) -> None:
        check_role(self.ROLE, self.me, self._coordinator, sender)
        self._grants.granted(sender, report.total, report.window)


def check_role(role: str, me: ProcessId, coordinator: ProcessId, sender: ProcessId) -> None:
    """Raise if a member sent something to this one that only the coordinator handles, in this role."""
    if me != coordinator:
        raise PeerFault(f"{sender} takes {me} for the {role}, which is {coordinator}")
