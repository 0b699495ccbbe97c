"""The imitation of a slow machine: what it stops goes on, and what others have stopped does not."""

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tools.slow_machine import slow_down, stop_one_by_one

STOP_MS = 50.0
#: A parent and its child each run until they notice that they were stopped.
PROGRAM = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, __file__, "child", sys.argv[1]]) if len(sys.argv) == 2 else None
last = began = time.monotonic()
while (now := time.monotonic()) - last < float(sys.argv[-1]) and now - began < 60:
    last = now
print(now - began < 60, flush=True)
sys.exit(child.wait() if child else 3)
"""
STARTS_STOPPED = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
os.waitpid(child.pid, os.WUNTRACED)
time.sleep(0.5)
child.kill()
"""


@pytest.mark.processes
def test_a_command_and_what_it_starts_are_stopped_and_end_as_they_would(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(0.2 * STOP_MS / 1_000)]
    assert slow_down(command, Random(1), run_ms=10, stop_ms=STOP_MS) == 3
    assert capfd.readouterr().out.split() == ["True", "True"], "both were stopped"


@pytest.mark.processes
@pytest.mark.parametrize("way", ["all", "one by one"])
def test_a_process_that_another_one_has_stopped_stays_stopped(tmp_path: Path, way: str) -> None:
    """It would write a file when it is continued."""
    written = tmp_path / "written"
    stopped = f"import os, signal; os.kill(os.getpid(), signal.SIGSTOP); open({str(written)!r}, 'w')"
    command = [sys.executable, "-c", STARTS_STOPPED, stopped]
    random = Random(2)
    code = stop_one_by_one(command, random) if way == "one by one" else slow_down(command, random, 10, 40)
    assert (code, written.exists()) == (0, False)


def test_a_command_must_be_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.slow_machine"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "name a command" in done.stderr


def test_the_signal_that_ends_a_command_is_its_exit_code() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert slow_down([sys.executable, "-c", program], Random(3), 10, 10) == -signal.SIGTERM
