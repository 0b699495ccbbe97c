"""Durable replicas as real processes on a real disk, of which any may be killed at any time."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from random import Random
from threading import Condition
from time import sleep
from types import TracebackType
from typing import Self

from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess

TESTS = str(Path(__file__).parent.parent)
PATIENCE_SECONDS = 240.0
_NAMES = "abc"
_PER_START = 1_000_000


class KilledProcesses:
    """Three workers, by name. `answered` has every command that one of them was given the result of."""

    def __init__(self, directory: Path, pause_seconds: float = 0.0) -> None:
        self.answered: set[str] = set()
        self._directory = directory
        self._pause_seconds = pause_seconds
        self._addresses = dict(zip(_NAMES, map(str, free_addresses(len(_NAMES))), strict=True))
        self._changed = Condition()
        self._running: dict[str, ChildProcess] = {}
        self._starts = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self, *names: str) -> None:
        """Start these workers, all by default; wait until they have begun, and check what they begin with."""
        names = names or tuple(_NAMES)
        self._collect()
        before = set(self.answered)
        for name in names:
            own = self._addresses[name]
            peers = [each for each in self._addresses.values() if each != own]
            first, self._starts = _PER_START * self._starts, self._starts + 1
            module = [sys.executable, "-m", "replication.durable_worker", name, str(self._directory / name)]
            command = [*module, str(first), str(self._pause_seconds), own, *peers]
            worker = ChildProcess(name, command, changed=self._changed, search_path=[TESTS])
            self._running[name] = self._stack.enter_context(worker)
        begins = sorted((self._lines(name, 1)[0].split(",")[1:] for name in names), key=len)
        assert all(each == begins[-1][: len(each)] for each in begins), "prefixes of one history"
        assert len(begins[-1]) == len(set(begins[-1])), "each once"
        assert before <= set(begins[0]), f"answered before, and lost: {sorted(before - set(begins[0]))[:5]}"

    def work(self, count: int) -> None:
        """Wait until all running workers have this many answers."""
        for name in self._running:
            self._lines(name, 1 + count)

    def kill(self, *names: str) -> None:
        """Kill these workers, all by default."""
        names = names or tuple(self._running)
        for name in names:
            self._running[name].send_signal(signal.SIGKILL)
        for name in names:
            self._running[name].wait_end()
        self._collect()
        for name in names:
            del self._running[name]

    def _lines(self, name: str, count: int) -> list[str]:
        """The lines that a worker has written, when there are at least so many."""
        worker = self._running[name]
        worker.wait(lambda: self._all_run() and len(worker.output) >= count, PATIENCE_SECONDS, "work")
        return _whole_lines(worker)

    def _all_run(self) -> bool:
        for worker in self._running.values():
            assert worker.is_running, f"{worker.name} stopped: {b''.join(worker.errors).decode()}"
        return True

    def _collect(self) -> None:
        for worker in self._running.values():
            self.answered.update(_whole_lines(worker)[1:])


def _whole_lines(worker: ChildProcess) -> list[str]:
    written = b"".join(list(worker.output)).decode()
    return written[: written.rfind("\n") + 1].split("\n")[:-1]


def kill_one_by_one(group: KilledProcesses, random: Random) -> None:
    """Kill one worker while the others work, and start it again."""
    group.work(2)
    sleep(random.random() * 0.1)
    name = random.choice(_NAMES)
    group.kill(name)
    group.start(name)
