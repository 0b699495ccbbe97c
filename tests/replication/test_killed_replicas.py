"""Durable replicas as real processes on a real disk: all of them are killed, or one after the other."""

from pathlib import Path
from random import Random

import pytest

from replication.killed_processes import KilledProcesses, kill_one_by_one

ENOUGH = 8


@pytest.mark.processes
def test_what_was_answered_survives_the_kill_of_all_members(tmp_path: Path) -> None:
    with KilledProcesses(tmp_path) as group:
        group.start()
        group.work(ENOUGH)
        group.kill()
        assert len(group.answered) >= 3 * ENOUGH
        group.start()
        kill_one_by_one(group, Random(1))
