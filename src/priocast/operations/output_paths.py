"""Where output may go: paths are looked at before anything is started, and nothing is made or changed."""

import os
from pathlib import Path


def directory_problem(path: Path) -> str:
    """Why a path cannot be a directory that is written to, and what to do; nothing if it can."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if there.is_dir():
        return _no_right(path, there, os.W_OK | os.X_OK)
    if there == path:
        return f"{path} is a file: choose a directory"
    return f"{path} cannot be a directory, because {there} is a file: choose another one"


def file_problem(path: Path) -> str:
    """Why a path cannot be a file that is written, and what to do; nothing if it can."""
    if path.is_dir():
        return f"{path} is a directory: name a file"
    return _no_right(path, path, os.W_OK) if path.exists() else directory_problem(path.parent)


def _no_right(path: Path, there: Path, right: int) -> str:
    allowed = os.access(there, right)
    return "" if allowed else f"{path} cannot be written to: give this user the right to write to {there}"
