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
from priocast.simulation.agenda import Agenda
from priocast.simulation.application import Application, Errands, State
from priocast.simulation.checkers.checker import Violation
from priocast.simulation.checkers.liveness import FAILURE_TIMEOUTS, deadline_ns
from priocast.simulation.client import Client
from priocast.simulation.counters import Counters
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.host import Host
from priocast.simulation.injector import Injector
from priocast.simulation.network import Network
from priocast.simulation.panel import Panel
from priocast.simulation.process import Process, Written
from priocast.simulation.scenario import MILLISECOND, Scenario
from priocast.simulation.settlement import Settlement
from priocast.simulation.watch import Watch, Witness
from priocast.simulation.workload import CLIENT, Wish, requests, wishes
from priocast.trace.schema import GroupEventRow, MessageRow, TraceRow

_EVENTS_MAX = 2_000_000
_REJOIN_AFTER_NS = MILLISECOND

Tap = Callable[[int, ProcessId, str, Frame], None]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a scenario."""

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
        """A hash of all rows in their order: equal if and only if the runs are."""
        return sha256(msgspec.msgpack.encode(self.rows)).hexdigest()


def run_scenario(scenario: Scenario, tap: Tap | None = None) -> Run:
    """Run a scenario to its end; the tap sees every frame that arrives: when, from whom, where, and what."""
    return _Simulator(scenario, tap).run()


class _Simulator:
    """One group of simulated processes."""

    def __init__(self, scenario: Scenario, tap: Tap | None) -> None:
        self._scenario = scenario
        self._tap = tap
        self._agenda = Agenda()
        self._counters = Counters()
        self._watch = Watch(scenario.seed)
        self._network = Network(scenario, self._agenda, self._counters, self._arrive)
        wishes_of = {name: wishes(scenario, name) for name in scenario.members}
        self._hosts = {
            name: Host(name, of_host, self._agenda, self._begin) for name, of_host in wishes_of.items()
        }
        self._injector = Injector(scenario, self._hosts, self._agenda, self._network, self._counters)
        self._client = Client(scenario, self._agenda, self._network, self._counters)
        self._settlement = Settlement(self._hosts, self._client)
        everything = [wish for of_host in wishes_of.values() for wish in of_host]
        self._last_wish = max((wish.time for wish in everything), default=0)
        self._deadline = deadline_ns(scenario, everything)
        self._failure_ns = scenario.membership.failure_ns
        self._healed_at = scenario.faults.healed_at_us * MICROSECOND
        self._whole_by = self._healed_at + FAILURE_TIMEOUTS * self._failure_ns
        self._whole = False
        self._well_since: int | None = None
        self._panel = Panel(
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

    def run(self) -> Run:
        try:
            self._happen()
        except Exception as error:  # whatever the stack raises is a finding; the seed is the way to it
            self._watch.report(_violation_of(error, self._agenda.now))
        if not self._watch.violations:
            if self._settlement.lacks() is None:
                self._panel.chronicle.at_rest = {str(member.me) for member in self._members()}
            self._watch.finish(self._agenda.now)
        self._panel.finish()
        return Run(
            scenario=self._scenario,
            rows=self._watch.rows,
            violations=self._watch.violations,
            duration_ns=self._agenda.now,
            counters=self._counters,
        )

    def _happen(self) -> None:
        """Let things happen until all has been well for a while, or it is too late."""
        agenda, violations = self._agenda, self._watch.violations
        step_ns = self._scenario.membership.heartbeat_ns
        look_at = self._healed_at
        while not violations and (action := agenda.next(self._deadline)) is not None:
            if agenda.now >= look_at:
                look_at = agenda.now + step_ns
                if self._has_come_to_rest(agenda.now):
                    return
            action()
            assert agenda.happened < _EVENTS_MAX, "a run that goes on and on makes no progress"

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
        self, me: ProcessId, errands: Errands, unordered_messages: UnorderedMessages | None
    ) -> Process:
        """A life begins; it can reach the others, and they can reach it."""
        scenario, now = self._scenario, self._agenda.now
        witness = Witness(me, self._watch)
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
        application = Application(
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
        return Process(
            member,
            application,
            scenario.processor,
            self._agenda,
            self._network,
            self._counters,
            self._turned,
        )

    def _processes(self) -> list[Process]:
        return [host.process for host in self._hosts.values() if host.process is not None]

    def _turned(self, process: Process, written: Written) -> Written:
        self._panel.look_at(process, self._agenda.now)
        if process.member.departed is not None:
            rejoins = self._scenario.membership.rejoin
            self._hosts[process.member.me.name].be_out(_REJOIN_AFTER_NS if rejoins else None)
            return written
        return self._injector.turned(process, written)

    def _arrive(self, target: str, source: ProcessId, frame: Frame) -> None:
        if self._tap is not None:
            self._tap(self._agenda.now, source, target, frame)
        if target == CLIENT:
            self._client.arrive(source, frame)
            return
        process = self._hosts[target].process
        if process is not None:
            process.arrive(source, frame)

    def _wishes(self) -> Iterator[Wish]:
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

    def _states(self) -> dict[str, State]:
        return {str(process.member.me): process.application.state for process in self._processes()}


def _violation_of(error: Exception, now: int) -> Violation:
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__} in {FilePath(place.filename).name}:{place.lineno} {place.name}: {error}"
    return Violation(property="No error", text=text, time_ns=now)
