"""The simulator: builds a group from a scenario, runs it in virtual time and checks it.

It drives the same `Member` that the runtime drives on real networks. A run ends when it has been quiescent
for a while, at the first violation, or at the deadline by which it must be quiescent. It can be run in parts,
and held open for somebody who acts on it meanwhile.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256

import msgspec

from priocast.core.guarantees import NO_ERROR
from priocast.core.identity import ProcessId
from priocast.core.violation import Violation
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.unordered import UnorderedMessages
from priocast.simulation.application import ApplicationState, BroadcastPlan, SimulatedApplication
from priocast.simulation.checker_set import CheckerSet
from priocast.simulation.checkers.checker import Checker
from priocast.simulation.checkers.liveness import FAILURE_TIMEOUTS, deadline_ns
from priocast.simulation.checkers.service_payloads import ServicePayloads
from priocast.simulation.client import SimulatedClient
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.fault_injector import FaultInjector
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.host import SimulatedHost
from priocast.simulation.lan import SimulatedLan
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.process import SimulatedProcess, Written
from priocast.simulation.quiescence import Quiescence
from priocast.simulation.scenario import MILLISECOND, Scenario
from priocast.simulation.service_workload import ServicePlan, planned_sends, service_options
from priocast.simulation.trace_observer import CheckedRecorder, TraceObserver
from priocast.simulation.workload import CLIENT, PlannedBroadcast, client_requests, planned_broadcasts
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow

#: For groups of up to eight members. Larger ones exchange frames between more pairs of members: 64 that
#: broadcast ten messages each in causal-history need more than two million events.
_EVENTS_MAX = 2_000_000
_PAIRS_MIN = 8 * 8
_STAMP_COLUMN = MessageRow._fields.index("distribution")
_REJOIN_AFTER_NS = MILLISECOND
_NEVER = 2**62

Tap = Callable[[int, ProcessId, str, Frame], None]


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario and what happened in it."""

    scenario: Scenario
    rows: list[TraceRow]
    violations: list[Violation]
    duration_ns: int
    counters: Counters

    @property
    def messages(self) -> list[MessageRow]:
        """The rows of the table `messages`, in the order in which they were recorded."""
        return [row for row in self.rows if isinstance(row, MessageRow)]

    @property
    def group_events(self) -> list[GroupEventRow]:
        """The rows of the table `group_events`, in the order in which they were recorded."""
        return [row for row in self.rows if isinstance(row, GroupEventRow)]

    @property
    def digest(self) -> str:
        """A hash of all rows in their order: two runs are the same if and only if it is equal.

        Rows without a stamp are hashed without its columns, so that the hashes of earlier versions hold.
        """
        return sha256(msgspec.msgpack.encode([_hashed(row) for row in self.rows])).hexdigest()


def _hashed(row: TraceRow) -> tuple[object, ...]:
    return row[:_STAMP_COLUMN] if isinstance(row, MessageRow) and not row.distribution else row


def run_scenario(scenario: Scenario, tap: Tap | None = None) -> SimulatedRun:
    """Run a scenario to its end; `tap` is called with time, source, target and frame of every arrival."""
    return Simulator(scenario, tap).run()


