"""One launch of a system: its members are started, warmed up and measured, and everything is ended."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Condition
from time import monotonic, sleep
from typing import Any

import msgspec

from benchmarks.peers.systems import PeerSystem
from priocast.study.machine_load import busy_seconds
from priocast.testing.child_process import ChildProcess, wait_until

_READY_SECONDS = 90.0
_COMMAND_SECONDS = 180.0
_LOAD_SECONDS = 1.0
_ROOT = str(Path(__file__).parents[2])


class PeerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured in a launch: rounds of so many messages per member, and delivery times."""

    members: int = 4
    size: int = 64
    messages: int = 100_000
    warm_ups: int = 4
    deliveries: int = 300
    rate: int = 100


class LaunchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rate of the slowest member, the median delivery time, and the load of the machine.

    The median is over the members but the first, which is the coordinator in systems that have one.
    `foreign_cores` is how many processors other programs kept busy just before the launch.
    """

    rate: float
    delivery_us: float
    foreign_cores: float


class OrderViolation(Exception):
    """Members have delivered in different orders."""


def measure_launch(system: PeerSystem, load: PeerLoad) -> LaunchResult:
    """Launch a system once and measure it."""
    foreign_cores = _load_of_others()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        commands = stack.enter_context(system.launch(load.members, Path(name)))
        members = stack.enter_context(_started(system, commands))
        messages = max(1, round(load.messages * system.share))
        for _ in range(load.warm_ups):
            members.ask(f"rate {messages} {load.size}")
        rates = members.ask(f"rate {messages} {load.size}")
        deliveries = members.ask(f"delivery {load.deliveries} {load.rate} {load.size}")
        members.leave()
    times = [time for answer in deliveries[1:] for time in answer["times_us"]]
    return LaunchResult(
        rate=min(answer["rate"] for answer in rates),
        delivery_us=statistics.median(times),
        foreign_cores=foreign_cores,
    )


def _load_of_others() -> float:
    """How many processors are busy while nothing of the comparison runs."""
    began, busy = monotonic(), busy_seconds()
    sleep(_LOAD_SECONDS)
    return (busy_seconds() - busy) / (monotonic() - began)


class _Members:
    """The processes of the members; all get the same commands, and all answer."""

    def __init__(self, system: PeerSystem, processes: Sequence[ChildProcess], changed: Condition) -> None:
        self._system = system
        self._processes = processes
        self._changed = changed
        self._answers = 0

    def wait(self, seconds: float) -> list[dict[str, Any]]:
        """Wait until every member has given one more answer; check that all delivered in the same order."""
        self._answers += 1

        def all_answered() -> bool:
            for process in self._processes:
                if process.has_ended:
                    raise RuntimeError(f"{self._system.name}: {process.last_error[:300]}")
            return all(len(process.output) >= self._answers for process in self._processes)

        wait_until(self._changed, all_answered, seconds, lambda: f"an answer of {self._system.name}")
        answers = [json.loads(process.output[self._answers - 1]) for process in self._processes]
        if len({answer.get("digest") for answer in answers}) > 1:
            raise OrderViolation(f"{self._system.name}: the members delivered in different orders")
        return answers

    def ask(self, command: str) -> list[dict[str, Any]]:
        """Give all members a command, and wait for their answers."""
        for process in self._processes:
            process.write_line(command.encode())
        return self.wait(_COMMAND_SECONDS)

    def leave(self) -> None:
        """End the input of all members."""
        for process in self._processes:
            process.close_input()


@contextmanager
def _started(system: PeerSystem, commands: Sequence[Sequence[str]]) -> Iterator[_Members]:
    changed = Condition()
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                ChildProcess(f"{system.name} {rank}", command, changed=changed, search_path=(_ROOT,))
            )
            for rank, command in enumerate(commands)
        ]
        members = _Members(system, processes, changed)
        members.wait(_READY_SECONDS)
        yield members
