"""Calls in several processes: all results, errors of a call, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from priocast.simulation.worker_pool import call_in_processes
from support.waiting import PATIENCE_SECONDS


def test_all_results_come_from_other_processes() -> None:
    powers = call_in_processes([partial(pow, 2, power) for power in range(5)], 2)
    assert sorted(powers) == [1, 2, 4, 8, 16]
    (process,) = call_in_processes([os.getpid], 2)
    assert process != os.getpid()
    assert not list(call_in_processes([], 2))


def test_an_error_of_a_call_ends_the_others() -> None:
    calls = [partial(divmod, 1, 0), *[partial(time.sleep, 600)] * 3]
    with pytest.raises(ZeroDivisionError):
        list(call_in_processes(calls, 2))
    _assert_no_workers_are_left()


def test_whoever_wants_no_more_results_ends_the_calls() -> None:
    calls: list[Callable[[], object]] = [os.getpid, *[partial(time.sleep, 600)] * 3]
    with closing(call_in_processes(calls, 2)) as results:
        next(results)
    _assert_no_workers_are_left()


_NAMES_ITS_WORKERS_AND_IS_KILLED = """
import os, signal, time
from functools import partial
from priocast.simulation.worker_pool import call_in_processes

if __name__ == "__main__":
    results = call_in_processes([os.getpid, os.getpid, *[partial(time.sleep, 600)] * 2], 2)
    print(next(results), next(results), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_when_whoever_wanted_the_results_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(_NAMES_ITS_WORKERS_AND_IS_KILLED)
    ran = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, timeout=PATIENCE_SECONDS)  # noqa: PLW1510
    assert ran.returncode == -signal.SIGKILL
    workers = {int(process) for process in ran.stdout.split()}
    until = time.monotonic() + PATIENCE_SECONDS
    while any(map(_is_running, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    assert workers
    assert not any(map(_is_running, workers))


def _is_running(process: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to take notice."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _assert_no_workers_are_left() -> None:
    """A worker that was not ended would sleep for ten minutes.

    A thread of the pool waits for them, too, so a single call may not see yet how one has ended.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while active_children() and time.monotonic() < until:
        time.sleep(0.01)
    assert not active_children()
