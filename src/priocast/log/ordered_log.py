"""The durable ordered log of one member: segments of records, and the snapshot that they follow.

    identity                         whose log this is, and its salt
    promise                          the last generation that the member took part in
    end                              where the log ended when it was closed, if that is known
    <era>.<index>.snapshot           the state before the entry with this index
    <era>.<index>.segment            entries from this index on

Entries are numbered without gaps. They are durable when `sync` has returned: one sync for as many as were
appended before. A snapshot replaces everything before it; the segments since the one before are kept, for
members that were away and lack their entries only (`bodies_since`). Opening a log trims a torn tail. Damage
anywhere else raises DamagedLog: nothing is ever skipped. A torn tail and a last segment that was cut later
look alike; in a log that was closed with `record_end`, only the latter is possible, and it is damage, too.
`reset` begins a new *era*, with a snapshot that a peer gave; files of earlier eras do not count from then on.

After an operation of the file system has failed, nothing is known of what is on the disk. The log cannot be
used any more then, and its member must stop: a sync that is repeated may succeed although data was lost.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from zlib import crc32

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import DamagedLog, ForeignFrame, UnusableLog
from priocast.core.identity import Name, Number
from priocast.log.directory import LogDirectory
from priocast.log.entries import LogEntry, decode_entry, encode_entry
from priocast.log.log_files import SEGMENT, SNAPSHOT, LogFile, file_of, is_kept
from priocast.log.records import encode_record, scan_records

SEGMENT_BYTES = 64 * 1024 * 1024
_VERSION = 2
_IDENTITY, _PROMISE, _END = "identity", "promise", "end"


class LogIdentity(msgspec.Struct, frozen=True, array_like=True):
    """Whose log it is; `salt` are random bytes that no other log has."""

    version: Number
    group: Name
    member: Name
    salt: Annotated[bytes, msgspec.Meta(max_length=64)]


class UnwrittenRecords(msgspec.Struct, frozen=True):
    """Encoded records of an era, from the entry `first` on."""

    era: int
    first: int
    records: list[bytes]


class LogSegment(msgspec.Struct, frozen=True):
    """Consecutive entries, of which the first has this index."""

    index: int
    entries: list[LogEntry]


class LogEnd(msgspec.Struct, frozen=True, array_like=True):
    """Where a log ended when it was closed: the index of the next entry, and what its owner noted."""

    index: Number
    note: bytes


_decode_identity = msgspec.msgpack.Decoder(LogIdentity).decode
_decode_end = msgspec.msgpack.Decoder(LogEnd).decode


class OrderedLog:
    """A log that is open: `recover` comes first.

    `snapshot` is the state before the entry `first`; None if the log begins with the group. `next` is the
    index of the next entry. `durable`: the entries below this index are on the disk. `salt` are random bytes
    that no other log has. `promised` is the last generation that the member took part in. `note` is what was
    recorded with the end of the log when it was closed.
    """

    def __init__(
        self,
        directory: LogDirectory,
        group: str,
        member: str,
        new_salt: bytes,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self.first = self.next = self.durable = 0
        self.snapshot: bytes | None = None
        self.note = b""
        self._broken: UnusableLog | None = None
        self._era = 0
        self._segment: LogFile | None = None
        self._segment_size = 0
        self._unwritten: list[bytes] = []
        self._taken = UnwrittenRecords(0, 0, [])
        self.promised = 0
        with self._guarded("be opened"):
            self.salt = self._identify(LogIdentity(_VERSION, group, member, new_salt))
        self._salt = crc32(self.salt)

    @property
    def tail(self) -> int:
        """The index that the newest segment begins with."""
        return self._segment.index if self._segment is not None else self.first

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """An operation on files: after an error, the log cannot be used any more."""
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            self._broken = UnusableLog(f"the log cannot {what}: {reason}; its member must stop")
            raise self._broken from error

    # Opening

    def _identify(self, identity: LogIdentity) -> bytes:
        """Check whose log this is, or make it this member's; return its salt."""
        names = self._directory.names()
        if _IDENTITY not in names:
            if names:
                raise DamagedLog(f"the log has no identity, but {names[0]}: restore it, or remove everything")
            self._directory.replace(_IDENTITY, encode_record(0, msgspec.msgpack.encode(identity), 0))
            return identity.salt
        found = identity_of(self._directory)
        if (found.group, found.member) != (identity.group, identity.member):
            raise UnusableLog(
                f"the log is of {found.member} in group {found.group!r}, not of {identity.member} in group "
                f"{identity.group!r}: were directories swapped?"
            )
        return found.salt

    def recover(self) -> list[LogEntry]:
        """The entries after the snapshot; a torn tail is trimmed. Raises DamagedLog if anything else is."""
        return [entry for segment in self.recover_segments() for entry in segment.entries]

    def recover_segments(self) -> Iterator["LogSegment"]:
        """`recover`, for a log that is too large for the memory: one segment at a time, to the last."""
        with self._guarded("be read"):
            self._recover_promise()
            end = self._read_end()
            files = self._files()
            snapshots = [file for file in files if file.kind == SNAPSHOT]
            if snapshots:
                self._recover_snapshot(snapshots[-1])
            segments = [
                file
                for file in files
                if file.kind == SEGMENT and file.era == self._era and file.index >= self.first
            ]
            for file in segments:
                entries = self._recover_segment(file, is_last=file == segments[-1])
                yield LogSegment(file.index, entries)
            if end is not None:
                self._check_end(end)
            for file in files:
                is_needed = file.kind == SEGMENT or file.index == self.first
                if file.era != self._era or not is_needed:
                    self._directory.remove(file.name)
            self.durable = self.next

    def read_segment(self, index: int) -> "LogSegment":
        """The entries of the segment that begins with this index, as far as they are durable."""
        with self._guarded("be read"):
            data = self._directory.read(LogFile(self._era, index, SEGMENT).name)
        records = scan_records(data, index, self._salt).records
        return LogSegment(index, [decode_entry(record.body) for record in records])

    def _files(self) -> list[LogFile]:
        names = self._directory.names()
        return sorted(file_of(name) for name in names if name not in (_IDENTITY, _PROMISE, _END))

    def _recover_promise(self) -> None:
        """Read the promise, which every log has from its first day on."""
        names = self._directory.names()
        if names == [_IDENTITY]:
            self._write_promise(0)
            return
        data = self._directory.read(_PROMISE) if _PROMISE in names else b""
        scanned = scan_records(data, 0, self._salt)
        if len(scanned.records) != 1 or scanned.end != len(data):
            raise DamagedLog("the promise of the log is damaged or missing")
        self.promised = int.from_bytes(scanned.records[0].body)

    def _read_end(self) -> LogEnd | None:
        """Where the log ended when it was closed, at least: a log that is read may go on being written."""
        if _END not in self._directory.names():
            return None
        try:
            data = self._directory.read(_END)
        except FileNotFoundError:  # its owner has just opened it
            return None
        scanned = scan_records(data, 0, self._salt)
        if len(scanned.records) != 1 or scanned.end != len(data):
            raise DamagedLog("the record of where the log ended is damaged")
        return decode(_decode_end, scanned.records[0].body, "the disk", "the end of a log")

    def _check_end(self, end: LogEnd) -> None:
        """Nothing of a log that was closed is missing; from now on its end is unknown again."""
        if end.index > self.next:
            name = self._segment.name if self._segment is not None else "its first segment"
            raise DamagedLog(
                f"the log was closed after {end.index:,} entries, but ends after {self.next:,}: {name} was "
                "cut, or what followed it is missing"
            )
        self.note = end.note if end.index == self.next else b""
        self._directory.remove(_END)

    def _recover_snapshot(self, file: LogFile) -> None:
        data = self._directory.read(file.name)
        scanned = scan_records(data, file.index, self._salt)
        if len(scanned.records) != 1 or scanned.end != len(data):
            raise DamagedLog(f"the snapshot {file.name} is damaged")
        self.snapshot = scanned.records[0].body
        self._era = file.era
        self.first = self.next = file.index

    def _recover_segment(self, file: LogFile, is_last: bool) -> list[LogEntry]:
        if file.index != self.next:
            raise DamagedLog(f"the log lacks the entries {self.next} to {file.index - 1}")
        data = self._directory.read(file.name)
        scanned = scan_records(data, file.index, self._salt)
        if scanned.end < len(data):
            if scanned.is_damaged or not is_last:
                raise DamagedLog(
                    f"the log is damaged at byte {scanned.end} of {file.name}, before or in the entry "
                    f"{file.index + len(scanned.records)}"
                )
            self._directory.truncate(file.name, scanned.end)
        self.next += len(scanned.records)
        self._segment, self._segment_size = file, scanned.end
        try:
            return [decode(decode_entry, record.body, "the disk", "an entry") for record in scanned.records]
        except ForeignFrame as error:
            raise DamagedLog(f"{file.name}: {error}") from error

    # Writing

    def append(self, entry: LogEntry) -> int:
        """Add an entry, which is durable after the next `sync`; return its index."""
        if self._broken is not None:
            raise self._broken
        index, self.next = self.next, self.next + 1
        self._unwritten.append(encode_record(index, encode_entry(entry), self._salt))
        return index

    def sync(self) -> int:
        """Make everything that was appended durable; return the index of the first entry that is not."""
        return self.write(self.take())

    def take(self) -> UnwrittenRecords:
        """What was appended and is not written, for `write`."""
        records, self._unwritten = self._unwritten, []
        self._taken = UnwrittenRecords(self._era, self.next - len(records), records)
        return self._taken

    def write(self, unwritten: UnwrittenRecords) -> int:
        """Make records durable; return the index of the first entry that is not.

        It may run in another thread, one call at a time, while entries are appended. Records are dropped if
        the log has begun anew since they were taken.
        """
        with self._guarded("be written"):
            is_next = (unwritten.era, unwritten.first) == (self._era, self.durable)
            if unwritten.records and is_next:
                if self._segment is None or self._segment_size >= self._segment_bytes:
                    self._segment, self._segment_size = LogFile(self._era, self.durable, SEGMENT), 0
                data = b"".join(unwritten.records)
                self._directory.append(self._segment.name, data)
                self._directory.sync(self._segment.name)
                self._segment_size += len(data)
                self.durable += len(unwritten.records)
            return self.durable

    def trim(self, index: int) -> None:
        """Forget all entries before a segment that begins with this index; the log has no state then."""
        with self._guarded("be trimmed"):
            kept = LogFile(self._era, index, SNAPSHOT)
            self._directory.replace(kept.name, encode_record(index, b"", self._salt))
            self.first, self.snapshot = index, b""
            for file in self._files():
                if file != kept and (file.kind == SNAPSHOT or file.index < index):
                    self._directory.remove(file.name)

    def promise(self, generation: int) -> None:
        """The member takes part in this generation, and in no other of that number; durable at once."""
        if generation > self.promised:
            with self._guarded("be written"):
                self._write_promise(generation)

    def _write_promise(self, generation: int) -> None:
        self._directory.replace(_PROMISE, encode_record(0, generation.to_bytes(8), self._salt))
        self.promised = generation

    def save_snapshot(self, data: bytes) -> None:
        """Replace all entries so far by the state after them. No `write` may be in progress."""
        self.sync()
        self._begin_with(self._era, self.next, data, kept_from=self.first)

    def reset(self, index: int, data: bytes) -> None:
        """Begin anew with a state that a peer gave: that before the entry with this index."""
        self._begin_with(self._era + 1, index, data, kept_from=index)

    def _begin_with(self, era: int, index: int, data: bytes, kept_from: int) -> None:
        """Begin with a snapshot; keep the segments of the era from an index on."""
        with self._guarded("be replaced by a snapshot"):
            snapshot = LogFile(era, index, SNAPSHOT)
            self._directory.replace(snapshot.name, encode_record(index, data, self._salt))
            self._era, self._segment, self._unwritten = era, None, []
            self._taken = UnwrittenRecords(era, index, [])
            self.first = self.next = self.durable = index
            self.snapshot = data
            for name in self._directory.names():
                if name not in (_IDENTITY, _PROMISE, snapshot.name) and not is_kept(name, era, kept_from):
                    self._directory.remove(name)

    def bodies_since(self, index: int) -> list[bytes] | None:
        """The encoded entries from an index on; None if the log does not have all of them any more.

        No `write` may be in progress.
        """
        with self._guarded("be read"):
            segments = [file for file in self._files() if file.kind == SEGMENT and file.era == self._era]
            older = [file.index for file in segments if file.index <= index]
            found: list[bytes] = []
            for file in segments:
                if older and file.index >= older[-1]:
                    scanned = scan_records(self._directory.read(file.name), file.index, self._salt)
                    found += [record.body for record in scanned.records if record.index >= index]
        waiting = [] if self._taken.first < self.durable else self._taken.records
        for number, record in enumerate([*waiting, *self._unwritten], self.durable):
            if number >= index:
                found.append(scan_records(record, number, self._salt).records[0].body)
        return found if index + len(found) == self.next else None

    def record_end(self, note: bytes) -> None:
        """Nothing will be appended any more: record that, and a note. The end of a broken log is unknown."""
        if self._broken is None:
            with self._guarded("be closed"):
                end = msgspec.msgpack.encode(LogEnd(self.durable, note))
                self._directory.replace(_END, encode_record(0, end, self._salt))

    def close(self) -> None:
        """Let another process open the log."""
        self._directory.close()


def identity_of(directory: LogDirectory) -> LogIdentity:
    """Whose log is in a directory."""
    data = directory.read(_IDENTITY)
    scanned = scan_records(data, 0, 0)
    if len(scanned.records) != 1 or scanned.end != len(data):
        raise DamagedLog("the identity of the log is damaged")
    found = decode(_decode_identity, scanned.records[0].body, "the disk", "the identity of a log")
    if found.version != _VERSION:
        raise UnusableLog(f"the log has version {found.version}, this program reads version {_VERSION}")
    return found
