"""Steers a simulated group by hand: time advances, somebody acts, and at the end every guarantee is checked.

An action happens after everything that is due at its time. So the actions with their times determine the run,
and its digest, whoever plays it and in however many steps the time advances.
"""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.simulation.faults import Crash, NetworkCut
from priocast.simulation.host import SimulatedHost
from priocast.simulation.playground.link import ACTIONS_MAX, TIME_MS_MAX, PlaygroundLink, UserAction
from priocast.simulation.playground.messages import MessageFollower
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.scenario import MILLISECOND
from priocast.simulation.simulator import SimulatedRun, Simulator
from priocast.simulation.workload import PlannedBroadcast, payload_of

_PAYLOAD_BYTES = 32
_UNTIL_RESUMED = 2**61
_TOLD = {
    "kill": "{} crashed",
    "start": "{} started again",
    "pause": "{} is paused",
    "resume": "{} resumed",
    "cut": "nothing passes between {} and the others",
    "heal": "the network is whole again",
    "end": "all faults are over",
}


def play(link: PlaygroundLink) -> SimulatedRun:
    """Run a link to its end."""
    playground = Playground(msgspec.structs.replace(link, actions=()))
    for action in link.actions:
        playground.act(action)
    return playground.finish()


class Playground:
    """One group, the time in milliseconds, and what was done so far.

    `cuts` are the cuts that have not healed. `result` is that of the run once it is over.
    """

    def __init__(self, choices: PlaygroundLink) -> None:
        assert not choices.actions, "actions are played one by one"
        self.scenario = choices.scenario()
        self.simulator = Simulator(self.scenario)
        self.messages = MessageFollower(self.simulator.observer.report)
        self.simulator.observer.add([self.messages])
        self.time_ms = 0
        self.cuts: list[tuple[tuple[str, ...], frozenset[tuple[str, str]]]] = []
        self.result: SimulatedRun | None = None
        self._choices = choices
        self._actions: list[UserAction] = []
        self._sent: list[PlannedBroadcast] = []
        if not choices.drawn:
            self.simulator.hold()

    @property
    def link(self) -> PlaygroundLink:
        """What determines the run so far."""
        return msgspec.structs.replace(self._choices, actions=tuple(self._actions))

    def advance(self, until_ms: int) -> None:
        """Let the time pass, to this time."""
        self.time_ms = max(self.time_ms, min(until_ms, TIME_MS_MAX))
        self._run(self.time_ms * MILLISECOND)

    def act(self, action: UserAction) -> None:
        """Do something at a time that has not passed; raises an error if it cannot be done then."""
        if action.at_ms < self.time_ms:
            raise InvalidOption(f"{action} is too late: it is {self.time_ms} ms")
        self.advance(action.at_ms)
        if self.result is not None:
            raise InvalidOption("the run is over: start another one")
        if len(self._actions) >= ACTIONS_MAX:
            raise InvalidOption(f"a run has at most {ACTIONS_MAX} actions: start another one")
        self.simulator.event_queue.pass_to(action.at_ms * MILLISECOND)
        self._carry_out(action)
        self.simulator.hold()
        self._actions.append(action)
        if action.kind == "end":
            self.simulator.release(self._sent)
            self._run(_UNTIL_RESUMED)

    def finish(self) -> SimulatedRun:
        """End all faults, run until everything is quiet, and check every guarantee.

        A drawn run to which nobody did anything ends as it does without a playground.
        """
        if self.result is None and (self._actions or not self._choices.drawn):
            self.act(UserAction(self.time_ms, "end"))
        elif self.result is None:
            self._run(_UNTIL_RESUMED)
        assert self.result is not None
        return self.result

    def _run(self, until: int) -> None:
        """Advance the simulator. The run is over when it says so, or if nothing can follow any more."""
        if self.result is not None:
            return
        self.simulator.advance(until)
        if self.simulator.over or until == _UNTIL_RESUMED:
            self.result = self.simulator.result()
            self.time_ms = max(self.time_ms, self.result.duration_ns // MILLISECOND)

    def _carry_out(self, action: UserAction) -> None:
        getattr(self, f"_{action.kind}")(action)
        if action.kind in _TOLD:
            text = _TOLD[action.kind].format(", ".join(action.members))
            self.messages.tell(action.at_ms * MILLISECOND, text)

    def _host(self, action: UserAction) -> SimulatedHost:
        return self.simulator.hosts[action.members[0]]

    def _process(self, action: UserAction) -> SimulatedProcess:
        process = self._host(action).process
        if process is None:
            raise InvalidOption(f"{action.members[0]} is not running: start it first")
        return process

    def _send(self, action: UserAction) -> None:
        process, plan = self._process(action), self._host(action).plan
        for _ in range(action.count):
            name = f"{action.members[0]}.sent{len(self._sent)}"
            payload = payload_of(name, action.priority, _PAYLOAD_BYTES)
            self._sent.append(PlannedBroadcast(name, action.at_ms * MILLISECOND, action.priority, payload))
            plan.add(self._sent[-1])
        process.wake()

    def _kill(self, action: UserAction) -> None:
        process, name = self._process(action), action.members[0]
        if not self.simulator.injector.crash(Crash(at_us=action.at_ms * 1_000, member=name)):
            raise InvalidOption(
                f"without {name} too few members would be left: the group would stop for good"
            )
        self.messages.forget(str(process.member.me))

    def _start(self, action: UserAction) -> None:
        host = self._host(action)
        if not host.gone:
            raise InvalidOption(f"{host.name} is running, or starts soon")
        host.start()

    def _pause(self, action: UserAction) -> None:
        self._process(action).pause(_UNTIL_RESUMED)

    def _resume(self, action: UserAction) -> None:
        self._process(action).resume()

    def _cut(self, action: UserAction) -> None:
        cut = NetworkCut(kind="halves", members=action.members, from_us=0, for_us=0)
        self.cuts.append((action.members, self.simulator.injector.cut(cut)))

    def _heal(self, _: UserAction) -> None:
        for _members, blocked in self.cuts:
            self.simulator.injector.heal(blocked)
        self.cuts.clear()

    def _end(self, action: UserAction) -> None:
        self._heal(action)
        for host in self.simulator.hosts.values():
            if host.process is not None:
                host.process.resume()
