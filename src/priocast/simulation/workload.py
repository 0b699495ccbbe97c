"""What the applications broadcast, and when.

A payload repeats the name of its planned broadcast, so a consumer can tell whether it is the right one. A
planned broadcast may be sent again under another message id, by a later incarnation of its process or, for a
client, through another member. The name stays the same, and each application must apply it once.
"""

from typing import NamedTuple

from priocast.core.message import TO_ALL, Scope
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.load_phases import broadcast_times_us, rate_at
from priocast.simulation.scenario import Scenario, WorkloadOptions
from priocast.simulation.seeded_random import SeededRandom

CLIENT = "client"
_SECOND = 1_000_000_000


class PlannedBroadcast(NamedTuple):
    """A message that an application will broadcast at this time."""

    name: str
    time: int
    priority: int
    payload: bytes
    scope: Scope = TO_ALL


def planned_broadcasts(scenario: Scenario, member: str) -> list[PlannedBroadcast]:
    """Everything that the application of one process broadcasts in this run, by time."""
    workload = scenario.workload
    index = scenario.members.index(member)
    count = workload.messages[index]
    random = SeededRandom(f"workload {scenario.seed} {member}")
    if workload.until_us:
        times = broadcast_times_us(workload.phases, index, workload.until_us, random)
        return [
            _planned(scenario, f"{member}.{number}", time * MICROSECOND, TO_ALL, random)
            for number, time in enumerate(times)
        ]
    found: list[PlannedBroadcast] = []
    time = max(workload.start_us[index], workload.broadcast_from_us) * MICROSECOND
    while len(found) < count:
        mean = int(_SECOND * workload.burst / _rate(workload, index, time))
        time += _pause(mean, random, regular=workload.regular, first=not found)
        scope = _scope(scenario, member, random)
        for _ in range(min(workload.burst, count - len(found))):
            found.append(_planned(scenario, f"{member}.{len(found)}", time, scope, random))
    return found


def _pause(mean: int, random: SeededRandom, *, regular: bool, first: bool) -> int:
    """How long a member waits for its next burst."""
    if not regular:
        return random.exponential(mean)
    return random.randint(0, mean) if first else mean


def _rate(workload: WorkloadOptions, index: int, time: int) -> float:
    """The rate of a member at this time, per second; before its first phase it is that of no phase."""
    rate = rate_at(workload.phases, index, time // MICROSECOND)
    return rate or workload.rate_per_second[index]


def client_requests(scenario: Scenario) -> list[PlannedBroadcast]:
    """The requests of the client, one after the other."""
    random = SeededRandom(f"client {scenario.seed}")
    count = scenario.workload.client_requests
    safe = scenario.workload.safe_percent
    return [
        _planned(scenario, f"{CLIENT}.{number}", 0, Scope(safe=random.chance(safe)), random)
        for number in range(count)
    ]


def _planned(
    scenario: Scenario, name: str, time: int, scope: Scope, random: SeededRandom
) -> PlannedBroadcast:
    workload = scenario.workload
    priorities = [priority for priority, _ in workload.priorities]
    (priority,) = random.choices(priorities, [weight for _, weight in workload.priorities])
    size = random.randint(workload.payload_bytes_min, workload.payload_bytes_max)
    return PlannedBroadcast(name, time, priority, payload_of(name, priority, size), scope)


def _scope(scenario: Scenario, member: str, random: SeededRandom) -> Scope:
    workload = scenario.workload
    safe = random.chance(workload.safe_percent)
    to: tuple[str, ...] = ()
    if random.chance(workload.addressed_percent):
        others = [name for name in scenario.members if name != member]
        to = (member, *sorted(random.sample(others, random.randint(0, len(others)))))
    return Scope(safe, to) if safe or to else TO_ALL


def payload_of(name: str, priority: int, size: int) -> bytes:
    """The payload of the planned broadcast of this name, of this size or as short as the name allows."""
    text = f"{name}/{priority};".encode()
    return (text * (size // len(text) + 1))[: max(size, len(text))]


def name_in(payload: bytes) -> str:
    """The name of the planned broadcast that a payload belongs to."""
    return payload.partition(b"/")[0].decode()


def owner_of(name: str) -> str:
    """The process, or the client, whose planned broadcast this is."""
    return name.partition(".")[0]
