"""The durable log: nothing that was synced is lost, a torn tail is trimmed, and damage is never skipped."""

from random import Random

import pytest

from log.simulated_directory import SimulatedDirectory, SimulatedFile
from priocast.core.errors import DamagedLog, LogFault, UnusableLog
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.log.entries import LogEntry, MessageEntry, ViewEntry, decode_entry
from priocast.log.ordered_log import OrderedLog

A = ProcessId("a", 7)


def entry(number: int, size: int = 5) -> LogEntry:
    """The entry with this number: every fourth is a view."""
    if number % 4 == 0:
        return ViewEntry(number, View(number, (A,)))
    return MessageEntry(number, 1, A, 96, number, 96, bytes([number % 251]) * size)


def opened(directory: SimulatedDirectory, segment_bytes: int = 1 << 20, salt: bytes = b"salt") -> OrderedLog:
    return OrderedLog(directory, "g", "a", salt, segment_bytes)


def written(directory: SimulatedDirectory, count: int, segment_bytes: int = 1 << 20) -> OrderedLog:
    log = opened(directory, segment_bytes)
    assert log.recover() == []
    for number in range(count):
        assert log.append(entry(number)) == number
        if number % 3 == 2:
            log.sync()
    assert log.sync() == count
    return log


def only_segment(directory: SimulatedDirectory) -> str:
    (name,) = [name for name in directory.names() if name.endswith(".segment")]
    return name


def with_content(directory: SimulatedDirectory, name: str, content: bytes) -> SimulatedDirectory:
    """A copy of a directory in which one file has this content."""
    copy = SimulatedDirectory()
    copy.files = {each: SimulatedFile(file.content, is_named=True) for each, file in directory.files.items()}
    copy.files[name] = SimulatedFile(content, is_named=True)
    return copy


def test_what_was_written_is_read_again_and_continued() -> None:
    directory = SimulatedDirectory()
    written(directory, 10)
    log = opened(directory)
    assert log.recover() == [entry(number) for number in range(10)]
    assert (log.first, log.next, log.durable, log.snapshot) == (0, 10, 10, None)
    assert log.append(entry(10)) == 10
    assert log.durable == 10
    assert log.sync() == 11
    assert opened(directory).recover() == [entry(number) for number in range(11)]


def test_one_sync_is_for_all_entries_that_were_appended() -> None:
    directory = SimulatedDirectory()
    log = opened(directory)
    log.recover()
    for number in range(100):
        log.append(entry(number))
    assert log.sync() == 100
    assert log.sync() == 100
    assert directory.syncs == 1


def test_entries_that_are_appended_during_a_write_are_not_lost() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 3)
    log.append(entry(3))
    taken = log.take()
    log.append(entry(4))
    assert log.write(taken) == 4
    assert log.sync() == 5
    assert opened(directory).recover() == [entry(number) for number in range(5)]


def test_records_that_were_taken_before_the_log_began_anew_are_dropped() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 3)
    log.append(entry(3))
    taken = log.take()
    log.reset(3, b"state of a peer")
    assert log.write(taken) == 3
    log.append(entry(7))
    assert log.sync() == 4
    assert opened(directory).recover() == [entry(7)]


def test_a_log_that_is_cut_at_any_byte_is_trimmed_to_its_whole_entries() -> None:
    directory = SimulatedDirectory()
    written(directory, 6)
    name = only_segment(directory)
    content = directory.read(name)
    found = set()
    for end in range(len(content)):
        cut = with_content(directory, name, content[:end])
        log = opened(cut)
        entries = log.recover()
        assert entries == [entry(number) for number in range(len(entries))]
        assert log.append(entry(len(entries))) == len(entries)
        log.sync()
        assert opened(cut).recover() == [entry(number) for number in range(len(entries) + 1)]
        found.add(len(entries))
    assert found == set(range(6))


def test_a_log_that_is_flipped_at_any_bit_is_trimmed_at_its_end_or_rejected() -> None:
    directory = SimulatedDirectory()
    written(directory, 6)
    name = only_segment(directory)
    content = directory.read(name)
    outcomes = {"trimmed": 0, "rejected": 0}
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        log = opened(with_content(directory, name, bytes(flipped)))
        try:
            entries = log.recover()
        except DamagedLog:
            outcomes["rejected"] += 1
        else:
            outcomes["trimmed"] += 1
            assert entries == [entry(number) for number in range(5)], "only the last one can be a torn tail"
    last = 8 * (len(content) - _end_of(content, 5))
    assert outcomes == {"trimmed": last, "rejected": 8 * len(content) - last}


