"""Real processes: the command line, and nodes that run from configuration files with certificates."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priocast.network.keys import Authority, make_authority, make_member_certificate
from priocast.testing.addresses import free_addresses
from support.waiting import PATIENCE_SECONDS

_COMMAND = [sys.executable, "-c", "from priocast.cli.main import main; main()"]

LOGGED = ("--json", "--log-format", "json", "--log-level", "info")

Told = dict[str, Any]


class Running:
    """A process that runs `priocast`; what it prints and logs goes to files."""

    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        self._out = directory / f"{name}.out"
        self._log = directory / f"{name}.log"
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*_COMMAND, *arguments], stdin=subprocess.PIPE, stdout=out, stderr=log
            )

    def type(self, *lines: str) -> None:
        """Type lines on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it without warning, as a machine that loses its power."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)

    def terminate(self) -> int:
        """Ask it to end, as a service manager does; its exit code."""
        os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def printed(self) -> list[Told]:
        """The events that it printed so far."""
        return _objects(self._out)

    def logged(self) -> list[Told]:
        """The records that it logged so far."""
        return _objects(self._log)

    def wait_printed(self, **fields: object) -> Told:
        """Wait until it has printed an event with these fields."""
        return self._wait_for(self.printed, fields)

    def wait_logged(self, **fields: object) -> Told:
        """Wait until it has logged a record with these fields."""
        return self._wait_for(self.logged, fields)

    def wait_lines(self, count: int) -> list[str]:
        """Wait until it has printed so many lines."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(lines := self._out.read_text().splitlines()) < count:
            assert time.monotonic() < deadline, self._last_words()
            time.sleep(0.02)
        return lines

    def end(self) -> None:
        """Whatever happened, leave no process behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)

    def _wait_for(self, read: Callable[[], list[Told]], fields: Told) -> Told:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            over = self.process.poll() is not None or time.monotonic() > deadline
            for told in read():
                if fields.items() <= told.items():
                    return told
            assert not over, f"{fields} was not told; {self._last_words()}"
            time.sleep(0.02)

    def _last_words(self) -> str:
        return f"printed:\n{self._out.read_text()}\nlogged:\n{self._log.read_text()}"


class Cluster:
    """Members' files in one directory, and the processes that were started from them."""

    def __init__(self, directory: Path, names: str, *groups: str, shutdown_seconds: float) -> None:
        addresses = [str(address) for address in free_addresses(2 * len(names))]
        self.listen = dict(zip(names, addresses, strict=False))
        self.admin = dict(zip(names, addresses[len(names) :], strict=True))
        self.directory = directory
        self._shutdown_seconds = shutdown_seconds
        self._running: list[Running] = []
        authority = make_authority(directory)
        for name in names:
            self._write(name, authority, groups)

    def _write(self, name: str, authority: Authority, groups: tuple[str, ...]) -> None:
        make_member_certificate(self.directory, authority, name, list(groups))
        peers = "".join(f'{peer} = "{address}"\n' for peer, address in self.listen.items())
        of_groups = "".join(f'[[group]]\nname = "{group}"\nfailure_ms = 1500\n' for group in groups)
        (self.directory / f"{name}.toml").write_text(
            f'[node]\nname = "{name}"\nlisten = "{self.listen[name]}"\nstate_directory = "state"\n'
            f"shutdown_seconds = {self._shutdown_seconds}\n"
            f'[node.tls]\ncertificate = "{name}.crt"\nkey = "{name}.key"\nauthority = "authority.crt"\n'
            f'[node.admin]\nlisten = "{self.admin[name]}"\n[peers]\n{peers}{of_groups}'
        )

    def start(self, name: str) -> Running:
        """Start a member's process."""
        config = str(self.directory / f"{name}.toml")
        node = Running(self.directory, name, "node", "--config", config, *LOGGED)
        self._running.append(node)
        return node

    def end(self) -> None:
        """End every process that was started."""
        for node in self._running:
            node.end()


@contextmanager
def running(directory: Path, name: str, *arguments: str) -> Iterator[Running]:
    """A process for the time of a test."""
    started = Running(directory, name, *arguments)
    try:
        yield started
    finally:
        started.end()


@contextmanager
def cluster(directory: Path, names: str, *groups: str, shutdown_seconds: float = 10) -> Iterator[Cluster]:
    """Members, none of them started yet; none is left at the end."""
    made = Cluster(directory, names, *groups, shutdown_seconds=shutdown_seconds)
    try:
        yield made
    finally:
        made.end()


def _objects(path: Path) -> list[Told]:
    """The JSON objects of a file that is being written; the last line may be incomplete."""
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith("{")]
