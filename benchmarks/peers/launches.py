"""One launch of a system: its members are started, warmed up and measured, and everything is ended."""

import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Condition
from time import sleep
from typing import Any

import msgspec

from benchmarks.peers.foreign_load import ForeignLoad
from benchmarks.peers.load import PeerLoad
from benchmarks.peers.systems import PeerSystem
from priocast.testing.child_process import ChildProcess, wait_until

_READY_SECONDS = 90.0
_COMMAND_SECONDS = 180.0
_LOAD_SECONDS = 1.0
_MEMORY = "/dev/shm"  # noqa: S108 (directories of our own below it)
_ROOT = str(Path(__file__).parents[2])


class LaunchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rate of the slowest member, the median delivery time, and the load of the machine.

    The median is over the members but the first, which is the coordinator in systems that have one.
    `foreign_cores` is how many processors other programs kept busy just before the launch, and
    `foreign_cores_measured` while it was measured. A raw round trip has no rate.
    """

    rate: float | None
    delivery_us: float
    foreign_cores: float
    foreign_cores_measured: float


class OrderViolation(Exception):
    """Members have delivered in different orders."""


def measure_launch(system: PeerSystem, load: PeerLoad) -> LaunchResult:
    """Launch a system once and measure it."""
    before = ForeignLoad()
    sleep(_LOAD_SECONDS)
    foreign_cores = before.cores()
    if system.measure is None:
        return _measure_members(system, load, foreign_cores)
    meanwhile = ForeignLoad()
    rate, delivery_us = system.measure(load)
    return LaunchResult(
        rate=rate,
        delivery_us=delivery_us,
        foreign_cores=foreign_cores,
        foreign_cores_measured=meanwhile.cores(),
    )


def _measure_members(system: PeerSystem, load: PeerLoad, foreign_cores: float) -> LaunchResult:
    """Start the members, warm them up, and measure them."""
    with tempfile.TemporaryDirectory(dir=memory_directory()) as name, ExitStack() as stack:
        commands = stack.enter_context(system.launch(load.members, Path(name)))
        members = stack.enter_context(_started(system, commands))
        messages = max(1, round(load.messages * system.share))
        for _ in range(load.warm_ups):
            members.ask(f"rate {messages} {load.size}")
        meanwhile = ForeignLoad()
        rates = members.ask(f"rate {messages} {load.size}")
        deliveries = members.ask(f"delivery {load.deliveries} {load.rate} {load.size}")
        foreign_cores_measured = meanwhile.cores()
        members.leave()
    times = [time for answer in deliveries[1:] for time in answer["times_us"]]
    return LaunchResult(
        rate=min(answer["rate"] for answer in rates),
        delivery_us=statistics.median(times),
        foreign_cores=foreign_cores,
        foreign_cores_measured=foreign_cores_measured,
    )


def memory_directory() -> str | None:
    """A directory in memory where programs can be executed, if there is one, so that no disk is measured."""
    if not os.access(_MEMORY, os.W_OK) or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return _MEMORY


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
