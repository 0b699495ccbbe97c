"""A process that this one starts, follows line by line, and ends by its own id."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic
from types import TracebackType
from typing import IO, Self

from priocast.core.errors import DeadlineExceeded

_END_SECONDS = 60.0
_POLL_SECONDS = 0.02


class ChildProcess:
    """A child process; `output` and `errors` are the lines that it has written so far.

    `changed` is notified with every line and at the end; several processes may share one. `search_path` is
    put in front of the child's module search path.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        changed: Condition | None = None,
        search_path: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.changed = changed or Condition()
        self.output: list[bytes] = []
        self.errors: list[bytes] = []
        paths = [*search_path, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(  # noqa: S603  # commands of this project only
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)} if search_path else None,
        )
        streams = ((self._process.stdout, self.output), (self._process.stderr, self.errors))
        self._readers = [Thread(target=self._read, args=each, daemon=True) for each in streams]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended and all its lines have been read."""
        return not self.is_running and not any(reader.is_alive() for reader in self._readers)

    @property
    def exit_code(self) -> int | None:
        """The exit code, once the process has ended."""
        return self._process.poll()

    @property
    def last_error(self) -> str:
        """The last line on standard error, or the exit code."""
        lines = b"".join(self.errors).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}, no error message"

    def write_line(self, line: bytes = b"") -> None:
        """Write a line to its standard input; a process that has ended ignores it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def close_input(self) -> None:
        """End its standard input."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to this process, unless it has ended."""
        self._process.send_signal(number)

    def wait(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Wait until a condition on this process holds."""
        wait_until(self.changed, condition, seconds, lambda: f"{what}; {self.describe()}")

    def wait_end(self, seconds: float = _END_SECONDS) -> int:
        """Wait until the process has ended; returns its exit code."""
        self.wait(lambda: self.has_ended, seconds, f"the end of {self.name}")
        return self._process.returncode

    def describe(self) -> str:
        """Everything that the process has written, for error messages."""
        output, errors = (b"".join(lines).decode(errors="replace") for lines in (self.output, self.errors))
        return f"{self.name} wrote:\n{output}\nand on standard error:\n{errors}"

    def end(self) -> None:
        """Kill the process if it still runs, and wait for its end."""
        if self.is_running:
            self._process.kill()
        self._process.wait(_END_SECONDS)
        for reader in self._readers:
            reader.join(_END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def _read(self, stream: IO[bytes], lines: list[bytes]) -> None:
        for line in stream:
            with self.changed:
                lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()


def wait_until(
    changed: Condition, condition: Callable[[], object], seconds: float, what: Callable[[], str]
) -> None:
    """Wait until a condition holds that lines of processes, their ends or the time make true."""
    deadline = monotonic() + seconds
    with changed:
        while not condition():
            if monotonic() > deadline:
                raise DeadlineExceeded(f"after {seconds:g} s there was not {what()}")
            changed.wait(_POLL_SECONDS)
