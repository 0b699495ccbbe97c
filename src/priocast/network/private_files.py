"""Files with secrets: created for their owner only, never overwritten, and refused if others have access."""

import os
import stat
from pathlib import Path

from priocast.core.errors import UnusableKey

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_private(path: Path) -> bytes:
    """The content of a file that only its owner may read or write; the permissions are checked first."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _OTHERS:
                raise UnusableKey(
                    f"{path} has the permissions {mode:04o}: others can use this key; run chmod 600 {path}, "
                    "and replace the key if somebody may have read it"
                )
            return file.read()
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error


def write_private(path: Path, content: bytes) -> None:
    """Create a file that only its owner may read or write."""
    _create(path, content, 0o600)


def replace_private(path: Path, content: bytes) -> None:
    """Replace the content of such a file, at once."""
    written = path.with_name(f"{path.name}.new")
    write_private(written, content)
    written.replace(path)


def write_public(path: Path, content: bytes) -> None:
    """Create a file that everybody may read."""
    _create(path, content, 0o644)


def check_absent(*paths: Path) -> None:
    """Raise if one of these files exists: none is overwritten."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UnusableKey(f"{path} already exists: remove it first if it is no longer needed")


def _create(path: Path, content: bytes, mode: int) -> None:
    check_absent(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise UnusableKey(f"cannot write {path}: {error.strerror or error}") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
