"""A run that is not on this machine's disk: members write it through one of pyarrow's file systems.

A location is a path, or a URL: `s3://bucket/runs/1`, `hdfs://host/runs/1`, `gs:`, `abfss:`, or any other one
that pyarrow knows. A file appears when it is complete. Object stores give that by themselves; elsewhere the
file is renamed at the end.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union
from urllib.parse import unquote, urlsplit

from priocast.core.errors import InvalidOption

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_LOCAL = "file"
_SECRETS = re.compile(r"(?<=://)[^/@]*@|\?.*")
#: Readers on Hadoop say s3a where pyarrow says s3: both names are accepted.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
_OBJECT_STORES = ("s3", "gcs", "abfs")
_PROBE = ".writable"

RunLocation = Union[Path, "RemoteDirectory"]
"""Where a run is: a directory on this machine, or somewhere else."""


def is_url(text: str) -> bool:
    """Whether a text is a URL and not a path."""
    return _URL.match(text) is not None


def is_remote(location: str) -> bool:
    """Whether a path or URL is not on this machine's disk."""
    return is_url(location) and urlsplit(location).scheme.lower() != _LOCAL


def without_secrets(url: str) -> str:
    """A URL to show: without user, password and options, which may contain keys."""
    return _SECRETS.sub("", url)


def parse_location(text: str) -> RunLocation:
    """The directory that a path or a URL names."""
    return RemoteDirectory(text) if is_remote(text) else local_path(text)


def local_path(text: str) -> Path:
    """The path that a path or a `file:` URL names."""
    return Path(unquote(urlsplit(text).path)) if is_url(text) else Path(text)


class RemoteDirectory:
    """A directory in a file system of pyarrow; errors of the storage are OSErrors."""

    def __init__(self, url: str) -> None:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        scheme, _, rest = url.partition(":")
        self._url = url
        try:
            known_as = f"{_SCHEMES.get(scheme.lower(), scheme)}:{rest}"
            self._files, self._path = FileSystem.from_uri(known_as)
        except (ArrowException, ValueError) as error:
            raise InvalidOption(f"{self} cannot be written to: {first_line(error)}") from error
        except OSError as error:
            raise InvalidOption(f"{self} cannot be reached: {first_line(error)}") from error

    def __str__(self) -> str:
        return without_secrets(self._url).rstrip("/")

    def check(self) -> None:
        """Raise OSError if files cannot be written here."""
        self.write(_PROBE, lambda file: file.write(b"x"))
        try:
            self._files.delete_file(self._place(_PROBE))
        except FileNotFoundError:
            return  # another member has removed it

    def write(self, name: str, fill: Callable[[Any], object]) -> None:
        """Write a complete file, or none: closing a stream into an object store completes what is there."""
        from pyarrow import BufferOutputStream

        whole = BufferOutputStream()
        fill(whole)
        place = self._place(name)
        folder, _, last = place.rpartition("/")
        renames = self._files.type_name not in _OBJECT_STORES
        if renames:
            self._files.create_dir(folder, recursive=True)
        part = f"{folder}/.{last}.part" if renames else place
        with self._files.open_output_stream(part) as file:
            file.write(whole.getvalue())
        if renames:
            self._files.move(part, place)

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if there is no such file."""
        try:
            with self._files.open_input_stream(self._place(name)) as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None

    def _place(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


def first_line(error: Exception | None) -> str:
    """The text of an error, without what a storage adds to it in further lines."""
    return str(error).partition("\n")[0]
