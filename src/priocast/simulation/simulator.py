"""The simulator: builds a group out of a scenario and runs it in virtual time, under the checkers' eyes.

It drives the very `Member` that the runtime drives on real networks. A run ends when nothing is left to
happen, at the first violation, or when the time is over by which everything must have been delivered.
"""

import traceback
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path as FilePath
from random import Random

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.member import Member
from priocast.protocols import find_protocol
from priocast.simulation.agenda import Agenda
from priocast.simulation.application import Application
from priocast.simulation.checkers import checkers_for
from priocast.simulation.checkers.checker import Violation
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.checkers.liveness import deadline_ns
from priocast.simulation.checkers.priority import Priority
from priocast.simulation.counters import Counters
from priocast.simulation.network import Interface, Path
from priocast.simulation.process import Process
from priocast.simulation.scenario import MICROSECOND, Scenario
from priocast.simulation.watch import Watch
from priocast.simulation.workload import wishes
from priocast.trace.recorder import Recorder
from priocast.trace.schema import Row

_EVENTS_MAX = 2_000_000


class Run(msgspec.Struct, frozen=True, kw_only=True):
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


def run_scenario(scenario: Scenario) -> Run:
    """Run a scenario to its end."""
    return _Simulator(scenario).run()


class _Simulator:
    """One group of simulated processes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._agenda = Agenda()
        self._counters = Counters()
        self._watch = Watch(scenario.seed)
        self._view = View(1, tuple(ProcessId(name) for name in scenario.members))
        self._wishes = {member: wishes(scenario, member) for member in self._view.members}
        self._deadline = deadline_ns(scenario, chain.from_iterable(self._wishes.values()))
        checkers = checkers_for(
            scenario.ordering,
            scenario.members,
            find_protocol(scenario.order).orderer(self._view),
            {member.name: len(of_member) for member, of_member in self._wishes.items()},
            self._watch.report,
        )
        self._watch.appoint(checkers)
        self._integrity = next(checker for checker in checkers if isinstance(checker, Integrity))
        self._priority = next((checker for checker in checkers if isinstance(checker, Priority)), None)
        self._processes = {member: self._process(member) for member in self._view.members}

    def run(self) -> Run:
        try:
            for member, process in self._processes.items():
                process.start(self._paths_from(member))
            self._happen()
        except Exception as error:  # whatever the stack raises is a finding; the seed is the way to it
            self._watch.report(_violation_of(error, self._agenda.now))
        if not self._watch.violations:
            self._watch.finish(self._agenda.now)
        self._count()
        return Run(
            scenario=self._scenario,
            rows=self._watch.rows,
            violations=self._watch.violations,
            duration_ns=self._agenda.now,
            counters=self._counters,
        )

    def _happen(self) -> None:
        agenda, violations = self._agenda, self._watch.violations
        while not violations and (action := agenda.next(self._deadline)) is not None:
            action()
            assert agenda.happened < _EVENTS_MAX, "a run that goes on and on makes no progress"

    def _process(self, me: ProcessId) -> Process:
        scenario, counters = self._scenario, self._counters
        index = scenario.members.index(me.name)
        recorder = Recorder(me, self._watch.emit)
        member = Member(me, self._view, scenario.order, scenario.ordering, scenario.link, recorder)
        application = Application(
            member,
            self._wishes[me],
            scenario.ordering.prioritised,
            scenario.workload.consume_us[index] * MICROSECOND,
            partial(self._integrity.on_message, me.name),
            counters,
        )
        pauses = tuple(pause for pause in scenario.faults.pauses if pause.member == me.name)
        return Process(member, application, scenario.processor, pauses, self._agenda, counters)

    def _paths_from(self, source: ProcessId) -> dict[ProcessId, Path]:
        """The paths to all other members; each has dice of its own, so one does not disturb another."""
        scenario, faults = self._scenario, self._scenario.faults
        interface = Interface(scenario.network.bandwidth_bytes_per_second, self._counters)
        return {
            target: Path(
                interface,
                scenario.network,
                faults,
                tuple(cut for cut in faults.cuts if (cut.source, cut.target) == (source.name, target.name)),
                Random(f"path {scenario.seed} {source} {target}"),
                self._agenda,
                self._counters,
                partial(process.arrive, source),
            )
            for target, process in self._processes.items()
            if target != source
        }

    def _count(self) -> None:
        for process in self._processes.values():
            for link in process.member.links.values():
                self._counters.retransmissions += link.retransmissions
                self._counters.link_duplicates += link.duplicates
        if self._priority is not None:
            self._counters.overtakings = self._priority.overtakings


def _violation_of(error: Exception, now: int) -> Violation:
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__} in {FilePath(place.filename).name}:{place.lineno} {place.name}: {error}"
    return Violation(property="No error", text=text, time_ns=now)
