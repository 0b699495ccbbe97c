"""The writer: rows reach the disk in order and completely, and errors of the disk are reported."""

import errno
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from priocast.core.identity import ProcessId
from priocast.trace import writer
from priocast.trace.columns import GROUP_EVENTS, MESSAGES
from priocast.trace.journal import Journal
from priocast.trace.run_directory import find_segments, read_group_events, write_table
from priocast.trace.schema import SENT, STATE, GroupEventRow, MessageRow, ServiceRow
from priocast.trace.stored_rows import find_rows
from priocast.trace.writer import TraceWriter
from support.waiting import PATIENCE_SECONDS

ME = ProcessId("a", 7)
SECOND = 1_000_000_000


def _row(step: int, time_ns: int = 0) -> MessageRow:
    of_batch = ("b", 1, 7, step, 1, b"", False, "", "", 0, step, 10)
    return MessageRow("a", 7, 1, "a#7", step, time_ns, "delivered", "", "", *of_batch, 0)


@pytest.fixture(autouse=True)
def few_chunks_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_CHUNKS_WAITING_MAX", 4)


def _steps(directory: Path) -> list[list[int]]:
    return [parquet.read_table(path).column("step").to_pylist() for path in find_segments(directory).messages]


def test_rows_are_on_disk_in_order_when_the_writer_is_closed(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "r", ME)
    for step in range(5):
        trace.emit(_row(step))
    trace.close()
    assert _steps(tmp_path) == [[0, 1, 2, 3, 4]]
    assert [path.name for path in (tmp_path / MESSAGES).iterdir()] == ["a-7-000000.parquet"]


def test_group_events_are_written_to_their_own_table(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "r", ME)
    state = GroupEventRow("a", 7, 1, "a#7", 1, 0, STATE, position=3, state_bytes=100)
    for row in (_row(0), state, _row(2)):
        trace.emit(row)
    trace.close()
    assert _steps(tmp_path) == [[0, 2]]
    assert read_group_events(find_segments(tmp_path).group_events) == [state]
    assert [path.name for path in (tmp_path / GROUP_EVENTS).iterdir()] == ["a-7-000000.parquet"]


def test_services_are_written_to_their_own_table(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "r", ME)
    sent = ServiceRow("a", 7, 1, "a#7", 1, 0, SENT, "a", 7, "atomic", 1, units=1, quality="atomic")
    for row in (_row(0), sent, _row(2)):
        trace.emit(row)
    trace.close()
    assert _steps(tmp_path) == [[0, 2]]
    (path,) = find_segments(tmp_path).services
    assert parquet.read_table(path).column("step").to_pylist() == [1]


def test_every_row_has_its_run_and_can_be_placed_in_time(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "tuesday", ME)
    started = time.time_ns()
    trace.emit(_row(0, time.monotonic_ns()))
    trace.emit(GroupEventRow("a", 7, 1, "a#7", 1, time.monotonic_ns(), STATE))
    trace.close()
    for (segment,) in find_segments(tmp_path)[:2]:
        [row] = parquet.read_table(segment).to_pylist()
        assert row["run"] == "tuesday"
        assert started - SECOND < row["time_ns"] + row["clock_offset_ns"] < time.time_ns() + SECOND


def test_many_rows_make_several_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 2)
    monkeypatch.setattr(writer, "_SEGMENT_CHUNKS", 2)
    trace = TraceWriter(tmp_path, "r", ME)
    for step in range(11):
        trace.emit(_row(step))
    trace.close()
    assert _steps(tmp_path) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


def test_a_long_time_makes_several_segments(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "r", ME)
    for step, seconds in enumerate((0, 1, 2, 3, 4, 5)):
        trace.emit(_row(step, seconds * SECOND))
    trace.close()
    assert _steps(tmp_path) == [[0, 1, 2], [3, 4, 5]]


