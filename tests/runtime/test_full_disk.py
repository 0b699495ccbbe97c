"""A full disk under the state directory and the trace: the members go on, say so, and recover."""

import os
import subprocess
import sys
from pathlib import Path

from priocast.trace.recorded_run import RecordedRun, open_run
from priocast.trace.schema import BROADCAST


def run_scenario(name: str, directory: Path) -> RecordedRun:
    """Run a scenario in a process of its own, and read the trace that it leaves."""
    command = [sys.executable, "-m", "runtime.full_disk_worker", name, str(directory)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return open_run(directory / "run")


def broadcasts(run: RecordedRun) -> list[int]:
    """The numbers of the messages that the trace says a broadcast."""
    rows = run.messages(event=BROADCAST, member="a")
    return [number for row in rows for number in range(row.first, row.first + row.count)]


def test_the_trace_is_complete_if_there_is_room_again(tmp_path: Path) -> None:
    assert broadcasts(run_scenario("recovers", tmp_path)) == list(range(200))


def test_a_record_that_cannot_be_written_for_too_long_ends_without_a_gap(tmp_path: Path) -> None:
    run = run_scenario("record_ends", tmp_path)
    numbers = broadcasts(run)
    assert numbers == list(range(len(numbers))) and len(numbers) > 20
    steps = [row.step for row in run.messages(member="a")]
    steps += [row.step for row in run.group_events if row.member == "a"]
    assert sorted(steps) == list(range(len(steps))), "a prefix of the record"


def test_an_evicted_member_rejoins_with_a_number_that_is_stored_later(tmp_path: Path) -> None:
    run = run_scenario("rejoins", tmp_path)
    assert len({row.incarnation for row in run.group_events if row.member == "c"}) == 2
