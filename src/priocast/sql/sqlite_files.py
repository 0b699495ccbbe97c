"""A copy of a replicated database as a file and as a snapshot: whose it is, and whether it is whole.

The file is not synced while it is used, so a crash may damage it. That does no harm: it is made anew at every
start. Only its header, which is synced once, must tell that it is ours, so that nothing else is ever removed.
"""

import logging
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import apsw
import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import DatabaseUnusable, ForeignFrame
from priocast.sql.engine import DatabaseIdentity

log = logging.getLogger("priocast.sql")

APPLICATION_ID = 0x5052494F  # "PRIO"
FORMAT = 1
OWN_SCHEMA = f"""
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {FORMAT};
    CREATE TABLE priocast_database (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        position INTEGER NOT NULL,
        group_name TEXT NOT NULL,
        member TEXT NOT NULL
    );
"""
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_FORMAT_AT, _APPLICATION_AT = 60, 68  # in the header, four bytes each
_DIGEST_BYTES = 16


class SqliteSnapshot(msgspec.Struct, frozen=True, array_like=True, tag="sqlite", gc=False):
    """A database file, with its digest."""

    format: Annotated[int, msgspec.Meta(ge=0, le=255)]
    digest: Annotated[bytes, msgspec.Meta(max_length=_DIGEST_BYTES)]
    data: Annotated[bytes, msgspec.Meta(max_length=1 << 40)]


_encode_snapshot = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(SqliteSnapshot).decode


def encode_snapshot(data: bytes) -> bytes:
    """A database file as a snapshot."""
    return _encode_snapshot(SqliteSnapshot(FORMAT, _digest(data), data))


def decode_snapshot(data: bytes) -> bytes:
    """The database file in a snapshot; raises `DatabaseUnusable` if it is not whole."""
    try:
        snapshot = decode(_decode_snapshot, data, "another replica", "a database")
    except ForeignFrame as error:
        raise DatabaseUnusable(str(error)) from None
    if snapshot.format != FORMAT:
        raise DatabaseUnusable(f"a snapshot has format {snapshot.format}: this version reads {FORMAT}")
    if snapshot.digest != _digest(snapshot.data):
        raise DatabaseUnusable("a snapshot of the database was damaged on its way: join again")
    return snapshot.data


def check_group(source: apsw.Connection, identity: DatabaseIdentity) -> None:
    """Raise if a database is not of the same group."""
    group = source.execute("SELECT group_name FROM priocast_database").get
    if group != identity.group:
        raise DatabaseUnusable(f"a snapshot is of group {group}, not of {identity.group}")


def make_directory_of(path: Path) -> None:
    """Make the directory of a copy, as that of a log is made; raise if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(f"{path.parent} cannot be made: {error.strerror or error}") from error


def remove_own_file(path: Path, identity: DatabaseIdentity) -> None:
    """Remove the copy of an earlier start; raise if the file is not that of this member."""
    if not path.exists():
        return
    _check_header(path)
    owner = _owner_of(path)
    if owner is not None and owner != identity:
        raise DatabaseUnusable(
            f"{path} is the database of {owner}, not of {identity}: were directories swapped?"
        )
    path.unlink()


def _check_header(path: Path) -> None:
    """Raise if the first bytes of a file are not those of a database of ours; an empty one is nobody's."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header:
        return
    application, version = (int.from_bytes(header[at : at + 4]) for at in (_APPLICATION_AT, _FORMAT_AT))
    if not header.startswith(_MAGIC) or application != APPLICATION_ID:
        raise DatabaseUnusable(f"{path} is not a database of Priocast: choose another state_directory")
    if version != FORMAT:
        raise DatabaseUnusable(
            f"{path} was written by another version of Priocast (format {version}, not {FORMAT}): remove it"
        )


def _owner_of(path: Path) -> DatabaseIdentity | None:
    """Whose copy a file is; None if that cannot be read any more, after a crash."""
    found = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        row: Any = found.execute("SELECT group_name, member FROM priocast_database").get
    except apsw.BusyError:
        raise DatabaseUnusable(f"cannot use {path}: another process uses it") from None
    except apsw.Error as error:
        log.warning("%s is damaged (%s), and made anew", path, error)
        return None
    finally:
        found.close(True)
    return DatabaseIdentity(*row) if row is not None else None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()
