"""How the pipeline reports its progress: a function that takes one line of text."""

from collections.abc import Callable

Progress = Callable[[str], None]


def ignore_progress(line: str) -> None:
    """For callers that do not show progress."""
