"""Why there is a new view, as data. Text is made from it where a user reads it."""

from typing import Annotated

import msgspec

from priocast.core.identity import NAME_LENGTH_MAX

MEMBERS_MAX = 256
"""How many members a reason names at most; `membership/options.py` bounds the members of a view further."""

_Name = Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class Eviction(msgspec.Struct, frozen=True, array_like=True):
    """A member that was evicted, and why, as text."""

    member: _Name
    cause: Annotated[str, msgspec.Meta(max_length=256)]


class ViewReason(msgspec.Struct, frozen=True, array_like=True):
    """What is new in a view, by the names of the members concerned.

    `founded`: it is the group's first view. `merged`: members that come from another view, after a partition.
    `order`: the protocol that orders from here on, if it was changed.
    """

    founded: bool = False
    joined: _Names = ()
    left: _Names = ()
    failed: _Names = ()
    evicted: Annotated[tuple[Eviction, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    merged: _Names = ()
    order: Annotated[str, msgspec.Meta(max_length=2 * NAME_LENGTH_MAX)] = ""

    def __str__(self) -> str:
        said = ["the group was founded"] if self.founded else []
        said += [f"{name} joined" for name in self.joined]
        said += [f"{name} merged" for name in self.merged]
        said += [f"{name} failed" for name in self.failed]
        said += [f"{name} left" for name in self.left]
        said += [f"{eviction.member} was evicted: {eviction.cause}" for eviction in self.evicted]
        if self.order:
            said.append(f"the order changed to {self.order}")
        return "; ".join(said) or "the view was renewed"
