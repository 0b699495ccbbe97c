"""Incarnation numbers: every start of a process has a higher number than the one before.

With a directory, the last number is stored on disk before it is used, so that a restart is never mistaken for
the incarnation before it, whatever the clock says. Without one, the number is the time in milliseconds.
"""

import os
import time
from pathlib import Path

from priocast.core.errors import InvalidOption


class Incarnations:
    """Allocates the incarnation numbers of one member in one group."""

    def __init__(self, directory: Path | None, group: str, member: str) -> None:
        self._path = directory / f"{group}.{member}.incarnation" if directory else None
        self._last = 0

    def next(self) -> int:
        """A new incarnation number, higher than all before."""
        try:
            number = max(time.time_ns() // 1_000_000, self._last + 1, self._read() + 1)
            self._write(number)
        except OSError as error:
            raise InvalidOption(
                f"cannot store the incarnation number in {self._path}: {error.strerror or error}; "
                "choose another state_directory, or allow this user to read and write there"
            ) from error
        self._last = number
        return number

    def _read(self) -> int:
        if self._path is None or not self._path.exists():
            return 0
        text = self._path.read_text(errors="replace").strip()
        if not text.isdecimal():
            raise InvalidOption(
                f"{self._path} must contain an incarnation number, not {text!r}: restore it, or remove it "
                "while the group has no member of this name"
            )
        return int(text)

    def _write(self, number: int) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._path.with_suffix(".part")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{number}\n")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._path)
