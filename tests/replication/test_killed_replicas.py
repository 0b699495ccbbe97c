"""Durable replicas as real processes on a real disk: all of them are killed, again and again."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Condition

import pytest

from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess

TESTS = str(Path(__file__).parent.parent)
ROUNDS = 2
ENOUGH = 8
PATIENCE_SECONDS = 60.0


@pytest.mark.processes
def test_what_was_answered_survives_the_kill_of_all_members(tmp_path: Path) -> None:
    answered: set[str] = set()
    for number in range(ROUNDS):
        lines = _killed_after_a_while(tmp_path, first=1_000_000 * number)
        begins = sorted((each[0].split(",")[1:] for each in lines), key=len)
        assert all(each == begins[-1][: len(each)] for each in begins), "prefixes of one history"
        assert len(begins[-1]) == len(set(begins[-1])), "each once"
        assert answered <= set(begins[0]), "answered before, and lost"
        answered.update(line for each in lines for line in each[1:])
    assert len(answered) >= 3 * ENOUGH * ROUNDS


def _killed_after_a_while(directory: Path, first: int) -> list[list[str]]:
    """Start three members, kill them when they have worked, and return the lines that each has written."""
    addresses = [str(address) for address in free_addresses(3)]
    changed = Condition()
    with ExitStack() as stack:
        workers = []
        for name, own in zip("abc", addresses, strict=True):
            peers = [each for each in addresses if each != own]
            module = [sys.executable, "-m", "replication.durable_worker"]
            command = [*module, name, str(directory / name), str(first), own, *peers]
            worker = ChildProcess(name, command, changed=changed, search_path=[TESTS])
            workers.append(stack.enter_context(worker))
        for worker in workers:
            worker.wait(lambda worker=worker: len(worker.output) > ENOUGH, PATIENCE_SECONDS, "work")  # type: ignore[misc]
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            worker.wait_end()
    written = [b"".join(worker.output).decode() for worker in workers]
    return [text[: text.rfind("\n")].split("\n") for text in written]