def _end_of(content: bytes, count: int) -> int:
    """Where the first `count` records end."""
    directory = SimulatedDirectory()
    written(directory, count)
    return len(directory.read(only_segment(directory)))


@pytest.mark.parametrize("kind", ["identity", "snapshot"])
def test_a_flipped_bit_in_an_identity_or_a_snapshot_is_found(kind: str) -> None:
    directory = SimulatedDirectory()
    written(directory, 4).save_snapshot(b"the state")
    (name,) = [name for name in directory.names() if name.endswith(kind)]
    content = directory.read(name)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LogFault):
            opened(with_content(directory, name, bytes(flipped))).recover()
    for end in range(len(content)):
        with pytest.raises(LogFault):
            opened(with_content(directory, name, content[:end])).recover()


def test_damage_in_a_segment_that_is_not_the_last_is_not_a_torn_tail() -> None:
    directory = SimulatedDirectory()
    written(directory, 9, segment_bytes=1)
    first, second, third = [name for name in directory.names() if name.endswith(".segment")]
    content = directory.read(second)
    with pytest.raises(DamagedLog, match="the log is damaged at byte"):
        opened(with_content(directory, second, content[:-1])).recover()
    del directory.files[second]
    with pytest.raises(DamagedLog, match="lacks the entries 3 to 5"):
        opened(directory).recover()
    del directory.files[first]
    with pytest.raises(DamagedLog, match="lacks the entries 0 to 5"):
        opened(directory).recover()
    assert third in directory.files, "nothing is removed from a damaged log"


def test_records_of_another_log_or_within_a_payload_are_no_records() -> None:
    directory, other = SimulatedDirectory(), SimulatedDirectory()
    written(directory, 4)
    log = opened(other, salt=b"other")
    log.recover()
    log.append(entry(0))
    payload = directory.read(only_segment(directory))
    log.append(MessageEntry(1, 1, A, 96, 1, 96, payload))
    log.sync()
    name = only_segment(other)
    torn = with_content(other, name, other.read(name)[:-1])
    assert opened(torn).recover() == [entry(0)], "the tail is torn: the payload is not taken for a record"
    swapped = with_content(other, name, payload)
    assert opened(swapped).recover() == [], "records of another log have other checksums"


def test_a_snapshot_replaces_what_was_before_it() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 6)
    log.save_snapshot(b"state at 6")
    log.append(entry(6))
    log.sync()
    again = opened(directory)
    assert again.recover() == [entry(6)]
    assert (again.first, again.next, again.snapshot) == (6, 7, b"state at 6")
    again.save_snapshot(b"state at 7")
    assert len(directory.names()) == 4, "segments of before are kept up to the snapshot before"


def test_a_log_can_begin_anew_with_a_state_of_a_peer() -> None:
    directory = SimulatedDirectory()
    written(directory, 6)
    name = only_segment(directory)
    damaged = with_content(directory, name, b"x" + directory.read(name)[1:])
    log = opened(damaged)
    with pytest.raises(DamagedLog):
        log.recover()
    log.reset(3, b"state of a peer")
    assert log.append(entry(3)) == 3
    log.sync()
    again = opened(damaged)
    assert again.recover() == [entry(3)]
    assert (again.first, again.snapshot) == (3, b"state of a peer")


def test_the_log_of_another_member_or_version_is_rejected() -> None:
    directory = SimulatedDirectory()
    written(directory, 1)
    with pytest.raises(
        UnusableLog, match="the log is of a in group 'g', not of b in group 'g': were directories"
    ):
        OrderedLog(directory, "g", "b", b"salt")
    del directory.files["identity"]
    with pytest.raises(DamagedLog, match="the log has no identity"):
        opened(directory)
    foreign = SimulatedDirectory()
    written(foreign, 1)
    foreign.files["notes.txt"] = SimulatedFile(b"x", is_named=True)
    with pytest.raises(DamagedLog, match=r"not of a log: notes\.txt"):
        opened(foreign).recover()


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_a_disk_that_fails_once_ends_the_use_of_the_log(operation: str) -> None:
    directory = SimulatedDirectory()
    log = written(directory, 3)
    log.append(entry(3))
    directory.fails_on = operation
    with pytest.raises(
        UnusableLog, match="the log cannot be written: Input/output error; its member must stop"
    ):
        log.sync()
    directory.fails_on = ""
    for call in (log.sync, lambda: log.append(entry(4)), lambda: log.save_snapshot(b"x"), log.recover):
        with pytest.raises(UnusableLog):
            call()
    assert log.durable == 3


