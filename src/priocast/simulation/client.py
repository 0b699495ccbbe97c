"""A client: a process that is not a member, and has members broadcast for it.

Of each priority it asks for one thing at a time. If there is no answer it asks again, the next member, for
ever; it must be the members who see that nothing happens twice.
"""

from collections import deque
from functools import partial

from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import ClientReply, ClientRequest
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.scenario import Scenario
from priocast.simulation.workload import CLIENT, PlannedBroadcast, requests


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
        self._waiting: dict[int, deque[PlannedBroadcast]] = {}
        for wish in requests(scenario):
            self._waiting.setdefault(wish.priority, deque()).append(wish)
        self._settled = dict.fromkeys(self._waiting, 0)
        self._next_member = scenario.seed
        for priority in self._waiting:
            self._ask_for_next(priority)

    @property
    def done(self) -> bool:
        """Whether every request was answered."""
        return not any(self._waiting.values())

    def arrive(self, member: ProcessId, frame: Frame) -> None:
        """A member answers."""
        reply = read(member, frame)
        assert isinstance(reply, ClientReply), "members tell a client nothing else"
        priority = reply.priority
        if reply.number == self._settled[priority] + 1 and self._waiting[priority]:
            self._waiting[priority].popleft()
            self._settled[priority] += 1
            self._ask_for_next(priority)

    def _ask_for_next(self, priority: int) -> None:
        if self._waiting[priority]:
            self._ask(self._waiting[priority][0])

    def _ask_again(self, wish: PlannedBroadcast) -> None:
        """Ask the next member, unless there was an answer meanwhile."""
        waiting = self._waiting[wish.priority]
        if waiting and waiting[0] is wish:
            self._counters.count("client retry")
            self._next_member += 1
            self._ask(wish)

    def _ask(self, wish: PlannedBroadcast) -> None:
        settled = self._settled[wish.priority]
        request = ClientRequest(settled + 1, wish.priority, wish.scope, wish.payload, settled)
        member = self._members[self._next_member % len(self._members)]
        self._network.transmit(self._me, member, frame_of(request), self._event_queue.now)
        self._event_queue.schedule(self._event_queue.now + self._patience_ns, partial(self._ask_again, wish))
