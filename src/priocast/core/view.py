"""Views: who is in the group."""

import msgspec

from priocast.core.identity import ProcessId


class View(msgspec.Struct, frozen=True, array_like=True):
    """One membership of the group: a number that grows, and the members in an order all agree on."""

    number: int
    members: tuple[ProcessId, ...]

    def __post_init__(self) -> None:
        assert self.members, "a view has members"
        assert len({member.name for member in self.members}) == len(self.members), "names are unique"

    @property
    def coordinator(self) -> ProcessId:
        """The member that does what one member must do; the first one."""
        return self.members[0]
