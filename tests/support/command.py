"""The command line as a user runs it: in a separate process."""

import subprocess
import sys

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


def command_error(*arguments: str, typed: str = "") -> str:
    """The error of a command that rejects its arguments: exit code 2, and one line."""
    result = priocast(*arguments, typed=typed)
    assert result.returncode == 2, result
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]
