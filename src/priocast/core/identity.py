"""The ids of processes and of messages."""

import re
from functools import lru_cache
from typing import Annotated

import msgspec

from priocast.core.errors import InvalidInput

NAME_LENGTH_MAX = 64
NUMBER_MAX = 1 << 62
STEP_MAX = 1 << 32
"""How far a number that only grows may exceed the highest known one.

Otherwise one frame could use up all numbers; with steps of this size, 2^30 frames cannot.
"""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAMES_KEPT = 4096

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
"""A name as it is decoded: bounded. `is_name` checks its characters where a process becomes known."""

Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
"""A number that another process gave: it leaves room to count on without leaving 64 bits."""

PositiveNumber = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]


class ProcessId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False, cache_hash=True):
    """One incarnation of a process: a restart has the same name and a higher incarnation number."""

    name: Name
    incarnation: Number = 1

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


class MessageId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The number-th message of its sender on its level (numbers start at 0 and have no gaps)."""

    sender: ProcessId
    level: Number
    number: Number

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.number}"


def is_name(name: str) -> bool:
    """Whether this can be the name of a member or a group."""
    return len(name) <= NAME_LENGTH_MAX and _has_valid_characters(name)


@lru_cache(_NAMES_KEPT)
def _has_valid_characters(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str, of: str) -> str:
    """Return the name of a member or a group if it is valid; otherwise raise an error that says why not."""
    if not isinstance(name, str) or not is_name(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a {of}: use 1 to {NAME_LENGTH_MAX} letters, digits, "
            "dots, dashes or underscores, starting with a letter or a digit"
        )
    return name
