"""How the pipeline tells what it is doing: a function that takes a line for a person to read."""

from collections.abc import Callable

Progress = Callable[[str], None]


def ignore_progress(line: str) -> None:
    """For callers that do not want to know."""
