"""The command line as a user runs it: in a separate process, or in this one where that makes no difference.

A process that loads all commands takes 0.7 s of processor time to start, a Spark of its own half a minute.
So what rejects its arguments, and what measures on Spark, runs in the process of the test.
"""

import logging
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from priocast.cli.main import main

_LIMIT_SECONDS = 240


def start(*arguments: str) -> "subprocess.Popen[str]":
    """Start `priocast` with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-c", "from priocast.cli.main import main; main()", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def priocast(*arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run `priocast` with these arguments and this standard input, to its end."""
    with start(*arguments) as process:
        try:
            out, err = process.communicate(typed, timeout=_LIMIT_SECONDS)
        finally:
            process.kill()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def priocast_here(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `priocast` with these arguments in this process, and with its Spark session if there is one."""
    out, err = StringIO(), StringIO()
    handlers = list(logging.root.handlers)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["priocast", *arguments])
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            logging.root.handlers[:] = handlers
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def command_error(*arguments: str, in_process: bool = True) -> str:
    """The error of a command that rejects its arguments: exit code 2, and one line.

    What reads standard input before that needs a process of its own.
    """
    result = priocast_here(*arguments) if in_process else priocast(*arguments)
    assert result.returncode == 2, result
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]
