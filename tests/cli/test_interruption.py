"""Ctrl-C, which a terminal sends to every process of a command: one line, and exit code 130."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline.sample_runs import play
from support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.processes

LOADED = "loaded"
#: A background process of a shell, and what it starts, ignores Ctrl-C: a terminal's command does not.
PROGRAM = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from priocast.cli.main import main
print({LOADED!r}, flush=True)
main()
"""
WORK_SECONDS = 2.0


@contextmanager
def started(commands: Sequence[tuple[str, ...]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Commands that have begun, each in a session of its own; none is left behind."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == LOADED
        yield processes
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def children_of(process: int) -> list[int]:
    """The processes that a process has started, by any of its threads."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def test_ctrl_c_ends_every_command_with_one_line(tmp_path: Path) -> None:
    commands = [
        ("simulate", "--seeds", "0:100000", "--jobs", "2"),
        ("explore", "--processes", "3", "--messages", "a:low b:high c:low a:high", "--free-turns"),
        ("send", "tickets", "--peer", "127.0.0.1:9", "two seats please"),
        ("probe", "127.0.0.1:9", "--watch", "0.1"),
        ("demo", "--seconds", "300", "--out", str(tmp_path / "demo")),
        ("verify", str(play(ticks=30).write(tmp_path))),
        ("watch", str(tmp_path)),
    ]
    with started(commands) as processes:
        time.sleep(WORK_SECONDS)  # somewhere in the work: when does not matter
        for process in processes:
            os.killpg(process.pid, signal.SIGINT)
        for command, process in zip(commands, processes, strict=True):
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
            assert (command[0], process.returncode, errors) == (command[0], 130, "interrupted\n")


def test_a_study_that_alone_is_interrupted_ends_its_groups(tmp_path: Path) -> None:
    chosen = ("--order", "token-ring", "--members", "2", "--rates", "10", "--at-once", "2")
    with started([("study", "cost", *chosen, "--out", str(tmp_path))]) as [study]:
        asyncio.run(wait_until(lambda: len(children_of(study.pid)) == 4))
        members = children_of(study.pid)
        time.sleep(WORK_SECONDS)
        study.send_signal(signal.SIGINT)
        study.communicate(timeout=PATIENCE_SECONDS)
        assert study.returncode == 130
        assert not any(Path(f"/proc/{member}").exists() for member in members)
