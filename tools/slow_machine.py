"""`python -m tools.slow_machine COMMAND…`: run a command as a slower machine would, or a busy one.

The command and all processes that it starts are stopped and continued again and again. By default they run
for 10 ms of every 50: a machine that is five times slower. It costs nothing, and disturbs nobody else on this
machine. With `--one-by-one`, single processes are stopped for up to 0.6 s, as on a busy machine: the others
see them fall behind.

A process that somebody else has stopped, such as a test of pauses, is left alone. Exits as the command does.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

_PAUSES_SECONDS = (0.03, 0.1, 0.3, 0.6)
_BETWEEN_SECONDS_MAX = 0.3


def slow_down(command: list[str], random: Random, run_ms: float, stop_ms: float) -> int:
    """Run a command for about `run_ms`, stop it for about `stop_ms`, and so on; returns its exit code."""
    with subprocess.Popen(command) as process:  # noqa: S603 - the user's own command
        while process.poll() is None:
            time.sleep(_about(run_ms, random))
            with _stopped(_descendants(process.pid)):
                time.sleep(_about(stop_ms, random))
    return process.returncode


def stop_one_by_one(command: list[str], random: Random) -> int:
    """Run a command of which one process at a time is stopped for a while; returns its exit code."""
    with subprocess.Popen(command) as process:  # noqa: S603 - the user's own command
        while process.poll() is None:
            time.sleep(random.uniform(0, _BETWEEN_SECONDS_MAX))
            with _stopped([random.choice([*_descendants(process.pid)])]):
                time.sleep(random.choice(_PAUSES_SECONDS))
    return process.returncode


def _about(milliseconds: float, random: Random) -> float:
    """A time around this one, in seconds: with a fixed rhythm, some timers would never be late."""
    return milliseconds * random.uniform(0.2, 1.8) / 1_000


def _descendants(pid: int) -> Iterator[int]:
    """A process, and all that it has started, directly or not."""
    yield pid
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _descendants(int(child))


@contextmanager
def _stopped(processes: Iterable[int]) -> Iterator[None]:
    """Stop processes that run, and continue them.

    The first is stopped first and continued last: while it does not run, it stops no others itself.
    """
    stopped = [pid for pid in processes if _stop(pid)]
    try:
        yield
    finally:
        for pid in reversed(stopped):
            _send(pid, signal.SIGCONT)


def _stop(pid: int) -> bool:
    """Stop a process; returns whether it ran."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state not in "TtXZ":
            return _send(pid, signal.SIGSTOP)
    return False


def _send(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process; returns whether there is one."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def main() -> int:
    """Run a command slowly; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.slow_machine", description=__doc__)
    parser.add_argument("--run-ms", type=float, default=10.0, help="how long it runs at a time (default: 10)")
    parser.add_argument("--stop-ms", type=float, default=40.0, help="how long it then does not (default: 40)")
    parser.add_argument("--one-by-one", action="store_true", help="stop single processes at random instead")
    parser.add_argument("--seed", type=int, default=1, help="of the times that are drawn (default: 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("name a command, such as: pytest tests/runtime")
    random = Random(arguments.seed)  # noqa: S311 - the seed repeats the times
    if arguments.one_by_one:
        return stop_one_by_one(arguments.command, random)
    return slow_down(arguments.command, random, arguments.run_ms, arguments.stop_ms)


if __name__ == "__main__":
    sys.exit(main())
