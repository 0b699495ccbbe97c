"""Incarnation numbers: every start of a process has a higher number than the one before.

With a directory, the last number is stored on disk before it is used, so that a restart is never mistaken for
the incarnation before it, whatever the clock says. Without one, the number is the time in milliseconds: a
process whose clock was set back is told by the others which number it must exceed (`next` with `above`).

If the disk is full, a number is used although it is not stored: it is stored when there is room. The same
holds for a process that runs already, whatever is wrong with the disk.
"""

import asyncio
import errno
import logging
import os
import time
from pathlib import Path

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId

log = logging.getLogger("priocast.group")

_RETRY_SECONDS = 1.0
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Incarnations:
    """Allocates the incarnation numbers of one member in one group.

    `problem` says why the last number is not stored; it is empty if it is, or if there is no directory.
    """

    def __init__(self, directory: Path | None, group: str, member: str) -> None:
        self.problem = ""
        self._path = directory / f"{group}.{member}.incarnation" if directory else None
        self._last = 0

    def next(self, above: int = 0) -> int:
        """A new incarnation number, higher than all before and than `above`."""
        is_first = not self._last
        try:
            before = self._read() if is_first else self._last
            self._last = max(time.time_ns() // 1_000_000, before + 1, above + 1)
            self._write()
        except OSError as error:
            if is_first and error.errno not in _NO_ROOM:
                raise InvalidOption(
                    f"cannot store the incarnation number in {self._path}: {error.strerror or error}; "
                    "choose another state_directory, or allow this user to read and write there"
                ) from error
            self._note(error)
        return self._last

    def later(self, me: ProcessId, known: int) -> int:
        """A number above one that the group knows of this process, although the process was started later."""
        number = self.next(above=known)
        log.warning(
            "the group knows incarnation %d of %s, which is later than %s: it joins as incarnation %d; was "
            "the clock set back? With a state_directory, numbers do not depend on the clock",
            known,
            me.name,
            me,
            number,
            extra={"member": str(me)},
        )
        return number

    async def keep_stored(self) -> None:
        """Store a number as soon as there is room for it; runs until it is cancelled."""
        while self._path is not None:
            await asyncio.sleep(_RETRY_SECONDS)
            if self.problem:
                try:
                    self._write()
                except OSError as error:
                    self._note(error)

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

    def _write(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._path.with_suffix(".part")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{self._last}\n")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._path)
        self.problem = ""

    def _note(self, error: OSError) -> None:
        self.problem = f"incarnation {self._last} is not stored in {self._path}: {error.strerror or error}"
