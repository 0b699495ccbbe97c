"""The census: of which kind is each transition from view to view, so that it is known what was tested."""

from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.checker import Checker
from priocast.simulation.counters import Counters
from priocast.trace.schema import GroupEventRow


class Census(Checker):
    """Counts each view once, under every kind that it is of. `crashed` has the lives that crashed so far."""

    def __init__(self, counters: Counters, crashed: set[str]) -> None:
        self._counters = counters
        self._crashed = crashed
        self._views: dict[ViewId, View] = {}
        self._classes: dict[ViewId, str] = {}
        self._heirs: dict[ViewId, ViewId] = {}
        self._excluded: set[str] = set()

    def on_installed(self, me: ProcessId, view: View, ordering: Ordering) -> None:
        if view.id in self._views:
            return
        self._views[view.id] = view
        self._classes[view.id] = ordering.order
        self._counters.views += 1
        old = [part for part in view.parts if part.view is not None]
        new = [member for part in view.parts if part.view is None for member in part.members]
        if not old:
            self._counters.count("founding")
        if len(old) > 1:
            self._counters.count("merge")
        for part in old:
            assert part.view is not None
            self._follows(self._views[part.view], view)
        for member in new if old else ():
            self._counters.count("join" if member.incarnation == 1 else "rejoin")
        for member in new:
            if member.name in self._excluded:
                self._excluded.discard(member.name)
                self._counters.count("exclusion and return")

    def _follows(self, before: View, view: View) -> None:
        if self._heirs.setdefault(before.id, view.id) != view.id:
            self._counters.count("partition")
        if self._classes[before.id] != self._classes[view.id]:
            self._counters.count("class changed")
        if before.coordinator not in view.members and str(before.coordinator) in self._crashed:
            self._counters.count("crash of the coordinator")

    def on_view(self, row: GroupEventRow) -> None:
        for happened, kind in (
            (row.failed, "failure"),
            (row.left, "leave"),
            (row.evicted, "eviction"),
            (row.reason == ViewReason(), "renewed"),
            (row.order_change, "order changed"),
        ):
            if happened:
                self._counters.count(kind)

    def on_stopped(self, row: GroupEventRow) -> None:
        if not row.voluntary:
            self._excluded.add(row.member)

    def on_state(self, row: GroupEventRow) -> None:
        self._counters.count("state transfer")
