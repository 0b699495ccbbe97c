"""A client: a process that is not a member, and has members broadcast for it.

It asks for one thing at a time. If there is no answer it asks again, the next member, for ever; it must be
the members who see that nothing happens twice.
"""

from collections import Counter, deque
from functools import partial

from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import Reply, Request
from priocast.simulation.agenda import Agenda
from priocast.simulation.counters import Counters
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import Network
from priocast.simulation.scenario import Scenario
from priocast.simulation.workload import CLIENT, Wish, requests


class Client:
    """One client with its requests."""

    def __init__(self, scenario: Scenario, agenda: Agenda, network: Network, counters: Counters) -> None:
        self._me = ProcessId(CLIENT)
        self._members = scenario.members
        self._patience_ns = scenario.workload.client_patience_us * MICROSECOND
        self._waiting = deque(requests(scenario))
        self._agenda = agenda
        self._network = network
        self._counters = counters
        self._settled: Counter[int] = Counter()
        self._asked = 0
        self._first_tried = scenario.seed
        self._ask_for_next()

    @property
    def done(self) -> bool:
        """Whether every request was answered."""
        return not self._waiting

    def arrive(self, member: ProcessId, frame: Frame) -> None:
        """A member answers."""
        reply = read(member, frame)
        assert isinstance(reply, Reply), "members tell a client nothing else"
        priority = reply.priority
        if self.done or priority != self._waiting[0].priority or reply.number != self._settled[priority] + 1:
            return
        self._waiting.popleft()
        self._settled[priority] += 1
        self._asked = 0
        self._ask_for_next()

    def _ask_for_next(self) -> None:
        if self._waiting:
            self._ask(self._waiting[0])

    def _ask(self, wish: Wish) -> None:
        """Ask the next member for this, unless it was answered meanwhile."""
        if self.done or self._waiting[0] is not wish:
            return
        member = self._members[(self._first_tried + self._asked) % len(self._members)]
        if self._asked:
            self._counters.count("client turned away")
        self._asked += 1
        settled = self._settled[wish.priority]
        request = Request(settled + 1, wish.priority, wish.scope, wish.payload, settled)
        self._network.transmit(self._me, member, frame_of(request), self._agenda.now)
        self._agenda.at(self._agenda.now + self._patience_ns, partial(self._ask, wish))
