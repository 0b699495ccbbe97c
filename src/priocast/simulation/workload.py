"""What the applications broadcast, and when.

A payload repeats the name of its message, so whoever consumes it can tell whether it is the right one
without knowing what was broadcast.
"""

from random import Random
from typing import NamedTuple

from priocast.core.identity import MessageId, ProcessId
from priocast.simulation.dice import exponential
from priocast.simulation.scenario import Scenario

_SECOND = 1_000_000_000


class Wish(NamedTuple):
    """A message that an application wants to broadcast at this time."""

    time: int
    priority: int
    payload: bytes


def wishes(scenario: Scenario, sender: ProcessId) -> list[Wish]:
    """All that one member's application broadcasts in this run, by time."""
    workload = scenario.workload
    index = scenario.members.index(sender.name)
    count, rate = workload.messages[index], workload.rate_per_second[index]
    dice = Random(f"workload {scenario.seed} {sender}")
    priorities = [priority for priority, _ in workload.priorities]
    weights = [weight for _, weight in workload.priorities]
    numbers = dict.fromkeys(range(256), 0)
    found: list[Wish] = []
    time = 0
    while len(found) < count:
        time += exponential(dice, _SECOND * workload.burst // rate)
        for priority in dice.choices(priorities, weights, k=min(workload.burst, count - len(found))):
            level = priority if scenario.ordering.prioritised else 0
            size = dice.randint(workload.payload_bytes_min, workload.payload_bytes_max)
            identity = MessageId(sender, level, numbers[level])
            numbers[level] += 1
            found.append(Wish(time, priority, payload_of(identity, priority, size)))
    return found


def payload_of(identity: MessageId, priority: int, size: int) -> bytes:
    """The payload that the message of this name has in every run, at this size."""
    name = f"{identity}/{priority};".encode()
    return (name * (size // len(name) + 1))[:size]
