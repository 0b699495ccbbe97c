"""A client: a process that is not a member and has members broadcast on its behalf.

It has at most one open request of each priority. Without an answer it sends the request to the next member,
again and again; the members must make sure that nothing is applied twice.
"""

from collections import deque
from functools import partial

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import ClientReply, ClientRequest
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.scenario import Scenario
from priocast.simulation.workload import CLIENT, PlannedBroadcast, client_requests


class SimulatedClient:
    """One client with its requests."""

    def __init__(
        self, scenario: Scenario, event_queue: EventQueue, network: SimulatedNetwork, counters: Counters
    ) -> None:
        self._me = ProcessId(CLIENT)
        self._members = scenario.members
        self._patience_ns = scenario.workload.client_patience_us * MICROSECOND
        self._event_queue = event_queue
        self._network = network
        self._counters = counters
        self._open: dict[int, deque[PlannedBroadcast]] = {}
        for planned in client_requests(scenario):
            self._open.setdefault(planned.priority, deque()).append(planned)
        self._answered = dict.fromkeys(self._open, 0)
        self._next_member = scenario.seed
        for priority in self._open:
            self._send_next(priority)

    @property
    def done(self) -> bool:
        """Whether every request was answered."""
        return not any(self._open.values())

    def arrive(self, member: ProcessId, frame: Frame) -> None:
        """A member's answer has arrived."""
        reply = read(member, frame)
        assert isinstance(reply, ClientReply), "members send nothing else to a client"
        priority = reply.priority
        if reply.number == self._answered[priority] + 1 and self._open[priority]:
            self._open[priority].popleft()
            self._answered[priority] += 1
            self._send_next(priority)

    def _send_next(self, priority: int) -> None:
        if self._open[priority]:
            self._send(self._open[priority][0])

    def _retry(self, planned: PlannedBroadcast) -> None:
        """Send the request to the next member, unless it was answered meanwhile."""
        requests = self._open[planned.priority]
        if requests and requests[0] is planned:
            self._counters.count("client retry")
            self._next_member += 1
            self._send(planned)

    def _send(self, planned: PlannedBroadcast) -> None:
        answered = self._answered[planned.priority]
        request = ClientRequest(answered + 1, planned.priority, planned.scope, planned.payload, answered)
        member = self._members[self._next_member % len(self._members)]
        now = self._event_queue.now
        self._network.transmit(self._me, member, frame_of(request), now)
        self._event_queue.schedule(now + self._patience_ns, partial(self._retry, planned))
