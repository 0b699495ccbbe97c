"""The journal: what a killed process recorded is not lost, and what a living one records is left alone."""

import signal
import subprocess
import sys
from pathlib import Path

from priocast.core.identity import ProcessId
from priocast.trace.journal import Journal, recover
from priocast.trace.run_directory import segments
from priocast.trace.schema import BROADCAST, Row
from priocast.trace.writer import TraceWriter

_KILLED = """
import sys
from pathlib import Path
from priocast.core.identity import ProcessId
from priocast.trace.schema import BROADCAST, Row
from priocast.trace.writer import TraceWriter
writer = TraceWriter(Path(sys.argv[1]), ProcessId("a"), journal=True)
for step in range(2500):
    of_batch = ("a", 1, 0, step, 1, b"", False, "", -1, 8)
    writer.emit(Row("a", 1, 1, "a#1", step, step, BROADCAST, "", "", *of_batch, 0, ""))
print("written", flush=True)
sys.stdin.readline()
"""


def row(step: int) -> Row:
    """A row that tells which it is."""
    of_batch = ("a", 1, 0, step, 1, b"", False, "", -1, 8)
    return Row("a", 1, 1, "a#1", step, step, BROADCAST, "", "", *of_batch, 0, "")


def steps(directory: Path) -> list[int]:
    """Which rows the segments of a run hold."""
    from pyarrow import parquet

    return [step for path in segments(directory) for step in parquet.read_table(path)["step"].to_pylist()]


def test_a_killed_process_leaves_every_row_it_recorded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        assert recover(tmp_path) == [], "a living process is left alone"
        process.send_signal(signal.SIGKILL)
    assert recover(tmp_path) == ["a-1"]
    assert steps(tmp_path) == list(range(2500))
    assert recover(tmp_path) == [], "once is enough"


def test_an_orderly_end_leaves_no_journal(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, ProcessId("a"), journal=True)
    writer.emit(row(0))
    writer.close()
    assert recover(tmp_path) == []
    assert steps(tmp_path) == [0]


def test_a_row_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "a-1")
    for step in range(3):
        journal.add(row(step))
    path = next((tmp_path / "events").glob("*.journal"))
    whole = path.read_bytes()
    journal.remove()
    path.write_bytes(whole[:-5])
    assert recover(tmp_path) == ["a-1"]
    assert steps(tmp_path) == [0, 1]


def test_an_empty_journal_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a-1.journal").touch()
    assert recover(tmp_path) == ["a-1"]
