"""Views: who is in the group, and where they come from."""

import msgspec

from priocast.core.identity import ProcessId


class ViewId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The name of a view, the only one of its kind.

    In a group that goes on on both sides of a cut, two views may have one number; they never have one
    coordinator as well.
    """

    number: int
    coordinator: ProcessId

    def __str__(self) -> str:
        return f"{self.number}@{self.coordinator}"


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Members of a view that come from the same earlier one, or from none."""

    view: ViewId | None
    members: tuple[ProcessId, ...]


class View(msgspec.Struct, frozen=True, array_like=True):
    """One membership of the group: a number that grows, and the members in an order all agree on.

    `parts` says which earlier views the members come from: one part after a failure, one more for those
    who join, several after a merge.
    """

    number: int
    members: tuple[ProcessId, ...]
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        assert self.members, "a view has members"
        assert len({member.name for member in self.members}) == len(self.members), "names are unique"

    @property
    def coordinator(self) -> ProcessId:
        """The member that does what one member must do; the first one."""
        return self.members[0]

    @property
    def id(self) -> ViewId:
        """The name of the view."""
        return ViewId(self.number, self.members[0])
