"""The simulator: builds a group out of a scenario and runs it in virtual time, under the checkers' eyes.

It drives the very `Member` that the runtime drives on real networks. A run ends when everything is well and
stays so for a while, at the first violation, or when the time is over by which all should be well.
"""

import traceback
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path as FilePath

import msgspec

from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.member import Member
from priocast.membership.unordered import UnorderedMessages
from priocast.simulation.application import ApplicationState, BroadcastPlan, SimulatedApplication
from priocast.simulation.checker_set import CheckerSet
from priocast.simulation.checkers.checker import Violation
from priocast.simulation.checkers.liveness import FAILURE_TIMEOUTS, deadline_ns
from priocast.simulation.client import SimulatedClient
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.fault_injector import FaultInjector
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.host import SimulatedHost
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.process import SimulatedProcess, Written
from priocast.simulation.quiescence import Quiescence
from priocast.simulation.scenario import MILLISECOND, Scenario
from priocast.simulation.trace_observer import CheckedRecorder, TraceObserver
from priocast.simulation.workload import CLIENT, PlannedBroadcast, requests, wishes
from priocast.trace.schema import Row

_EVENTS_MAX = 2_000_000
_REJOIN_AFTER_NS = MILLISECOND

Tap = Callable[[int, ProcessId, str, Frame], None]


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a scenario."""

    scenario: Scenario
    rows: list[Row]
    violations: list[Violation]
    duration_ns: int
    counters: Counters

    @property
    def digest(self) -> str:
        """A hash of all rows in their order: equal if and only if the runs are."""
        return sha256(msgspec.msgpack.encode(self.rows)).hexdigest()


def run_scenario(scenario: Scenario, tap: Tap | None = None) -> SimulatedRun:
    """Run a scenario to its end; the tap sees every frame that arrives: when, from whom, where, and what."""
    return _Simulator(scenario, tap).run()


class _Simulator:
    """One group of simulated processes."""

    def __init__(self, scenario: Scenario, tap: Tap | None) -> None:
        self._scenario = scenario
        self._tap = tap
        self._event_queue = EventQueue()
        self._counters = Counters()
        self._watch = TraceObserver(scenario.seed)
        self._network = SimulatedNetwork(scenario, self._event_queue, self._counters, self._arrive)
        wishes_of = {name: wishes(scenario, name) for name in scenario.members}
        self._hosts = {
            name: SimulatedHost(name, of_host, self._event_queue, self._begin)
            for name, of_host in wishes_of.items()
        }
        self._injector = FaultInjector(
            scenario, self._hosts, self._event_queue, self._network, self._counters
        )
        self._client = SimulatedClient(scenario, self._event_queue, self._network, self._counters)
        self._settlement = Quiescence(self._hosts, self._client)
        everything = [wish for of_host in wishes_of.values() for wish in of_host]
        self._last_wish = max((wish.time for wish in everything), default=0)
        self._deadline = deadline_ns(scenario, everything)
        self._failure_ns = scenario.membership.failure_ns
        self._healed_at = scenario.faults.healed_at_us * MICROSECOND
        self._whole_by = self._healed_at + FAILURE_TIMEOUTS * self._failure_ns
        self._whole = False
        self._well_since: int | None = None
        self._panel = CheckerSet(
            scenario,
            self._watch.report,
            self._counters,
            crashed=self._injector.crashed,
            lacks=self._settlement.lacks,
            wishes=self._wishes,
            members=self._members,
            states=self._states,
        )
        self._watch.appoint(self._panel.checkers)
        for name, start_us in zip(scenario.members, scenario.workload.start_us, strict=True):
            if start_us:
                self._counters.count("late start")
            self._hosts[name].start_after(start_us * MICROSECOND)

    def run(self) -> SimulatedRun:
        try:
            self._happen()
        except Exception as error:  # whatever the stack raises is a finding; the seed is the way to it
            self._watch.report(_violation_of(error, self._event_queue.now))
        if not self._watch.violations:
            if self._settlement.lacks() is None:
                self._panel.chronicle.at_rest = {str(member.me) for member in self._members()}
            self._watch.finish(self._event_queue.now)
        self._panel.finish()
        return SimulatedRun(
            scenario=self._scenario,
            rows=self._watch.rows,
            violations=self._watch.violations,
            duration_ns=self._event_queue.now,
            counters=self._counters,
        )

    def _happen(self) -> None:
        """Let things happen until all has been well for a while, or it is too late."""
        event_queue, violations = self._event_queue, self._watch.violations
        step_ns = self._scenario.membership.heartbeat_ns
        look_at = self._healed_at
        while not violations and (action := event_queue.pop(self._deadline)) is not None:
            if event_queue.now >= look_at:
                look_at = event_queue.now + step_ns
                if self._has_come_to_rest(event_queue.now):
                    return
            action()
            assert event_queue.executed < _EVENTS_MAX, "a run that goes on and on makes no progress"

    def _has_come_to_rest(self, now: int) -> bool:
        """Whether everything has been well for two failure timeouts."""
        if not self._whole:
            lacks = self._settlement.group_lacks()
            self._whole = lacks is None
            if lacks is not None and now > self._whole_by:
                self._panel.too_late(lacks, now)
        if self._settlement.lacks():
            self._well_since = None
        elif self._well_since is None:
            self._well_since = now
            self._counters.settling_ns = now - max(self._healed_at, self._last_wish)
        return self._well_since is not None and now - self._well_since >= 2 * self._failure_ns

    def _begin(
        self, me: ProcessId, errands: BroadcastPlan, unordered_messages: UnorderedMessages | None
    ) -> SimulatedProcess:
        """A life begins; it can reach the others, and they can reach it."""
        scenario, now = self._scenario, self._event_queue.now
        witness = CheckedRecorder(me, self._watch)
        member = Member(
            me,
            scenario.order,
            scenario.ordering,
            scenario.membership,
            scenario.link,
            witness,
            now,
            unordered_messages,
        )
        witness.member = member
        application = SimulatedApplication(
            member,
            errands,
            scenario.workload.consume_us[scenario.members.index(me.name)] * MICROSECOND,
            scenario.workload.state_bytes,
            partial(self._panel.on_message, member),
            self._counters,
        )
        for process in self._processes():
            member.reachable(process.member.me.name, now)
            process.member.reachable(me.name, now)
            process.wake()
        return SimulatedProcess(
            member,
            application,
            scenario.processor,
            self._event_queue,
            self._network,
            self._counters,
            self._turned,
        )

    def _processes(self) -> list[SimulatedProcess]:
        return [host.process for host in self._hosts.values() if host.process is not None]

    def _turned(self, process: SimulatedProcess, written: Written) -> Written:
        self._panel.look_at(process, self._event_queue.now)
        if process.member.departed is not None:
            rejoins = self._scenario.membership.rejoin
            self._hosts[process.member.me.name].be_out(_REJOIN_AFTER_NS if rejoins else None)
            return written
        return self._injector.turned(process, written)

    def _arrive(self, target: str, source: ProcessId, frame: Frame) -> None:
        if self._tap is not None:
            self._tap(self._event_queue.now, source, target, frame)
        if target == CLIENT:
            self._client.arrive(source, frame)
            return
        process = self._hosts[target].process
        if process is not None:
            process.arrive(source, frame)

    def _wishes(self) -> Iterator[PlannedBroadcast]:
        """What must have been fulfilled in the end.

        What is not for all may be for none who is left, and is passed over where a state takes its place.
        """
        for host in self._hosts.values():
            sure = host.incarnation == 1 and not self._scenario.membership.state
            for wish in host.errands.handed:
                if sure or not wish.scope.to:
                    yield wish
        yield from requests(self._scenario)

    def _members(self) -> list[Member]:
        return [process.member for process in self._processes()]

    def _states(self) -> dict[str, ApplicationState]:
        return {str(process.member.me): process.application.state for process in self._processes()}


def _violation_of(error: Exception, now: int) -> Violation:
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__} in {FilePath(place.filename).name}:{place.lineno} {place.name}: {error}"
    return Violation(property="No error", text=text, time_ns=now)
