"""Fixed membership: the group is complete once every expected member has introduced itself, and stays so.

This is the place where membership plugs in: whatever forms views hands them on like this one does.
"""

from priocast.core.errors import JoinRefused, PeerRestarted
from priocast.core.identity import ProcessId
from priocast.core.view import View


class FixedMembership:
    """Forms the first and only view out of introductions."""

    def __init__(self, me: ProcessId, size: int) -> None:
        assert size >= 1
        self._size = size
        self._known = {me.name: me}

    @property
    def missing(self) -> int:
        """How many members have not introduced themselves yet."""
        return self._size - len(self._known)

    @property
    def view(self) -> View | None:
        """The view, once it is complete: the members by name."""
        if self.missing:
            return None
        return View(1, tuple(self._known[name] for name in sorted(self._known)))

    def introduce(self, process: ProcessId) -> None:
        """A process says who it is."""
        known = self._known.get(process.name)
        if known is None and not self.missing:
            raise JoinRefused(
                f"{process} is not one of the {self._size} members of this fixed group: "
                f"{', '.join(sorted(self._known))}"
            )
        if known is not None and known != process:
            raise PeerRestarted(
                f"{process} is another process than {known}, which the group knows by this name: "
                "give each member a name of its own, and restart the whole group after a crash"
            )
        self._known[process.name] = process
