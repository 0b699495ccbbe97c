"""Checks whether output paths can be written, before anything is started and without creating any."""

import os
from pathlib import Path


def directory_problem(path: Path) -> str:
    """Why files cannot be written to this directory, and what to do; empty if they can."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if existing.is_dir():
        return _permission_problem(path, existing, os.W_OK | os.X_OK)
    if existing == path:
        return f"{path} is a file: choose a directory"
    return f"{path} cannot be created, because {existing} is a file: choose another directory"


def file_problem(path: Path) -> str:
    """Why this file cannot be written, and what to do; empty if it can."""
    if path.is_dir():
        return f"{path} is a directory: choose a file"
    return _permission_problem(path, path, os.W_OK) if path.exists() else directory_problem(path.parent)


def _permission_problem(path: Path, existing: Path, mode: int) -> str:
    allowed = os.access(existing, mode)
    return "" if allowed else f"{path} cannot be written: this user needs write permission for {existing}"
