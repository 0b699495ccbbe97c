"""The format of log records, without any I/O: how they are written, and what is found when they are read.

    magic ─ length ─ index ─ checksum │ body ─ checksum         one record

Checksums are seeded with the *salt* of the log, so that neither a record of another log nor a payload that
contains the bytes of one is mistaken for a record. The checksum of a body is seeded with that of its header:
a body belongs to its index.

Reading ends at the first record that is not whole. If a valid record follows it anywhere, something in the
middle was damaged. Otherwise it is the *torn tail*: what was being written when the power failed.
"""

import struct
from zlib import crc32

import msgspec

_MAGIC = b"\xc5Plr"
_FIELDS = struct.Struct(">4sIQ")
_CHECKSUM = struct.Struct(">I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size
BODY_BYTES_MAX = 1 << 30


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record as it was read: its index in the log, and its body."""

    index: int
    body: bytes


class ScannedRecords(msgspec.Struct, frozen=True):
    """What was found in the bytes of a segment.

    `records` are whole, and their indices follow each other. They end at the byte `end`: if that is not the
    end of the bytes, `is_damaged` says whether a valid record follows later.
    """

    records: list[LogRecord]
    end: int
    is_damaged: bool


def encode_record(index: int, body: bytes, salt: int) -> bytes:
    """The bytes of a record."""
    fields = _FIELDS.pack(_MAGIC, len(body), index)
    header_checksum = crc32(fields, salt)
    return b"".join(
        (fields, _CHECKSUM.pack(header_checksum), body, _CHECKSUM.pack(crc32(body, header_checksum)))
    )


def scan_records(data: bytes, first: int, salt: int) -> ScannedRecords:
    """Read the records from the one with index `first` on."""
    records: list[LogRecord] = []
    end = 0
    while (record := _record_at(data, end, salt)) is not None and record.index == first + len(records):
        records.append(record)
        end += HEADER_BYTES + len(record.body) + _CHECKSUM.size
    return ScannedRecords(records, end, end < len(data) and _has_record_after(data, end, salt))


def _record_at(data: bytes, start: int, salt: int) -> LogRecord | None:
    """The record that begins at this byte, if a whole one does."""
    body_start = start + HEADER_BYTES
    if body_start > len(data):
        return None
    magic, length, index = _FIELDS.unpack_from(data, start)
    if magic != _MAGIC or length > BODY_BYTES_MAX:
        return None
    header_checksum = crc32(data[start : start + _FIELDS.size], salt)
    if _CHECKSUM.unpack_from(data, start + _FIELDS.size)[0] != header_checksum:
        return None
    body_end = body_start + length
    if body_end + _CHECKSUM.size > len(data):
        return None
    body = data[body_start:body_end]
    if _CHECKSUM.unpack_from(data, body_end)[0] != crc32(body, header_checksum):
        return None
    return LogRecord(index, body)


def _has_record_after(data: bytes, start: int, salt: int) -> bool:
    """Whether a whole record begins anywhere from this byte on."""
    found = data.find(_MAGIC, start)
    while found >= 0:
        if _record_at(data, found, salt) is not None:
            return True
        found = data.find(_MAGIC, found + 1)
    return False
