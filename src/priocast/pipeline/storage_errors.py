"""Errors of Spark in reading or writing files, as errors that say what is wrong in one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from priocast.core.errors import InvalidInput, PriocastError, UnreadableTrace
from priocast.trace.remote_directory import without_secrets

_SCHEME = re.compile(r'No FileSystem for scheme "(\w+)"|Class (org\.apache\.hadoop\.fs\.\S+) not found')
_READING = "[FAILED_READ_FILE"
_PROBLEMS = {
    re.compile(
        r"(?:AccessControlException|AccessDenied\w*|AuthorizationException)[^:\n]*: ([^\n]+)"
    ): ": the storage denies access: ",
    re.compile(
        r"(?:ConnectException|UnknownHostException|NoRouteToHostException): ([^\n]+)"
    ): ": the storage cannot be reached: ",
    re.compile(
        r"\[FAILED_READ_FILE.*?reading file (\S+?)\.?\s"
    ): " contains a damaged file: Spark cannot read ",
    re.compile(r"Mkdirs failed to create (\S+)"): ": a directory cannot be created: ",
    re.compile(r"FileNotFoundException: ([^\n]+)"): ": a file is missing: ",
}
"""Parts of the texts of Spark's errors, and what they mean; the first one that occurs counts."""


@contextmanager
def storage_errors(location: str) -> Iterator[None]:
    """Raise errors of the storage at a location, and of damaged files there, as our own."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = explain_error(without_secrets(location), str(error))
        if found is None:
            raise
        raise found from error


@contextmanager
def copy_errors(source: str, target: str) -> Iterator[None]:
    """Raise errors of copying as our own; each names the side that it is about."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        with storage_errors(source if _READING in str(error) else target):
            raise


def explain_error(location: str, text: str) -> PriocastError | None:
    """What the text of Spark's error says about the storage; None if it is about something else."""
    if match := _SCHEME.search(text):
        what = f"the scheme {match[1]!r}" if match[1] else match[2]
        return InvalidInput(
            f"{location} cannot be used: Spark has no file system for {what}; install its package (for s3a: "
            "hadoop-aws), or copy the run to a storage that this Spark can use"
        )
    for pattern, problem in _PROBLEMS.items():
        if match := pattern.search(text):
            return UnreadableTrace(f"{location}{problem}{without_secrets(match[1].strip())}")
    return None
