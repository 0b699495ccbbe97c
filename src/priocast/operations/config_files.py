"""Checks the files and directories that a configuration names, without creating or changing any."""

import os
from pathlib import Path
from typing import Protocol

from priocast.core.errors import UnusableKey
from priocast.core.role import Role
from priocast.network.security import TlsSecurity
from priocast.operations.output_paths import directory_problem
from priocast.operations.toml_tables import TableReader
from priocast.trace.remote_directory import is_remote, local_path


class TlsPaths(Protocol):
    """The paths of a certificate, its key, and the certificate of its authority."""

    @property
    def certificate(self) -> Path: ...
    @property
    def key(self) -> Path: ...
    @property
    def authority(self) -> Path: ...
    @property
    def revoked(self) -> Path | None: ...


def find_tls(reader: TableReader, paths: TlsPaths | None, name: str, groups: list[str]) -> TlsSecurity | None:
    """Load the certificate of this member and check that it is valid for all its groups."""
    if paths is None:
        return None
    readable = True
    for key in ("certificate", "key", "authority", "revoked"):
        path = getattr(paths, key)
        readable &= path is None or _is_readable(reader, f"node.tls.{key}", path)
    if not readable or not name:
        return None
    security = TlsSecurity(paths.certificate, paths.key, paths.authority, paths.revoked)
    try:
        security.contexts()
        roles = security.roles_of(name)
    except UnusableKey as error:
        reader.problem("node.tls", str(error))
        return None
    for group in groups:
        if roles.get(group) is not Role.MEMBER:
            allowed = sorted(name for name, role in roles.items() if role is Role.MEMBER)
            reader.problem(
                "node.tls.certificate",
                f"{paths.certificate} allows {name} to join {', '.join(allowed) or 'no group'}, but not "
                f"{group}: create one for all its groups (priocast keys member)",
            )
    return security


def check_key(reader: TableReader, key: str, path: Path | None, transport: str) -> None:
    """Report a file of the key that the members of a group share over UDP, if it cannot be used."""
    if transport == "tcp":
        if path is not None:
            reader.problem(
                key, "applies to UDP only: remove it (over TCP the node has a certificate, [node.tls])"
            )
        return
    if path is None:
        reader.problem(key, "is missing: over UDP each group needs one; create it with priocast keys group")
        return
    from priocast.network.keys import read_group_keys  # imported here: cryptography is slow to import

    try:
        read_group_keys(path)
    except UnusableKey as error:
        reader.problem(key, f"{error}; create it with priocast keys group")


def check_directory(reader: TableReader, key: str, path: Path) -> None:
    """Report a directory that cannot be created or written to."""
    problem = directory_problem(path)
    if problem:
        reader.problem(key, problem)


def check_trace(reader: TableReader, group: str, location: str, journal: bool) -> None:
    """Report a location at which a run cannot be recorded, as far as that is known without asking for it."""
    if not is_remote(location):
        check_directory(reader, f"{group}.trace", local_path(location))
    elif journal:
        reader.problem(
            f"{group}.trace_journal", "needs a trace on a local disk: remove it, or change the trace"
        )


def _is_readable(reader: TableReader, key: str, path: Path) -> bool:
    if not path.is_file():
        reader.problem(key, f"{path} does not exist: create it with priocast keys, or correct the path")
    elif not os.access(path, os.R_OK):
        reader.problem(key, f"{path} cannot be read by this user: change its permissions")
    else:
        return True
    return False
