"""Real processes that run `priocast`: single commands, and nodes with configuration and certificates."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priocast.network.keys import Authority, make_authority, make_member_certificate
from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess
from support.waiting import PATIENCE_SECONDS

_COMMAND = [sys.executable, "-c", "from priocast.cli.main import main; main()"]

LOGGED = ("--json", "--log-format", "json", "--log-level", "info")

Record = dict[str, Any]


class CommandProcess(ChildProcess):
    """A process that runs `priocast`; it prints and logs JSON objects."""

    def __init__(self, name: str, *arguments: str) -> None:
        super().__init__(name, [*_COMMAND, *arguments])

    def type(self, *lines: str) -> None:
        """Type lines on its standard input."""
        for line in lines:
            self.write_line(line.encode())

    def kill(self) -> None:
        """End it without warning, as a power failure does."""
        self.send_signal(signal.SIGKILL)
        self.wait_end(PATIENCE_SECONDS)

    def terminate(self) -> int:
        """Ask it to end, as a service manager does; returns its exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait_end(PATIENCE_SECONDS)

    def printed(self) -> list[Record]:
        """The events that it has printed so far."""
        return _objects(self.output)

    def logged(self) -> list[Record]:
        """The records that it has logged so far."""
        return _objects(self.errors)

    def wait_printed(self, **fields: object) -> Record:
        """Wait until it has printed an event with these fields."""
        return self._wait_for(self.printed, fields)

    def wait_logged(self, **fields: object) -> Record:
        """Wait until it has logged a record with these fields."""
        return self._wait_for(self.logged, fields)

    def wait_lines(self, count: int) -> list[str]:
        """Wait until it has printed `count` lines."""
        self.wait(lambda: len(self.output) >= count, PATIENCE_SECONDS, f"{count} lines")
        return [line.decode().rstrip("\n") for line in self.output]

    def _wait_for(self, read: Callable[[], list[Record]], fields: Record) -> Record:
        found: list[Record] = []

        def is_there() -> bool:
            ended = self.has_ended
            found.extend(record for record in read() if fields.items() <= record.items())
            assert found or not ended, f"it ended without {fields}; {self.describe()}"
            return bool(found)

        self.wait(is_there, PATIENCE_SECONDS, f"a record with {fields}")
        return found[0]


class Cluster:
    """The files of all members in one directory, and the processes that run from them."""

    def __init__(self, directory: Path, names: str, *groups: str, shutdown_seconds: float) -> None:
        addresses = [str(address) for address in free_addresses(2 * len(names))]
        self.listen = dict(zip(names, addresses, strict=False))
        self.admin = dict(zip(names, addresses[len(names) :], strict=True))
        self.directory = directory
        self._shutdown_seconds = shutdown_seconds
        self._running: list[CommandProcess] = []
        authority = make_authority(directory)
        for name in names:
            self._write(name, authority, groups)

    def _write(self, name: str, authority: Authority, groups: tuple[str, ...]) -> None:
        make_member_certificate(self.directory, authority, name, list(groups))
        peers = "".join(f'{peer} = "{address}"\n' for peer, address in self.listen.items())
        of_groups = "".join(f'[[group]]\nname = "{group}"\nfailure_ms = 4000\n' for group in groups)
        (self.directory / f"{name}.toml").write_text(
            f'[node]\nname = "{name}"\nlisten = "{self.listen[name]}"\nstate_directory = "state"\n'
            f"shutdown_seconds = {self._shutdown_seconds}\n"
            f'[node.tls]\ncertificate = "{name}.crt"\nkey = "{name}.key"\nauthority = "authority.crt"\n'
            f'[node.admin]\nlisten = "{self.admin[name]}"\n[peers]\n{peers}{of_groups}'
        )

    def start(self, name: str) -> CommandProcess:
        """Start a member's process."""
        config = str(self.directory / f"{name}.toml")
        node = CommandProcess(name, "node", "--config", config, *LOGGED)
        self._running.append(node)
        return node

    def end(self) -> None:
        """End every process that was started."""
        for node in self._running:
            node.end()


@contextmanager
def running(name: str, *arguments: str) -> Iterator[CommandProcess]:
    """A process for the time of a test."""
    with CommandProcess(name, *arguments) as started:
        yield started


@contextmanager
def cluster(directory: Path, names: str, *groups: str, shutdown_seconds: float = 10) -> Iterator[Cluster]:
    """A cluster of members that are not started yet; none is left running at the end."""
    made = Cluster(directory, names, *groups, shutdown_seconds=shutdown_seconds)
    try:
        yield made
    finally:
        made.end()


def _objects(lines: list[bytes]) -> list[Record]:
    """The JSON objects among these lines; the last line may be incomplete."""
    return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"\n")]
