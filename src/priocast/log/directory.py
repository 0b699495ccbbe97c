"""What a log needs of a file system: a directory with few operations, each with an exact promise.

The log is written against this interface. `DiskDirectory` is the real one; tests have one that loses what was
not synced when the power fails.
"""

from typing import Protocol


class LogDirectory(Protocol):
    """The files of one log. Every operation raises OSError if the file system does."""

    def names(self) -> list[str]:
        """The names of all files, sorted."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file, which is created if need be. It may be lost until `sync`."""

    def sync(self, name: str) -> None:
        """What was appended to the file, and that it exists, survives a power failure from now on."""

    def replace(self, name: str, data: bytes) -> None:
        """Give a file this content, all or nothing; it survives a power failure from now on."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file at its end; it stays cut after a power failure."""

    def remove(self, name: str) -> None:
        """Remove a file. It may be back after a power failure."""

    def close(self) -> None:
        """Let another process use the directory."""
