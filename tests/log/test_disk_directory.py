"""The directory on a real disk: what the log needs of it, and one process at a time."""

from pathlib import Path

import pytest

from log.test_ordered_log import entry
from priocast.core.errors import UnusableLog
from priocast.log.disk_directory import DiskDirectory
from priocast.log.ordered_log import OrderedLog


def test_a_log_on_disk_is_read_again(tmp_path: Path) -> None:
    log = OrderedLog(DiskDirectory(tmp_path / "log"), "g", "a", b"salt", segment_bytes=100)
    assert log.recover() == []
    for number in range(20):
        log.append(entry(number))
        log.sync()
    log.close()
    segments = sorted((tmp_path / "log").glob("*.segment"))
    assert len(segments) > 2
    with segments[-1].open("ab") as file:
        file.write(b"torn")
    log = OrderedLog(DiskDirectory(tmp_path / "log"), "g", "a", b"other salt")
    assert log.recover() == [entry(number) for number in range(20)]
    log.save_snapshot(b"state")
    log.append(entry(20))
    log.sync()
    log.close()
    assert all(path in segments for path in (tmp_path / "log").glob("*.segment") if "20.seg" not in path.name)
    log = OrderedLog(DiskDirectory(tmp_path / "log"), "g", "a", b"salt")
    assert (log.recover(), log.snapshot, log.first) == ([entry(20)], b"state", 20)
    log.close()


def test_one_process_uses_a_log_at_a_time(tmp_path: Path) -> None:
    directory = DiskDirectory(tmp_path)
    with pytest.raises(UnusableLog, match="another process uses the log in"):
        DiskDirectory(tmp_path)
    directory.close()
    DiskDirectory(tmp_path).close()


def test_a_directory_that_cannot_be_made_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableLog, match="cannot keep a log in"):
        DiskDirectory(tmp_path / "file" / "log")