def test_members_that_start_together_do_not_write_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 1)
    lengths: dict[str, list[int]] = {}
    for name in "abcd":
        trace = TraceWriter(tmp_path / name, "r", ProcessId(name))
        for step in range(60):
            trace.emit(_row(step, step * SECOND // 10))
        trace.close()
        lengths[name] = [len(steps) for steps in _steps(tmp_path / name)]
    assert len({first for first, *_ in lengths.values()}) == 4, "at four different times"
    assert all(second == 21 for _, second, *_ in lengths.values()), "and then every two seconds"


_MODULES_IMPORTED_WHILE_WRITING = """
import sys
from pathlib import Path
from priocast.core.identity import ProcessId
from priocast.trace.schema import STATE, GroupEventRow, MessageRow
from priocast.trace.writer import TraceWriter

trace = TraceWriter(Path(sys.argv[1]), "r", ProcessId("a", 7))
before = set(sys.modules)
of_batch = ("b", 1, 7, 0, 1, b"", False, "", "", 0, 0, 10)
trace.emit(MessageRow("a", 7, 1, "a#7", 0, 0, "delivered", "", "", *of_batch, 0))
trace.emit(GroupEventRow("a", 7, 1, "a#7", 1, 0, STATE, position=3, state_bytes=100))
trace.close()
print(sorted(set(sys.modules) - before))
"""


def test_everything_is_imported_before_the_first_message(tmp_path: Path) -> None:
    """An import of pandas in the thread takes the interpreter for a third of a second."""
    command = [sys.executable, "-c", _MODULES_IMPORTED_WHILE_WRITING, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert ran.stdout == "[]\n"


def test_nothing_emitted_writes_nothing(tmp_path: Path) -> None:
    TraceWriter(tmp_path, "r", ME).close()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_disk_is_raised_when_the_writer_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 1)
    (tmp_path / MESSAGES).write_text("a file in place of the directory of segments")
    trace = TraceWriter(tmp_path, "r", ME)
    for step in range(3 * writer._CHUNKS_WAITING_MAX):
        trace.emit(_row(step))
    with pytest.raises(FileExistsError):
        trace.close()


def test_any_other_error_is_raised_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Found by reading: only OSError was kept. Any other error ended the thread silently, the rows were lost,
    # and once enough of them waited, the driver waited for the dead thread for ever.
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 1)
    trace = TraceWriter(tmp_path, "r", ME)
    for step in range(3 * writer._CHUNKS_WAITING_MAX):
        trace.emit(_row(step)._replace(level=2**40))
    with pytest.raises(ValueError, match="too large"):
        trace.close()


def test_the_first_error_is_the_one_that_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 1)
    monkeypatch.setattr(writer, "_SEGMENT_CHUNKS", 1)
    failures = iter([OSError("first"), OSError("second")])

    def fail(directory: Path, name: str, kind: type, table: object) -> None:
        raise next(failures)

    monkeypatch.setattr(writer, "write_table", fail)
    trace = TraceWriter(tmp_path, "r", ME)
    trace.emit(_row(0))
    trace.emit(_row(1))
    with pytest.raises(OSError, match="first"):
        trace.close()


class FullDisk:
    """A disk on which files can grow while `has_room`; `attempts` counts the segments that had no room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_room = False
        self.attempts = 0
        add = Journal.add

        def add_if_room(journal: Journal, row: MessageRow) -> None:
            self._check()
            add(journal, row)

        def write_if_room(*arguments: Any) -> None:
            self.attempts += not self.has_room
            self._check()
            write_table(*arguments)

        monkeypatch.setattr(Journal, "add", add_if_room)
        monkeypatch.setattr(writer, "write_table", write_if_room)

    def _check(self) -> None:
        if not self.has_room:
            raise OSError(errno.ENOSPC, "No space left on device")


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.003)


def test_rows_that_the_journal_lacks_are_in_segments_as_soon_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Found in a soak: members that were killed seconds after their disk had been full had records that ended
    # when it became full. The rows that the journal lacked waited for the next segment.
    monkeypatch.setattr(writer, "_RETRY_SECONDS", 1_000.0)
    disk = FullDisk(monkeypatch)
    trace = TraceWriter(tmp_path, "r", ME, journal=True)
    trace.emit(_row(0))
    _wait(lambda: disk.attempts)
    for step in range(1, 5):
        trace.emit(_row(step))
    disk.has_room = True
    for step in range(5, 9):
        trace.emit(_row(step))
    _wait(lambda: _steps(tmp_path) == [[0], [1, 2, 3, 4, 5]])
    left = tmp_path / "left by a killed process"
    shutil.copytree(tmp_path, left, ignore=shutil.ignore_patterns(left.name))
    assert [row.step for row in find_rows(left).journalled_messages] == [6, 7, 8]
    trace.close()


def test_a_disk_that_is_found_to_be_full_while_the_driver_waits_does_not_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Found by a test of a whole group: the driver waited for a slow thread, which then found the disk
    # full, and tried again for ever. The member stood still until there was room.
    monkeypatch.setattr(writer, "_CHUNK_ROWS", 1)
    monkeypatch.setattr(writer, "_SEGMENT_CHUNKS", 1)
    monkeypatch.setattr(writer, "_RETRY_SECONDS", 1_000.0)
    driver_waits = threading.Event()

    def fail_when_the_driver_waits(*_arguments: Any) -> None:
        driver_waits.wait(PATIENCE_SECONDS)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer, "write_table", fail_when_the_driver_waits)
    trace = TraceWriter(tmp_path, "r", ME)
    threading.Timer(0.1, driver_waits.set).start()
    emitted = 3 * writer._CHUNKS_WAITING_MAX
    for step in range(emitted):
        trace.emit(_row(step))
    assert trace.waited, "the thread was slow first, and then had no room"
    assert 0 < trace.lost < emitted
    assert "No space left on device" in trace.problem
    with pytest.raises(OSError, match="No space left"):
        trace.close()
