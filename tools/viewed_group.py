"""Groups of real processes that report their views: what faults can be injected into."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from priocast.testing.process_group import ProcessGroup
from tools.load_worker import LoadReport

ViewReportT = TypeVar("ViewReportT", bound=LoadReport)


class ViewedGroup(ProcessGroup[ViewReportT]):
    """Members by name, each with the views that it reported."""

    @abstractmethod
    def start(self, *names: str, clock_ms: int = 0) -> None:
        """Start members, or start them again; their clocks are ahead by this time, or behind."""

    def view(self, name: str) -> ViewReportT | None:
        """The current view of a member; None before the first one and after an eviction."""
        reports = [report for report in self.members[name].reports if report.kind in ("view", "evicted")]
        return reports[-1] if reports and reports[-1].kind == "view" else None

    def view_members(self, name: str) -> list[str]:
        """The names of the members in a member's current view, sorted."""
        view = self.view(name)
        return sorted(member.partition("#")[0] for member in view.members) if view else []

    def wait_view(self, names: Sequence[str], seconds: float, of: Sequence[str] | None = None) -> float:
        """Wait until these members are in one view that consists of them (or of those in `of`).

        Returns when the last of them reported it, in seconds of the monotonic clock. Raises the error of one
        of them whose process ends meanwhile.
        """
        expected = sorted(of or names)

        def agreed() -> bool:
            for name in names:
                self.members[name].check_running()
            views = {tuple(view.members) if (view := self.view(name)) else () for name in names}
            return len(views) == 1 and all(self.view_members(name) == expected for name in names)

        self.wait(agreed, seconds, f"one view of {', '.join(expected)} at {', '.join(names)}")
        return max(view.time_ns for name in names if (view := self.view(name))) / 1e9
