"""How the pipeline reports its progress: a function that is called when a stage begins."""

from typing import Protocol


class Progress(Protocol):
    """Takes the text of the stage that begins, and how many stages follow it, where that is known."""

    def __call__(self, stage: str, following: int | None = None, /) -> None: ...


def ignore_progress(stage: str, following: int | None = None, /) -> None:
    """For callers that do not show progress."""
