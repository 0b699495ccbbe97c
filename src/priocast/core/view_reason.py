"""Why there is a new view, as data. Text is made from it where a user reads it."""

from typing import Annotated, Literal

import msgspec

from priocast.core.identity import NAME_LENGTH_MAX

MEMBERS_MAX = 256
"""How many members a view has, and a reason names, at most."""

DETAIL_LENGTH_MAX = 256

EvictionCause = Literal["slow", "unacknowledged", "unanswered", "overflow", "stateless", "fault"]
"""Why a member is evicted.

`slow`: the order waited too long for its application. `unacknowledged`: it was heard, but did not acknowledge
what was sent to it for too long. `unanswered`: it did not answer a message with a quality of service as often
as the network can lose frames. `overflow`: it did not acknowledge what was sent to it, and the buffer for it
is full. `stateless`: it joined, and no member is left that could give it the group's state. `fault`: it sent
something that violates the protocol.
"""

_Name = Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class Eviction(msgspec.Struct, frozen=True, array_like=True):
    """A member that was removed against its will, and why; `detail` is text for people."""

    member: _Name
    cause: EvictionCause
    detail: Annotated[str, msgspec.Meta(max_length=DETAIL_LENGTH_MAX)] = ""

    def __str__(self) -> str:
        text = f"{self.member} was evicted ({self.cause})"
        return f"{text}: {self.detail}" if self.detail else text


class ViewReason(msgspec.Struct, frozen=True, array_like=True):
    """What is new in a view, by the names of the members concerned.

    `founded`: it is the first view of the group. `joined`: members that come from no view. `merged`: members
    that come from another view than the first ones, after a partition. `order`: the protocol that orders from
    here on, if the order was changed.
    """

    founded: bool = False
    joined: _Names = ()
    left: _Names = ()
    failed: _Names = ()
    evicted: Annotated[tuple[Eviction, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    merged: _Names = ()
    order: Annotated[str, msgspec.Meta(max_length=2 * NAME_LENGTH_MAX)] = ""

    def __str__(self) -> str:
        changes = ["the group was founded"] if self.founded else []
        changes += [f"{name} joined" for name in self.joined]
        changes += [f"{name} merged" for name in self.merged]
        changes += [f"{name} failed" for name in self.failed]
        changes += [f"{name} left" for name in self.left]
        changes += [str(eviction) for eviction in self.evicted]
        if self.order:
            changes.append(f"the order changed to {self.order}")
        return "; ".join(changes) or "the view was renewed"