def test_whatever_was_durable_survives_power_cuts() -> None:
    """What is read after random operations is what was written, with all that was durable."""
    for seed in range(300):
        random = Random(seed)
        directory = SimulatedDirectory()
        log, history, durable = opened(directory, 200), list[LogEntry](), 0
        log.recover()
        for _ in range(40):
            match random.choice(["append"] * 6 + ["sync"] * 2 + ["snapshot", "reset", "power"]):
                case "append":
                    history.append(entry(len(history), random.randint(0, 90)))
                    log.append(history[-1])
                case "sync":
                    durable = log.sync()
                    assert durable == len(history)
                case "snapshot":
                    log.save_snapshot(f"state {len(history)}".encode())
                    durable = len(history)
                case "reset":
                    log.reset(len(history), f"state {len(history)}".encode())
                    durable = len(history)
                case "power":
                    if random.random() < 0.5 and log._unwritten:
                        directory.append(
                            f"{log._era:010d}.{log.durable:020d}.segment", b"".join(log._unwritten)
                        )
                    directory.fail_power(random)
                    log = opened(directory, 200)
                    entries = log.recover()
                    assert log.next >= durable, f"seed {seed}: durable entries are lost"
                    assert entries == history[log.first : log.next], f"seed {seed}"
                    if log.snapshot is not None:
                        assert log.snapshot == f"state {log.first}".encode()
                    history, durable = history[: log.next], log.next


def test_a_log_without_a_state_is_trimmed_by_segments() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 60, segment_bytes=200)
    starts = [segment.index for segment in opened(directory, 200).recover_segments()]
    assert len(starts) > 5
    assert log.tail == starts[-1]
    log.trim(starts[3])
    again = opened(directory, 200)
    found = list(again.recover_segments())
    assert [segment.index for segment in found] == starts[3:]
    assert [each for segment in found for each in segment.entries] == [entry(n) for n in range(starts[3], 60)]
    assert (again.first, again.next, again.durable) == (starts[3], 60, 60)
    assert again.read_segment(starts[4]) == found[1]
    again.append(entry(60))
    assert again.sync() == 61
    assert len(opened(directory, 200).recover()) == 61 - starts[3]


def test_a_power_failure_while_a_log_is_trimmed_loses_nothing_that_is_kept() -> None:
    """Files that were removed may be back."""
    directory = SimulatedDirectory()
    log = written(directory, 30, segment_bytes=200)
    starts = [segment.index for segment in opened(directory, 200).recover_segments()]
    before = dict(directory.files)
    log.trim(starts[2])
    directory.files = before | directory.files
    assert opened(directory, 200).recover() == [entry(n) for n in range(starts[2], 30)]


def test_the_entries_since_an_index_are_there_wherever_they_are() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 6, segment_bytes=1)
    log.append(entry(6))
    taken = log.take()
    log.append(entry(7))

    def since(index: int) -> list[LogEntry] | None:
        bodies = log.bodies_since(index)
        return None if bodies is None else [decode_entry(body) for body in bodies]

    for index in range(9):
        assert since(index) == [entry(number) for number in range(index, 8)], (
            "on disk, in between, not written"
        )
    log.write(taken)
    assert since(4) == [entry(number) for number in range(4, 8)]
    log.save_snapshot(b"state at 8")
    log.append(entry(8))
    assert since(2) == [entry(number) for number in range(2, 9)], "until the snapshot after this one"
    log.save_snapshot(b"state at 9")
    assert (since(7), since(8), since(9), since(10)) == (None, [entry(8)], [], None)
    log.append(entry(9))
    log.take()
    log.reset(4, b"state of a peer")
    assert (since(3), since(4)) == (None, [])
    log.append(entry(4))
    assert since(4) == [entry(4)]


def test_what_was_promised_is_never_less_again() -> None:
    directory = SimulatedDirectory()
    log = written(directory, 3)
    log.promise(7)
    log.promise(5)
    log.reset(1, b"state of a peer")
    again = opened(directory)
    again.recover()
    assert again.promised == 7
    del directory.files["promise"]
    with pytest.raises(DamagedLog, match="the promise of the log is damaged or missing"):
        opened(directory).recover()
