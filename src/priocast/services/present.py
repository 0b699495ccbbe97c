"""The members of the current view, which all parts of the qualities of service share."""

from collections.abc import Iterable

from priocast.core.identity import ProcessId
from priocast.core.view import View


class PresentMembers:
    """Who is in the view now. `Services` keeps it, and tells the parts who departed."""

    def __init__(self) -> None:
        self.all: tuple[ProcessId, ...] = ()

    def on_view(self, view: View) -> tuple[ProcessId, ...]:
        """The members have changed; returns those that have departed."""
        before, self.all = self.all, view.members
        return tuple(each for each in before if each not in self.all)

    def __contains__(self, process: ProcessId) -> bool:
        return process in self.all

    def among(self, processes: Iterable[ProcessId]) -> tuple[ProcessId, ...]:
        """Those of the processes that are in the view."""
        return tuple(each for each in processes if each in self.all)
