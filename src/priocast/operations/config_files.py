"""Checks the files and directories that a configuration names, without making or changing any."""

import os
from pathlib import Path
from typing import Protocol

from priocast.core.errors import UnusableKey
from priocast.network.security import TlsSecurity
from priocast.operations.output_paths import directory_problem
from priocast.operations.toml_tables import TableReader


class TlsPaths(Protocol):
    """Where a certificate, its key and its authority are."""

    @property
    def certificate(self) -> Path: ...
    @property
    def key(self) -> Path: ...
    @property
    def authority(self) -> Path: ...


def find_tls(reader: TableReader, paths: TlsPaths | None, name: str, groups: list[str]) -> TlsSecurity | None:
    """The certificate of this member, which must be for all its groups."""
    if paths is None:
        return None
    there = True
    for key in ("certificate", "key", "authority"):
        there &= _is_readable(reader, f"node.tls.{key}", getattr(paths, key))
    if not there or not name:
        return None
    security = TlsSecurity(paths.certificate, paths.key, paths.authority)
    try:
        security.contexts()
        allowed = security.groups_of(name)
    except UnusableKey as error:
        reader.problem("node.tls", str(error))
        return None
    for group in groups:
        if group not in allowed:
            reader.problem(
                "node.tls.certificate",
                f"{paths.certificate} lets {name} into {', '.join(sorted(allowed))}, not into {group}: "
                "make one that names all its groups (priocast keys member)",
            )
    return security


def find_key(reader: TableReader, key: str, path: Path | None, transport: str) -> bytes:
    """The key that a group's members share over UDP; over TCP there is none."""
    if transport == "tcp":
        if path is not None:
            reader.problem(key, "is for UDP: remove it (over TCP the node has a certificate, [node.tls])")
        return b""
    if path is None:
        reader.problem(key, "is missing: over UDP each group has one; make it with priocast keys group")
        return b""
    from priocast.network.keys import read_group_key  # here, because cryptography is slow to import

    try:
        return read_group_key(path)
    except UnusableKey as error:
        reader.problem(key, f"{error}; make it with priocast keys group")
        return b""


def check_directory(reader: TableReader, key: str, path: Path) -> None:
    """A directory that is there, or can be made, and can be written to."""
    stall_reason = directory_problem(path)
    if stall_reason:
        reader.problem(key, stall_reason)


def _is_readable(reader: TableReader, key: str, path: Path) -> bool:
    if not path.is_file():
        reader.problem(key, f"{path} is not there: make it with priocast keys, or correct the path")
    elif not os.access(path, os.R_OK):
        reader.problem(key, f"{path} cannot be read by this user: give it the right to")
    else:
        return True
    return False
