"""What a feed keeps: messages by position, trimmed by segments, and the same after a restart."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.simulated_directory import SimulatedDirectory
from priocast.core.errors import DamagedLog, LogFault, TrimmedPosition, UnavailableFeed, UnusableLog
from priocast.core.identity import ProcessId
from priocast.feed.feed_files import FeedFiles
from priocast.feed.feed_log import FeedLog
from priocast.log.disk_directory import DiskDirectory
from priocast.log.entries import MessageEntry

A = ProcessId("a", 7)


def message(position: int, size: int = 10) -> MessageEntry:
    return MessageEntry(position, 1, A, 96, position, 96, bytes([position % 251]) * size)


def opened(directory: SimulatedDirectory | DiskDirectory, segments: int = 1000) -> FeedLog:
    return FeedLog(directory, ("g", "a"), b"salt", keep_bytes=segments * 300, segment_bytes=300)


def positions_of(kept: FeedLog) -> list[int]:
    first, found = kept.begin, []
    while first < kept.end:
        messages, first = kept.read(first, 7, 1 << 20)
        found += [each.position for each in messages]
    return found


@given(st.lists(st.lists(st.integers(1, 4), max_size=9), max_size=12), st.booleans())
def test_every_message_is_read_at_its_position_after_any_restart(
    parts: list[list[int]], restarts: bool
) -> None:
    """Positions may be left out: those of messages for other members."""
    directory = SimulatedDirectory()
    kept, expected, position = opened(directory), [], -1
    for steps in parts:
        new = []
        for step in steps:
            position += step
            new.append(message(position))
        expected += [each.position for each in new]
        kept.append(new, position + 1)
        if restarts:
            directory.fail_power(Random(1))
            kept = opened(directory)
        assert positions_of(kept) == expected
    assert (kept.begin, kept.end) == (0, position + 1)


def test_a_part_ends_at_its_limits_and_has_one_message_at_least() -> None:
    kept = opened(SimulatedDirectory())
    kept.append([message(0, 50), message(1, 50), message(5, 50)], 9)
    assert kept.read(0, 2, 1000) == ([message(0, 50), message(1, 50)], 2)
    assert kept.read(0, 10, 60) == ([message(0, 50)], 1)
    assert kept.read(1, 10, 1) == ([message(1, 50)], 2)
    assert kept.read(2, 10, 1000) == ([message(5, 50)], 9)
    assert kept.read(9, 10, 1000) == ([], 9)


def test_the_oldest_segments_are_trimmed_and_reading_them_says_so() -> None:
    directory = SimulatedDirectory()
    kept = opened(directory, segments=3)
    for position in range(100):
        kept.append([message(position)], position + 1)
    assert 0 < kept.begin < kept.end == 100
    assert positions_of(kept) == list(range(kept.begin, 100))
    with pytest.raises(TrimmedPosition, match=f"begins at {kept.begin}"):
        kept.read(kept.begin - 1, 1, 1)
    directory.fail_power(Random(1))
    again = opened(directory, segments=3)
    assert (again.begin, again.end) == (kept.begin, 100)
    assert positions_of(again) == positions_of(kept)


def test_a_feed_can_begin_anywhere() -> None:
    directory = SimulatedDirectory()
    kept = opened(directory)
    kept.append([message(0)], 1)
    kept.start_at(50)
    assert (kept.begin, kept.end, kept.is_empty) == (50, 50, True)
    kept.append([message(52)], 53)
    directory.fail_power(Random(1))
    again = opened(directory)
    assert (again.begin, again.end, positions_of(again)) == (50, 53, [52])


def test_the_directory_of_a_running_feed_can_be_read(tmp_path: Path) -> None:
    kept = opened(DiskDirectory(tmp_path / "feed"))
    files = FeedFiles("g", tmp_path / "feed")
    kept.append([message(position) for position in range(40)], 40)
    before = sorted((path.name, path.read_bytes()) for path in (tmp_path / "feed").iterdir())
    assert files.widest_range() == (0, 40)
    assert [each.position for part in files.read(5, 31) for each in part] == list(range(5, 31))
    assert sorted((path.name, path.read_bytes()) for path in (tmp_path / "feed").iterdir()) == before
    kept.append([message(40)], 41)
    assert files.widest_range() == (0, 41)
    with pytest.raises(UnavailableFeed, match="up to position 41, not 42"):
        list(files.read(0, 42))


def messages_or_fault(files: FeedFiles) -> list[MessageEntry] | str:
    """All messages, or the error."""
    try:
        return [each for part in files.read(*files.widest_range()) for each in part]
    except LogFault as error:
        return str(error)


def test_a_flipped_bit_is_named_and_never_reads_as_other_messages(tmp_path: Path) -> None:
    """Where the last segment may as well be an interrupted write, a feed that was not closed ends there."""
    expected = [message(position) for position in range(40)]
    kept = opened(DiskDirectory(tmp_path / "feed"))
    for each in expected:
        kept.append([each], each.position + 1)
    files = FeedFiles("g", tmp_path / "feed")
    segments = sorted((tmp_path / "feed").glob("*.segment"))
    assert len(segments) > 2 and messages_or_fault(files) == expected
    for path in segments:
        whole = path.read_bytes()
        for index in range(0, len(whole), 7):
            path.write_bytes(whole[:index] + bytes([whole[index] ^ 1 << index % 8]) + whole[index + 1 :])
            found = messages_or_fault(files)
            if isinstance(found, str):
                assert path.name in found
            else:
                assert path == segments[-1] and found == expected[: len(found)]
        path.write_bytes(whole)


def test_what_was_cut_from_a_feed_that_was_closed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    kept = opened(DiskDirectory(path))
    for position in range(40):
        kept.append([message(position)], position + 1)
    kept.close()
    files = FeedFiles("g", path)
    expected = messages_or_fault(files)
    assert len(expected) == 40
    segment = max(path.glob("*.segment"))
    whole = segment.read_bytes()
    for size in range(len(whole)):
        segment.write_bytes(whole[:size])
        found = messages_or_fault(files)
        assert isinstance(found, str) and f"{segment.name} was cut" in found
    with pytest.raises(DamagedLog, match="was cut"):
        opened(DiskDirectory(path))
    segment.unlink()
    assert "what followed it is missing" in messages_or_fault(files)
    segment.write_bytes(whole)
    assert messages_or_fault(files) == expected


def test_a_damaged_record_of_the_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    opened(DiskDirectory(path)).close()
    (path / "end").write_bytes((path / "end").read_bytes()[:-1])
    assert "where the log ended is damaged" in messages_or_fault(FeedFiles("g", path))


def test_a_feed_goes_on_where_it_was_closed_and_forgets_that_end() -> None:
    """Its last positions have no message here, which only the record of its end can tell."""
    directory = SimulatedDirectory()
    kept = opened(directory)
    kept.append([message(0)], 5)
    kept.close()
    kept = opened(directory)
    assert (kept.begin, kept.end) == (0, 5)
    kept.append([message(7)], 8)
    directory.fail_power(Random(1))
    kept = opened(directory)
    assert (kept.begin, kept.end, positions_of(kept)) == (0, 8, [0, 7])


def test_a_feed_whose_disk_failed_is_closed_without_an_end() -> None:
    directory = SimulatedDirectory()
    kept = opened(directory)
    kept.append([message(0)], 1)
    directory.fails_on = "append"
    with pytest.raises(UnusableLog):
        kept.append([message(1)], 2)
    kept.close()
    assert "end" not in directory.names()


def test_the_directory_of_something_else_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnusableLog, match="not the directory of a feed"):
        FeedFiles("g", tmp_path).widest_range()
    opened(DiskDirectory(tmp_path / "feed"))
    with pytest.raises(UnusableLog, match="of group 'g', not of 'other'"):
        FeedFiles("other", tmp_path / "feed").widest_range()
