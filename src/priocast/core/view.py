"""Views: who is in the group, and which views the members come from."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number, ProcessId
from priocast.core.view_reason import MEMBERS_MAX

_Members = Annotated[tuple[ProcessId, ...], msgspec.Meta(min_length=1, max_length=MEMBERS_MAX)]


class ViewId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The unique identity of a view.

    In a partitionable group, views on two sides of a partition may have the same number, but never the same
    coordinator as well.
    """

    number: Number
    coordinator: ProcessId

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Members of a view that come from the same earlier view, or from none."""

    view: ViewId | None
    members: _Members


class View(msgspec.Struct, frozen=True, array_like=True):
    """The members of the group at one time: a number that grows, and the members in an order all agree on.

    `parts` are the earlier views that the members come from: one part after a failure, one more for members
    that join, several after a merge.
    """

    number: Number
    members: _Members
    parts: Annotated[tuple[Part, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("a view has members")
        if len({member.name for member in self.members}) != len(self.members):
            raise ValueError("the names of a view's members are unique")

    @property
    def coordinator(self) -> ProcessId:
        """The first member, which does what exactly one member must do."""
        return self.members[0]

    @property
    def id(self) -> ViewId:
        """The id of the view."""
        return ViewId(self.number, self.members[0])

    def part_of(self, member: ProcessId) -> Part:
        """The part that a member comes from."""
        return next(part for part in self.parts if member in part.members)
