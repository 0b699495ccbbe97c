"""What the applications send with a quality of service, and when."""

from collections import deque
from typing import NamedTuple

from priocast.core.errors import GroupClosed, InvalidInput, NoQuorum
from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import Quality, parse_quality
from priocast.core.view import View
from priocast.member import Member
from priocast.services.options import ServiceOptions
from priocast.simulation.checkers.service_payloads import ServicePayloads
from priocast.simulation.counters import Counters
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.lan import properties_of
from priocast.simulation.scenario import Scenario
from priocast.simulation.seeded_random import SeededRandom
from priocast.simulation.workload import planned_broadcasts

_SEVERAL_UNITS_PERCENT = 25
_UNITS = 3
_PRIORITIES = 4


class PlannedSend(NamedTuple):
    """A message that an application will send at this time; `to` is empty if it is for all members."""

    name: str
    time: int
    quality: Quality
    to: tuple[str, ...]
    priority: int
    units: int

    @property
    def payloads(self) -> list[bytes]:
        """What it sends."""
        return [f"{self.name}/{index}".encode() for index in range(self.units)]


def planned_sends(scenario: Scenario, member: str) -> list[PlannedSend]:
    """Everything that the application of one process sends with a quality in this run, by time."""
    load = scenario.services
    if scenario.workload.quality:
        quality = parse_quality(scenario.workload.quality)
        return [
            PlannedSend(planned.name, planned.time, quality, (), planned.priority, 1)
            for planned in planned_broadcasts(scenario, member)
        ]
    random = SeededRandom(f"services {scenario.seed} {member}")
    qualities = [parse_quality(text) for text in load.qualities]
    times = sorted(random.randint(load.from_us, load.from_us + load.for_us) for _ in range(load.messages))
    found = []
    for number, time_us in enumerate(times):
        quality = random.choice(qualities)
        to: tuple[str, ...] = ()
        if random.chance(load.addressed_percent):
            count = random.randint(2, len(scenario.members))
            to = tuple(sorted({*random.sample(scenario.members, count), *quality.names}))
        units = _UNITS if random.chance(_SEVERAL_UNITS_PERCENT) else 1
        priority = random.randrange(_PRIORITIES)
        name = f"{member}.{number}"
        found.append(PlannedSend(name, time_us * MICROSECOND, quality, to, priority, units))
    return found


def service_options(scenario: Scenario) -> ServiceOptions | None:
    """The options of the qualities of service of a run; None if it uses none."""
    load = scenario.services
    if scenario.workload.quality:
        # The simulated network corrupts no frame; a response is awaited for two of the longest round trips.
        response_ms = max(ServiceOptions().response_ms, 4 * scenario.network.latency_us_max / 1_000)
        return ServiceOptions(network=NetworkProperties(error_detection=True), response_ms=response_ms)
    if not load.messages:
        return None
    return ServiceOptions(
        network=properties_of(scenario.lan) if scenario.lan else NetworkProperties(error_detection=True),
        response_ms=load.response_us / 1_000,
        precision_ms=load.precision_us / 1_000,
        held_max=load.held_max,
    )


class ServicePlan:
    """What the application of one process still has to send; it outlives an incarnation."""

    def __init__(self, planned: list[PlannedSend], counters: Counters, payloads: ServicePayloads) -> None:
        self._future = deque(planned)
        self._counters = counters
        self._payloads = payloads
        self._waits = False

    @property
    def next_at(self) -> int | None:
        """When the next message is to be sent; None if that waits for the group."""
        return self._future[0].time if self._future and not self._waits else None

    @property
    def done(self) -> bool:
        """Whether everything was sent."""
        return not self._future

    def submit(self, member: Member, now: int) -> int:
        """Send what is due; return the number of messages. What the group cannot send now waits."""
        count = 0
        self._waits = False
        while self._future and self._future[0].time <= now:
            planned = self._future[0]
            self._waits = member.view is None or not member.services.room(planned.quality)
            if self._waits or member.view is None:
                break
            to = _present(planned.to, member.view)
            try:
                message = member.send(planned.payloads, planned.quality, to, planned.priority, now)
            except (GroupClosed, NoQuorum):
                self._waits = True
                break
            except InvalidInput:
                self._counters.count("quality refused")
            else:
                self._payloads.on_sent(message, planned.payloads)
                count += 1
            self._future.popleft()
        return count

    def on_taken(self, me: ProcessId, unit: ServiceDelivery, now: int) -> None:
        """The application has taken a unit."""
        self._payloads.on_taken(me, unit, now)


def _present(names: tuple[str, ...], view: View) -> list[str] | None:
    """Those of these names that are in the view; all members if there are none."""
    return [each.name for each in view.members if each.name in names] or None
