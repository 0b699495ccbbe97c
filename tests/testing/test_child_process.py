"""Child processes: lines in and out, deadlines, and an end by their own ids."""

import os
import signal
import sys

import pytest

from priocast.core.errors import DeadlineExceeded
from priocast.testing.child_process import ChildProcess

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\nsys.exit('the end')"
SLEEP = "import time; time.sleep(600)"

pytestmark = pytest.mark.processes


def child(code: str) -> ChildProcess:
    return ChildProcess("child", [sys.executable, "-c", code])


def test_a_child_reads_and_writes_lines() -> None:
    with child(ECHO) as process:
        process.write_line(b"one")
        process.write_line(b"two")
        process.wait(lambda: len(process.output) == 2, 60, "two lines")
        assert process.output == [b"one\n", b"two\n"]
        assert process.is_running
        process.close_input()
        assert process.wait_end(60) == 1
        assert process.last_error == "the end"


def test_a_deadline_says_what_was_missing() -> None:
    with child(SLEEP) as process, pytest.raises(DeadlineExceeded, match="there was not a line; child wrote"):
        process.wait(lambda: process.output, 0.1, "a line")


def test_a_child_ends_with_its_block_and_others_do_not() -> None:
    with child(SLEEP) as other:
        with child(SLEEP) as process:
            pid = process.pid
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert other.is_running


def test_a_suspended_child_is_ended_too() -> None:
    with child(SLEEP) as process:
        process.send_signal(signal.SIGSTOP)
    assert process.exit_code == -signal.SIGKILL


def test_lines_for_a_child_that_has_ended_are_ignored() -> None:
    with child("pass") as process:
        assert process.wait_end(60) == 0
        process.write_line(b"too late")
        assert "exit code 0" in process.last_error
