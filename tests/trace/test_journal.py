"""The journal: the rows of a killed process are recovered, those of a running one are left alone."""

import signal
import stat
import subprocess
import sys
from pathlib import Path

from priocast.core.identity import ProcessId
from priocast.trace.journal import Journal, recover
from priocast.trace.run_directory import JOURNALS, find_segments, read_group_events
from priocast.trace.schema import BROADCAST, MessageRow
from priocast.trace.writer import TraceWriter

_KILLED = """
import sys
from pathlib import Path
from priocast.core.identity import ProcessId
from priocast.trace.schema import BROADCAST, VIEW, GroupEventRow, MessageRow
from priocast.trace.writer import TraceWriter
writer = TraceWriter(Path(sys.argv[1]), ProcessId("a"), journal=True)
for step in range(2500):
    if step == 7:
        evicted = (("b", "slow", ""),)
        view = GroupEventRow("a", 1, 1, "a#1", step, step, VIEW, members=("a#1",), evicted=evicted)
        writer.emit(view)
        continue
    of_batch = ("a", 1, 0, step, 1, b"", False, "", "", 0, -1, 8)
    writer.emit(MessageRow("a", 1, 1, "a#1", step, step, BROADCAST, "", "", *of_batch, 0))
print("written", flush=True)
sys.stdin.readline()
"""


def test_a_journal_is_private(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "a")
    [path] = (tmp_path / JOURNALS).iterdir()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    journal.remove()


def row(step: int) -> MessageRow:
    """A row that is recognised by its step."""
    of_batch = ("a", 1, 0, step, 1, b"", False, "", "", 0, -1, 8)
    return MessageRow("a", 1, 1, "a#1", step, step, BROADCAST, "", "", *of_batch, 0)


def steps(directory: Path) -> list[int]:
    """The steps of the messages in the segments of a run."""
    from pyarrow import parquet

    return [
        step
        for path in find_segments(directory).messages
        for step in parquet.read_table(path)["step"].to_pylist()
    ]


def test_every_row_of_a_killed_process_is_recovered(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        assert recover(tmp_path) == [], "a running process is left alone"
        process.send_signal(signal.SIGKILL)
    assert recover(tmp_path) == ["a-1"]
    assert steps(tmp_path) == [step for step in range(2500) if step != 7]
    (view,) = read_group_events(find_segments(tmp_path).group_events)
    assert (view.step, view.members, view.evicted) == (7, ("a#1",), (("b", "slow", ""),))
    assert recover(tmp_path) == [], "once is enough"


def test_a_normal_stop_leaves_no_journal(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, ProcessId("a"), journal=True)
    writer.emit(row(0))
    writer.close()
    assert recover(tmp_path) == []
    assert steps(tmp_path) == [0]


def test_a_row_that_was_not_written_completely_is_dropped(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "a-1")
    for step in range(3):
        journal.add(row(step))
    path = next((tmp_path / JOURNALS).glob("*.journal"))
    whole = path.read_bytes()
    journal.remove()
    path.write_bytes(whole[:-5])
    assert recover(tmp_path) == ["a-1"]
    assert steps(tmp_path) == [0, 1]


def test_an_empty_journal_is_removed(tmp_path: Path) -> None:
    (tmp_path / JOURNALS).mkdir()
    (tmp_path / JOURNALS / "a-1.journal").touch()
    assert recover(tmp_path) == ["a-1"]
