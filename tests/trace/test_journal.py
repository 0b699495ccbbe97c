"""The journal: the rows of a killed process are read, nothing is changed, and damage is noticed."""

import signal
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from priocast.core.errors import UnreadableTrace
from priocast.core.identity import ProcessId
from priocast.trace.journal import Journal, read_rows
from priocast.trace.run_directory import JOURNALS, read_segment, write_segment
from priocast.trace.schema import BROADCAST, SENT, VIEW, GroupEventRow, MessageRow, ServiceRow
from priocast.trace.stored_rows import find_rows
from priocast.trace.writer import TraceWriter
from support.journals import journal_of

_KILLED = """
import sys
from pathlib import Path
from priocast.core.identity import ProcessId
from priocast.trace.schema import BROADCAST, VIEW, GroupEventRow, MessageRow
from priocast.trace.writer import TraceWriter
writer = TraceWriter(Path(sys.argv[1]), "r", ProcessId("a"), journal=True)
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
    journal.add(row(0))
    [path] = (tmp_path / JOURNALS).iterdir()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    journal.remove()


def row(step: int) -> MessageRow:
    """A row that is recognised by its step."""
    of_batch = ("a", 1, 0, step, 1, b"", False, "", "", 0, -1, 8)
    return MessageRow("a", 1, 1, "a#1", step, step, BROADCAST, "", "", *of_batch, 0)


def steps(directory: Path) -> list[int]:
    """The steps of all messages of a run, in segments and in journals."""
    found = find_rows(directory)
    saved = [step for path in found.message_segments for step in read_segment(path)["step"].to_pylist()]
    return saved + [each.step for each in found.journalled_messages]


def contents(directory: Path) -> dict[Path, bytes]:
    """Every file below a directory."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_journal_keeps_the_rows_of_every_table(tmp_path: Path) -> None:
    view = GroupEventRow("a", 1, 1, "a#1", 1, 1, VIEW, members=("a#1",))
    sent = ServiceRow("a", 1, 1, "a#1", 2, 2, SENT, "a", 1, "tight", 1, recipients=("a#1", "b#1"))
    path = journal_of(tmp_path, (row(0), view, sent))
    with path.open("rb") as file:
        assert list(read_rows(file, str(path))) == [row(0), view, sent]
    found = find_rows(tmp_path)
    assert found.journalled_messages == (row(0),)
    assert found.group_events == (view,)
    assert found.journalled_services == (sent,)


def test_every_row_of_a_killed_process_is_read(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        with pytest.raises(UnreadableTrace, match="contains no rows"):
            find_rows(tmp_path)  # the journal of a running process is left alone
        process.send_signal(signal.SIGKILL)
    before = contents(tmp_path)
    assert steps(tmp_path) == [step for step in range(2500) if step != 7]
    (view,) = find_rows(tmp_path).group_events
    assert (view.step, view.members, view.evicted) == (7, ("a#1",), (("b", "slow", ""),))
    assert contents(tmp_path) == before, "reading changes nothing"


def test_a_normal_stop_leaves_no_journal(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "r", ProcessId("a"), journal=True)
    writer.emit(row(0))
    writer.close()
    assert list((tmp_path / JOURNALS).iterdir()) == []
    assert steps(tmp_path) == [0]


def test_an_incarnation_that_is_over_keeps_no_file_open(tmp_path: Path) -> None:
    """A member that is evicted again and again must not run out of descriptors."""
    writer = TraceWriter(tmp_path, "r", ProcessId("a", 1), journal=True)
    writer.emit(row(0))
    [journal] = (tmp_path / JOURNALS).iterdir()
    writer.finish()
    writer._thread.join()
    assert writer.is_complete and not journal.exists()
    assert steps(tmp_path) == [0]
    writer.close()


def test_what_a_segment_has_is_not_taken_from_the_journal(tmp_path: Path) -> None:
    write_segment(tmp_path, "r", "a-1-000000", map(row, range(60)))
    journal_of(tmp_path, map(row, range(100)))
    found = find_rows(tmp_path)
    assert [path.name for path in found.message_segments] == ["a-1-000000.parquet"]
    assert [each.step for each in found.journalled_messages] == list(range(60, 100))


def test_a_process_whose_name_ends_like_an_incarnation_is_another_process(tmp_path: Path) -> None:
    # Found by reading: the segments of the fifth incarnation of a-1 were taken for those of a-1, the first
    # incarnation of a.
    write_segment(tmp_path, "r", "a-1-5-000000", [row(0)._replace(member="a-1", incarnation=5)])
    journal_of(tmp_path, [row(0)])
    assert [each.member for each in find_rows(tmp_path).journalled_messages] == ["a"]


def test_a_row_that_was_not_written_completely_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = journal_of(tmp_path, map(row, range(3)))
    path.write_bytes(path.read_bytes()[:-5])
    assert steps(tmp_path) == [0, 1]
    assert caplog.messages == [], "a process that is killed leaves such a row"


def test_a_damaged_journal_takes_nothing_from_the_segments(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Found by flipping bits: the first rows of the journal replaced all segments, and 100 rows became 42.
    write_segment(tmp_path, "r", "a-1-000000", map(row, range(60)))
    path = journal_of(tmp_path, map(row, range(100)))
    whole = path.read_bytes()
    for at, end in ((len(whole) // 3, 60), (3 * len(whole) // 4, 75)):
        caplog.clear()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert steps(tmp_path) == list(range(end))
        assert f"the record of a-1 ends at step {end}: {path} is damaged at byte" in caplog.text


def test_flipped_bits_of_a_journal_are_noticed(tmp_path: Path) -> None:
    path = journal_of(tmp_path, map(row, range(3)))
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 5):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with path.open("rb") as file, pytest.raises(UnreadableTrace, match="is damaged at byte"):
            list(read_rows(file, str(path)))


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x90", b"\x91\xa1\xff", b"\x91" * 5000, msgspec.msgpack.encode(("a", "b"))]
)
def test_a_row_with_checksums_that_is_none(body: bytes, tmp_path: Path) -> None:
    path = journal_of(tmp_path, [row(0)])
    header = len(body).to_bytes(4) + b"m"
    entry = header + crc32(header).to_bytes(4) + body + crc32(body).to_bytes(4)
    path.write_bytes(path.read_bytes() + entry)
    with path.open("rb") as file, pytest.raises(UnreadableTrace, match="has no row at byte"):
        list(read_rows(file, str(path)))


def test_a_length_that_no_file_has_reserves_no_memory(tmp_path: Path) -> None:
    path = journal_of(tmp_path, [row(0)])
    header = b"\xff\xff\xff\xff" + b"m"
    path.write_bytes(path.read_bytes() + header + crc32(header).to_bytes(4) + b"short")
    tracemalloc.start()
    with path.open("rb") as file:
        assert list(read_rows(file, str(path))) == [row(0)]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_rows_after_a_gap_are_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal_of(tmp_path, map(row, (0, 1, 3, 4)))
    assert steps(tmp_path) == [0, 1]
    assert "the record of a-1 ends at step 2: its journal lacks rows after that" in caplog.text


def test_an_empty_journal_has_no_rows(tmp_path: Path) -> None:
    journal_of(tmp_path, [row(0)]).write_bytes(b"")
    write_segment(tmp_path, "r", "a-1-000000", [row(0)])
    assert steps(tmp_path) == [0]
