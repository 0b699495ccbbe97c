"""The durable ordered log of one member: segments of records, and the snapshot that they follow.

    identity                         whose log this is, and its salt
    <era>.<index>.snapshot           the state before the entry with this index
    <era>.<index>.segment            entries from this index on

Entries are numbered without gaps. They are durable when `sync` has returned: one sync for as many as were
appended before. A snapshot replaces everything before it. Opening a log trims a torn tail. Damage anywhere
else raises DamagedLog: nothing is ever skipped. `reset` begins a new *era*, with a snapshot that a peer gave;
files of earlier eras do not count from then on.

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
from priocast.log.records import encode_record, scan_records

SEGMENT_BYTES = 64 * 1024 * 1024
_VERSION = 1
_IDENTITY = "identity"
_SEGMENT, _SNAPSHOT = "segment", "snapshot"


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


class LogFile(msgspec.Struct, frozen=True, order=True):
    """A snapshot or a segment, as its name says."""

    era: int
    index: int
    kind: str

    @property
    def name(self) -> str:
        """The name of the file; names are in the order of eras and indices."""
        return f"{self.era:010d}.{self.index:020d}.{self.kind}"


_decode_identity = msgspec.msgpack.Decoder(LogIdentity).decode


class OrderedLog:
    """A log that is open: `recover` comes first.

    `snapshot` is the state before the entry `first`; None if the log begins with the group. `next` is the
    index of the next entry. `durable`: the entries below this index are on the disk.
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
        self._broken: UnusableLog | None = None
        self._era = 0
        self._segment: LogFile | None = None
        self._segment_size = 0
        self._unwritten: list[bytes] = []
        with self._guarded("be opened"):
            self._salt = self._identify(LogIdentity(_VERSION, group, member, new_salt))

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

    def _identify(self, identity: LogIdentity) -> int:
        """Check whose log this is, or make it this member's; return the seed of its checksums."""
        names = self._directory.names()
        if _IDENTITY not in names:
            if names:
                raise DamagedLog(f"the log has no identity, but {names[0]}: restore it, or remove everything")
            self._directory.replace(_IDENTITY, encode_record(0, msgspec.msgpack.encode(identity), 0))
            return crc32(identity.salt)
        data = self._directory.read(_IDENTITY)
        scanned = scan_records(data, 0, 0)
        if len(scanned.records) != 1 or scanned.end != len(data):
            raise DamagedLog("the identity of the log is damaged")
        found = decode(_decode_identity, scanned.records[0].body, "the disk", "the identity of a log")
        if found.version != _VERSION:
            raise UnusableLog(f"the log has version {found.version}, this program reads version {_VERSION}")
        if (found.group, found.member) != (identity.group, identity.member):
            raise UnusableLog(
                f"the log is of {found.member} in group {found.group!r}, not of {identity.member} in group "
                f"{identity.group!r}: were directories swapped?"
            )
        return crc32(found.salt)

    def recover(self) -> list[LogEntry]:
        """The entries after the snapshot; a torn tail is trimmed. Raises DamagedLog if anything else is."""
        with self._guarded("be read"):
            files = sorted(_file_of(name) for name in self._directory.names() if name != _IDENTITY)
            snapshots = [file for file in files if file.kind == _SNAPSHOT]
            if snapshots:
                self._recover_snapshot(snapshots[-1])
            segments = [
                file
                for file in files
                if file.kind == _SEGMENT and file.era == self._era and file.index >= self.first
            ]
            entries: list[LogEntry] = []
            for file in segments:
                entries += self._recover_segment(file, is_last=file == segments[-1])
            for file in files:
                if file not in segments and file != LogFile(self._era, self.first, _SNAPSHOT):
                    self._directory.remove(file.name)
            self.durable = self.next
            return entries

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
        return UnwrittenRecords(self._era, self.next - len(records), records)

    def write(self, unwritten: UnwrittenRecords) -> int:
        """Make records durable; return the index of the first entry that is not.

        It may run in another thread, one call at a time, while entries are appended. Records are dropped if
        the log has begun anew since they were taken.
        """
        with self._guarded("be written"):
            is_next = (unwritten.era, unwritten.first) == (self._era, self.durable)
            if unwritten.records and is_next:
                if self._segment is None or self._segment_size >= self._segment_bytes:
                    self._segment, self._segment_size = LogFile(self._era, self.durable, _SEGMENT), 0
                data = b"".join(unwritten.records)
                self._directory.append(self._segment.name, data)
                self._directory.sync(self._segment.name)
                self._segment_size += len(data)
                self.durable += len(unwritten.records)
            return self.durable

    def save_snapshot(self, data: bytes) -> None:
        """Replace all entries so far by the state after them."""
        self._replace_all(self._era, self.next, data)

    def reset(self, index: int, data: bytes) -> None:
        """Begin anew with a state that a peer gave: that before the entry with this index."""
        self._replace_all(self._era + 1, index, data)

    def _replace_all(self, era: int, index: int, data: bytes) -> None:
        with self._guarded("be replaced by a snapshot"):
            snapshot = LogFile(era, index, _SNAPSHOT)
            self._directory.replace(snapshot.name, encode_record(index, data, self._salt))
            self._era, self._segment, self._unwritten = era, None, []
            self.first = self.next = self.durable = index
            self.snapshot = data
            for name in self._directory.names():
                if name not in (_IDENTITY, snapshot.name):
                    self._directory.remove(name)

    def close(self) -> None:
        """Let another process open the log."""
        self._directory.close()


def _file_of(name: str) -> LogFile:
    era, _, rest = name.partition(".")
    index, _, kind = rest.partition(".")
    if not (era.isdecimal() and index.isdecimal() and kind in (_SEGMENT, _SNAPSHOT)):
        raise DamagedLog(f"the log has a file that is not of a log: {name}")
    return LogFile(int(era), int(index), kind)
