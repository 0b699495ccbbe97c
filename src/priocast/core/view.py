"""Views: the members of a group, and which views they come from."""

import msgspec

from priocast.core.identity import ProcessId


class ViewId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The unique id of a view.

    In a partitionable group two views may have the same number; they never have the same coordinator as well.
    """

    number: int
    coordinator: ProcessId

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Members of a view that come from the same earlier view, or from none."""

    view: ViewId | None
    members: tuple[ProcessId, ...]


class View(msgspec.Struct, frozen=True, array_like=True):
    """One membership of the group: an increasing number, and the members in an order that all agree on.

    `parts` says which earlier views the members come from: one part after a failure, one more for members
    that join, several after a merge.
    """

    number: int
    members: tuple[ProcessId, ...]
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        assert self.members, "a view has members"
        assert len({member.name for member in self.members}) == len(self.members), "names are unique"

    @property
    def coordinator(self) -> ProcessId:
        """The first member; it acts where exactly one member must act."""
        return self.members[0]

    @property
    def id(self) -> ViewId:
        """The id of the view."""
        return ViewId(self.number, self.members[0])
