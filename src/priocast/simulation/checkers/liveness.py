"""Liveness: after the faults have healed, everything is delivered, in one view, before a deadline.

`docs/guarantees.md` states what must be delivered, and by whom, with the exceptions. This module checks it
for every planned broadcast whose incarnation neither crashed nor left.
"""

from collections.abc import Callable, Iterable, Mapping

from priocast.core.guarantees import LIVENESS
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.protocols.history.all_ack import AllAck
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.process_history import DROPPED_OUT, RunHistory
from priocast.simulation.checkers.rows import DepartureEvent, name_of
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import HEADER_BYTES
from priocast.simulation.scenario import Scenario
from priocast.simulation.workload import CLIENT, PlannedBroadcast, name_in, owner_of

FAILURE_TIMEOUTS = 10
"""The group is in one view after this many failure timeouts without faults."""


class Liveness(Checker):
    """Knows who delivered which planned broadcast, and in which view.

    `pending` says what the run still waits for, `expected` are the broadcasts that must be delivered, and
    `states` are those of the applications that run at the end: what they took over with a state counts.
    """

    GUARANTEE = LIVENESS

    def __init__(
        self,
        report: ReportViolation,
        history: RunHistory,
        *,
        primary: bool,
        all_safe: bool,
        pending: Callable[[], str | None],
        expected: Callable[[], Iterable[PlannedBroadcast]],
        states: Callable[[], Mapping[str, ApplicationState]],
    ) -> None:
        super().__init__(report)
        self._history = history
        self._primary = primary
        self._all_safe = all_safe
        self._pending = pending
        self._expected = expected
        self._states = states
        self._delivered_by: dict[str, list[tuple[str, int]]] = {}
        self._sender_of: dict[str, str] = {}
        self._evicted_as_slow: set[str] = set()

    def on_message(self, me: ProcessId, message: Message, view: int) -> None:
        """An application is about to consume a message, in the view of this number."""
        planned = name_in(message.payload)
        self._delivered_by.setdefault(planned, []).append((str(me), view))
        self._sender_of[planned] = str(message.sender)

    def on_departure(self, event: DepartureEvent) -> None:
        if event.was_slow:
            self._evicted_as_slow.add(event.process)

    def finish(self, now: int) -> None:
        pending = self._pending()
        if pending:
            self.violated(pending, now)
            return
        surviving = {
            (epoch.process, epoch.view[0])
            for incarnation in self._history.incarnations.values()
            for epoch in incarnation.epochs
            if epoch.next_view != DROPPED_OUT
        }
        applied = set().union(*(state.applied for state in self._states().values()))
        for planned in self._expected():
            deliveries = self._delivered_by.get(planned.name, [])
            if planned.name in applied or not surviving.isdisjoint(deliveries):
                continue
            if not self._may_be_lost(planned, [process for process, _ in deliveries]):
                by = ", ".join(sorted({process for process, _ in deliveries})) or "nobody"
                summary = f"{planned.name} was delivered by {by}, and by nobody who continued"
                self.violated(summary, now, members=[owner_of(planned.name)])
                return

    def _may_be_lost(self, planned: PlannedBroadcast, delivered_by: list[str]) -> bool:
        """Whether nobody who continued has to deliver it: see the exceptions in `docs/guarantees.md`."""
        owner = owner_of(planned.name)
        is_safe = planned.scope.safe or self._all_safe
        if not is_safe and any(_is_of(owner, process) for process in delivered_by):
            return True
        if self._primary:
            return False
        if delivered_by:
            return self._sender_of[planned.name] in self._evicted_as_slow
        return any(_is_of(owner, process) for process in self._evicted_as_slow)


def _is_of(owner: str, process: str) -> bool:
    """Whether an incarnation submits the broadcasts of this owner; any member does so for a client."""
    return owner in (CLIENT, name_of(process))


def deadline_ns(scenario: Scenario, planned_broadcasts: Iterable[PlannedBroadcast]) -> int:
    """When the run must be quiescent, after its last fault and its last broadcast.

    In the worst case (a window of one message, no batches) a token visits all members for every message.
    The message then takes two hops to be ordered and two more until the slowest member has reported it,
    with a frame to and from each member at every hop, plus the time of the slowest application. A client
    may try each member in turn. A message may wait for a silent member of `all-ack`. And in links whose cut
    was not noticed, retransmission timers have doubled in both directions.
    """
    network, processor, workload = scenario.network, scenario.processor, scenario.workload
    last_broadcast = size = 0
    count = workload.client_requests
    for planned in planned_broadcasts:
        last_broadcast = max(last_broadcast, planned.time)
        count += 1
        size += len(planned.payload) + HEADER_BYTES
    frames = 4 * len(scenario.members)
    latency_us = network.latency_us_max + 3 * network.latency_spread_us
    each_us = (
        (4 + len(scenario.members)) * latency_us + 2 * frames * processor.frame_us + max(workload.consume_us)
    )
    each_ns = each_us * MICROSECOND + 4 * processor.message_ns + _silence_ns(scenario)
    byte_ns = 2 * processor.byte_ns
    if network.bandwidth_bytes_per_second is not None:
        byte_ns += 1_000_000_000 // network.bandwidth_bytes_per_second
    size += len(scenario.members) * workload.state_bytes
    work_ns = count * each_ns + frames * size * byte_ns
    work_ns += workload.client_requests * len(scenario.members) * workload.client_patience_us * MICROSECOND
    waited_ns = FAILURE_TIMEOUTS * scenario.membership.failure_ns + 2 * scenario.link.retransmit_ns_max
    return max(scenario.faults.healed_at_us * MICROSECOND, last_broadcast) + work_ns + waited_ns


def _silence_ns(scenario: Scenario) -> int:
    """How long the order may wait for a member that has nothing to send, if it ever waits for one."""
    orders = (scenario.order, *(change.order for change in scenario.faults.order_changes))
    waits = any(order.endswith(AllAck.NAME) for order in orders)
    return int(scenario.ordering.acknowledge_ms * 1_000) * MICROSECOND if waits else 0
