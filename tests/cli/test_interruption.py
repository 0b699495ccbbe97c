"""Ctrl-C, which a terminal sends to every process of a command: one line, and exit code 130."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.sample_runs import play
from support.waiting import PATIENCE_SECONDS

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
    started = [
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
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == LOADED
        time.sleep(WORK_SECONDS)  # somewhere in the work: when does not matter
        for process in started:
            os.killpg(process.pid, signal.SIGINT)
        for command, process in zip(commands, started, strict=True):
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
            assert (command[0], process.returncode, errors) == (command[0], 130, "interrupted\n")
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
