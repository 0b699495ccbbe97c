"""The token of an admin endpoint: a secret in a file that only the owner of the node can read.

Every local user can connect to a loopback address. Whoever may change something shows that it is the user
that runs the node, or root, by reading a file. The file is named after the admin address, in a directory that
both sides find by themselves, and is removed when the node ends.
"""

import os
import secrets
import stat
import tempfile
from pathlib import Path

from priocast.core.errors import InvalidInput, InvalidOption, UnusableKey
from priocast.network.address import Address
from priocast.network.private_files import read_private, write_private

RUN_DIRECTORY = "PRIOCAST_RUN_DIRECTORY"
_TOKEN_BYTES = 32
_ANY_HOST = {"0.0.0.0": "any", "::": "any", "localhost": "127.0.0.1"}  # noqa: S104 - in a file's name


def run_directory() -> Path:
    """Where token files are: $PRIOCAST_RUN_DIRECTORY, else one of this user for temporary files."""
    if chosen := os.environ.get(RUN_DIRECTORY):
        return Path(chosen)
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(session, "priocast")
    return Path(tempfile.gettempdir(), f"priocast-{os.getuid()}")


def token_path(address: Address) -> Path:
    """The token file of the node with this admin address."""
    host = _ANY_HOST.get(address.host, address.host)
    return run_directory() / f"admin-{host}-{address.port}.token"


class TokenFile:
    """The token of a running endpoint; the file of an earlier process at this address is replaced."""

    def __init__(self, address: Address) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.path = token_path(address)
        _prepare(self.path.parent)
        aside = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        aside.unlink(missing_ok=True)
        write_private(aside, self.token.encode())
        aside.replace(self.path)

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it."""
        try:
            if self.path.read_text() == self.token:
                self.path.unlink()
        except OSError:
            return  # it is gone already


def read_token(address: Address, path: Path | None = None) -> str:
    """The token of the node at this admin address, from its file or from the one given."""
    found = path or token_path(address)
    if path is None and not found.exists():
        found = token_path(Address("0.0.0.0", address.port))  # noqa: S104 - a node that listens everywhere
        found = found if found.exists() else token_path(address)
    try:
        return read_private(found).decode().strip()
    except (UnusableKey, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"no token to change something at {address}: {error}; run this as the user that runs the node, "
            "on its machine, or give --token-file"
        ) from error


def _prepare(directory: Path) -> None:
    """Create the directory for this user only; reject one that belongs to somebody else."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise InvalidOption(
            f"{directory} is not a directory that only this user can write: remove it, or name another one "
            f"in {RUN_DIRECTORY}"
        )