class Simulator:
    """One group of simulated processes; `over` says that the run has ended."""

    def __init__(self, scenario: Scenario, tap: Tap | None = None) -> None:
        self.over = False
        self._scenario = scenario
        self._tap = tap
        self.event_queue = EventQueue()
        self.counters = Counters()
        self.observer = TraceObserver(f"seed {scenario.seed}")
        self.network = self._new_network()
        payloads = ServicePayloads(self.observer.report)
        self._service_plans = {
            name: ServicePlan(planned_sends(scenario, name), self.counters, payloads)
            for name in scenario.members
        }
        is_ordered = not scenario.workload.quality
        planned = {
            name: planned_broadcasts(scenario, name) if is_ordered else [] for name in scenario.members
        }
        self.hosts = {
            name: SimulatedHost(name, of_host, self.event_queue, self._start_process)
            for name, of_host in planned.items()
        }
        self.injector = FaultInjector(scenario, self.hosts, self.event_queue, self.network, self.counters)
        self._client = SimulatedClient(scenario, self.event_queue, self.network, self.counters)
        self._quiescence = Quiescence(self.hosts, self._client, self._service_plans)
        self._planned = [each for name in scenario.members for each in planned_broadcasts(scenario, name)]
        self._last_broadcast = max((each.time for each in self._planned), default=0)
        self._deadline = deadline_ns(scenario, self._planned)
        self._failure_ns = scenario.membership.failure_ns
        self._healed_at = self._check_at = scenario.faults.healed_at_us * MICROSECOND
        self._one_view_by = self._healed_at + FAILURE_TIMEOUTS * self._failure_ns
        self._in_one_view = False
        self._quiescent_since: int | None = None
        self._checkers = CheckerSet(
            scenario,
            self.observer.report,
            self.counters,
            crashed=self.injector.crashed,
            pending=self._quiescence.pending,
            expected=self._expected,
            members=self._members,
            states=self._states,
        )
        self.observer.add(self._checkers.checkers)
        for name, start_us in zip(scenario.members, scenario.workload.start_us, strict=True):
            if start_us:
                self.counters.count("late start")
            self.hosts[name].start_after(start_us * MICROSECOND)

    def _new_network(self) -> SimulatedNetwork:
        scenario, queue = self._scenario, self.event_queue
        if scenario.lan is None:
            return SimulatedNetwork(scenario, queue, self.counters, self._arrive)
        return SimulatedLan(scenario, scenario.lan, queue, self.counters, self._arrive)

    def run(self) -> SimulatedRun:
        """Run to the end."""
        self.advance(self._deadline)
        return self.result()

    def advance(self, until: int) -> None:
        """Execute what happens up to this time, or until the run is over."""
        try:
            self._run_events(until)
        except Exception as error:  # Any exception of the code under test is a finding.
            self.observer.report(_violation_of(error, self.event_queue.now))
            self.over = True

    def result(self) -> SimulatedRun:
        """What happened, checked for the last time. The run is over now."""
        self.over = True
        if not self.observer.violations:
            if self._quiescence.pending() is None:
                self._checkers.history.idle = {str(member.me) for member in self._members()}
            self.observer.finish(self.event_queue.now)
        self._checkers.finish()
        return SimulatedRun(
            scenario=self._scenario,
            rows=self.observer.rows,
            violations=self.observer.violations,
            duration_ns=self.event_queue.now,
            counters=self.counters,
        )

    @property
    def checkers(self) -> list[Checker]:
        """What checks the run."""
        return self._checkers.checkers

    def hold(self) -> None:
        """Do not end when all is quiet: somebody may still act."""
        self._check_at = self._deadline = _NEVER

    def release(self, added: Iterable[PlannedBroadcast]) -> None:
        """Nobody acts any more, and all faults have healed: from now on the run ends as any other.

        `added` are the broadcasts that were not planned.
        """
        now = self.event_queue.now
        self._healed_at = self._check_at = max(now, self._healed_at)
        self._one_view_by = self._healed_at + FAILURE_TIMEOUTS * self._failure_ns
        self._in_one_view = False
        self._deadline = now + deadline_ns(self._scenario, [*self._planned, *added])

    def _run_events(self, until: int) -> None:
        """Execute events until then, until the run has been quiescent for a while, or to the deadline."""
        queue, violations = self.event_queue, self.observer.violations
        step_ns = self._scenario.membership.heartbeat_ns
        events_max = _EVENTS_MAX * max(_PAIRS_MIN, len(self.hosts) ** 2) // _PAIRS_MIN
        until = min(until, self._deadline)
        while not self.over and (action := queue.pop(until)) is not None:
            if queue.now >= self._check_at:
                self._check_at = queue.now + step_ns
                if self._is_over(queue.now):
                    self.over = True
                    return
            action()
            self.over = bool(violations)
            assert queue.executed < events_max, "the run makes no progress"

    def _is_over(self, now: int) -> bool:
        """Whether the run has been quiescent for two failure timeouts."""
        if not self._in_one_view:
            pending = self._quiescence.pending_view()
            self._in_one_view = pending is None
            if pending is not None and now > self._one_view_by:
                self._checkers.view_overdue(pending, now)
        if self._quiescence.pending():
            self._quiescent_since = None
        elif self._quiescent_since is None:
            self._quiescent_since = now
            self.counters.settling_ns = now - max(self._healed_at, self._last_broadcast)
        return self._quiescent_since is not None and now - self._quiescent_since >= 2 * self._failure_ns

    def _start_process(
        self, me: ProcessId, plan: BroadcastPlan, unordered_messages: UnorderedMessages | None
    ) -> SimulatedProcess:
        """Start an incarnation; the running processes and it can reach each other."""
        scenario, now = self._scenario, self.event_queue.now
        recorder = CheckedRecorder(me, self.observer)
        member = Member(
            me,
            scenario.order,
            scenario.ordering,
            scenario.membership,
            scenario.link,
            recorder,
            now,
            unordered_messages,
            service_options=service_options(scenario),
        )
        recorder.member = member
        application = SimulatedApplication(
            member,
            plan,
            scenario.workload.consume_us[scenario.members.index(me.name)] * MICROSECOND,
            scenario.workload.state_bytes,
            partial(self._checkers.on_message, member),
            self.counters,
            self._service_plans[me.name],
        )
        for process in self._processes():
            member.reachable(process.member.me.name, now)
            process.member.reachable(me.name, now)
            process.wake()
        return SimulatedProcess(
            member,
            application,
            scenario.processor,
            self.event_queue,
            self.network,
            self.counters,
            self._after_turn,
        )

    def _processes(self) -> list[SimulatedProcess]:
        return [host.process for host in self.hosts.values() if host.process is not None]

    def _after_turn(self, process: SimulatedProcess, written: Written) -> Written:
        self._checkers.after_turn(process, self.event_queue.now)
        if process.member.departed is not None:
            rejoins = self._scenario.membership.rejoin
            self.hosts[process.member.me.name].on_departed(_REJOIN_AFTER_NS if rejoins else None)
            return written
        return self.injector.after_turn(process, written)

    def _arrive(self, target: str, source: ProcessId, frame: Frame) -> None:
        if self._tap is not None:
            self._tap(self.event_queue.now, source, target, frame)
        if target == CLIENT:
            self._client.arrive(source, frame)
            return
        process = self.hosts[target].process
        if process is not None:
            process.arrive(source, frame)

    def _expected(self) -> Iterator[PlannedBroadcast]:
        """What must have been delivered at the end.

        A message with recipients may have none that is left, and a joiner does not find it in a state.
        """
        for host in self.hosts.values():
            first_without_state = host.incarnation == 1 and not self._scenario.membership.state
            for planned in host.plan.submitted:
                if first_without_state or not planned.scope.to:
                    yield planned
        yield from client_requests(self._scenario)

    def _members(self) -> list[Member]:
        return [process.member for process in self._processes()]

    def _states(self) -> dict[str, ApplicationState]:
        return {str(process.member.me): process.application.state for process in self._processes()}


def _violation_of(error: Exception, now: int) -> Violation:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    file = frame.filename.replace("\\", "/").rpartition("/")[2]
    summary = f"{type(error).__name__} in {file}:{frame.lineno} {frame.name}: {error}"
    return Violation(guarantee=NO_ERROR, summary=summary, details={"time_ns": now})
