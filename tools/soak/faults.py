"""The faults of the soak: each is injected, has its effect, and is over when the function returns.

What a fault does besides is drawn from the seeded generator. Afterwards the group must return to one view of
all members by itself.
"""

import signal
import time
from collections.abc import Callable
from random import Random
from resource import RLIMIT_FSIZE, prlimit
from typing import Any, NamedTuple

from priocast.protocols import PROTOCOLS
from tools.namespaces import Namespaces
from tools.viewed_group import ViewedGroup

NAMES = "abcde"
VETERAN = NAMES[-1]
"""The member that is never killed: what it uses must not grow."""

PATIENCE_SECONDS = 120.0
_HOUR_MS = 3_600_000
_OTHERS = NAMES[:-1]


class FaultyGroup:
    """The group, its network if that can be cut, and the clocks of its members."""

    def __init__(self, group: ViewedGroup[Any], network: Namespaces | None, failure_seconds: float) -> None:
        self.group = group
        self.network = network
        self.failure_seconds = failure_seconds
        self._clocks_ms = dict.fromkeys(NAMES, 0)

    def start(self, names: str) -> None:
        """Start members, or start them again; each has the clock that it had."""
        for name in names:
            self.group.start(name, clock_ms=self._clocks_ms[name])

    def step_clock(self, name: str, milliseconds: int) -> None:
        """Set the clock of a member, which runs, ahead of the true time by this much."""
        self._clocks_ms[name] = milliseconds
        self.group.members[name].write_line(b"clock %d" % milliseconds)

    def signal(self, names: str, number: signal.Signals) -> None:
        """Send a signal to members."""
        for name in names:
            self.group.members[name].send_signal(number)

    def wait_view(self, names: str) -> None:
        """Wait until these members are in a view of their own."""
        for name in names:
            self.group.members[name].check_running()
        self.group.wait_view(names, PATIENCE_SECONDS)

    @property
    def order(self) -> str:
        """The protocol that orders in the current view of the veteran."""
        view = self.group.view(VETERAN)
        return view.order if view else ""


class Fault(NamedTuple):
    """A fault by name; `inject` returns what was done to whom."""

    name: str
    inject: Callable[[FaultyGroup, Random], str]
    cuts: bool = False


def _some(dice: Random, of: str = _OTHERS) -> str:
    """One or two members: a minority."""
    return "".join(sorted(dice.sample(of, dice.choice((1, 1, 2)))))


def _without(names: str) -> str:
    return "".join(name for name in NAMES if name not in names)


def _kill(faulty: FaultyGroup, dice: Random) -> str:
    victims = _some(dice)
    faulty.signal(victims, signal.SIGKILL)
    faulty.wait_view(_without(victims))
    faulty.start(victims)
    return victims


def _restart(faulty: FaultyGroup, dice: Random) -> str:
    """The next incarnation starts before the others have noticed anything."""
    victim = dice.choice(_OTHERS)
    faulty.signal(victim, signal.SIGKILL)
    faulty.start(victim)
    return victim


def _pause(faulty: FaultyGroup, dice: Random) -> str:
    """Everybody must stay."""
    victims, before = _some(dice, NAMES), faulty.group.view(VETERAN)
    faulty.signal(victims, signal.SIGSTOP)
    time.sleep(dice.uniform(0.05, 0.3) * faulty.failure_seconds)
    faulty.signal(victims, signal.SIGCONT)
    return f"{victims}, in {before.view if before else 0}"


def _stop(faulty: FaultyGroup, dice: Random) -> str:
    victims = _some(dice)
    faulty.signal(victims, signal.SIGSTOP)
    faulty.wait_view(_without(victims))
    faulty.signal(victims, signal.SIGCONT)
    return victims


def _cut(faulty: FaultyGroup, dice: Random) -> str:
    assert faulty.network is not None
    minority = _some(dice, NAMES)
    majority = _without(minority)
    faulty.network.cut_apart(minority, majority)
    faulty.wait_view(majority)
    faulty.network.heal()
    return f"{minority}|{majority}"


def _cut_one_way(faulty: FaultyGroup, dice: Random) -> str:
    assert faulty.network is not None
    source, target = dice.sample(NAMES, 2)
    faulty.network.cut(source, target)
    time.sleep(dice.uniform(0.5, 3) * faulty.failure_seconds)
    faulty.network.heal()
    return f"{source}>{target}"


def _step_clock(faulty: FaultyGroup, dice: Random) -> str:
    """The clock of a member jumps, and the member is restarted with it."""
    victim, step_ms = dice.choice(_OTHERS), dice.randint(-_HOUR_MS, _HOUR_MS)
    faulty.step_clock(victim, step_ms)
    time.sleep(0.2)
    _restart_one(faulty, victim)
    return f"{victim} {step_ms / 1000:+.0f} s"


def _restart_one(faulty: FaultyGroup, victim: str) -> None:
    faulty.signal(victim, signal.SIGKILL)
    faulty.wait_view(_without(victim))
    faulty.start(victim)


def _fill_disk(faulty: FaultyGroup, dice: Random) -> str:
    """No file of a member may grow for a while: neither its trace nor its state."""
    victim = dice.choice(NAMES)
    pid = faulty.group.members[victim].pid
    limits = prlimit(pid, RLIMIT_FSIZE)
    prlimit(pid, RLIMIT_FSIZE, (1, limits[1]))
    time.sleep(dice.uniform(0.5, 3))
    prlimit(pid, RLIMIT_FSIZE, limits)
    return victim


def _change_order(faulty: FaultyGroup, dice: Random) -> str:
    order = dice.choice([name for name in sorted(PROTOCOLS) if name != faulty.order])
    asking = dice.choice(NAMES)
    faulty.group.members[asking].write_line(b"order " + order.encode())

    def changed() -> bool:
        return all((view := faulty.group.view(name)) is not None and view.order == order for name in NAMES)

    faulty.group.wait(changed, PATIENCE_SECONDS, f"{order} at all members")
    return f"{asking}: {order}"


FAULTS = (
    Fault("kill", _kill),
    Fault("restart", _restart),
    Fault("pause", _pause),
    Fault("stop", _stop),
    Fault("cut", _cut, cuts=True),
    Fault("one-way cut", _cut_one_way, cuts=True),
    Fault("clock step", _step_clock),
    Fault("disk full", _fill_disk),
    Fault("change of order", _change_order),
)
