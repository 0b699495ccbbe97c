"""Checks whether output paths can be written, before anything is started and without creating any.

A file that exists is replaced only if an earlier run of the same command wrote it, which its first bytes
show. Anything else may be somebody's work, or a device.
"""

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

_HEAD_BYTES = 4096


class OutputKind(NamedTuple):
    """A kind of file that Priocast writes: what it is called, and what its first bytes match."""

    name: str
    head: "re.Pattern[bytes]"


REPORT = OutputKind("report", re.compile(rb"<!doctype html>.*<title>Priocast report", re.DOTALL))
SVG = OutputKind("figure", re.compile(rb"<svg .*<dc:title>Priocast</dc:title>", re.DOTALL))
PNG = OutputKind("figure", re.compile(rb"\x89PNG\r\n.*tEXtSoftware\0Priocast", re.DOTALL))
HASHES = OutputKind("list of hashes", re.compile(rb"\d+ [0-9a-f]{16,}\n"))


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


def replacing_problem(path: Path, kind: OutputKind) -> str:
    """Why this file cannot be written, or must not be replaced, and what to do; empty if it can."""
    problem = file_problem(path)
    if problem or not (path.exists() or path.is_symlink()):
        return problem or directory_problem(path.parent)
    if not stat.S_ISREG(path.lstat().st_mode):
        return f"{path} is not a regular file: it is left alone; choose another name"
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head and not kind.head.match(head):
        return f"{path} is not a {kind.name} that Priocast wrote: it is left alone; choose another name"
    return directory_problem(path.parent)


def empty_directory_problem(path: Path) -> str:
    """Why this directory cannot be created, or is not empty, and what to do; empty if it can be used."""
    problem = directory_problem(path)
    if problem or not path.exists() or not any(path.iterdir()):
        return problem
    return f"{path} is not empty: what is there is left alone; remove it, or choose another directory"


def _permission_problem(path: Path, existing: Path, mode: int) -> str:
    allowed = os.access(existing, mode)
    return "" if allowed else f"{path} cannot be written: this user needs write permission for {existing}"
