"""The ids of processes and of messages."""

import re

import msgspec

from priocast.core.errors import InvalidInput

NAME_LENGTH_MAX = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ProcessId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One incarnation of a process: a restart has the same name and a higher incarnation number."""

    name: str
    incarnation: int = 1

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


class MessageId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The number-th message of its sender on its level (numbers start at 0 and have no gaps)."""

    sender: ProcessId
    level: int
    number: int

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.number}"


def check_name(name: str, of: str) -> str:
    """Return the name of a member or a group if it is valid; otherwise raise an error that says why not."""
    if not isinstance(name, str) or len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a {of}: use 1 to {NAME_LENGTH_MAX} letters, digits, "
            "dots, dashes or underscores, starting with a letter or a digit"
        )
    return name
