"""Finds processes whose files are missing from a run, by what the files of the others contain.

In a real run, a process of the last view must have recorded something, if it founded the group or was in
several views: one that failed may have lost its record, and one that was only about to join may have none.
The record of a simulated run is complete, so there every process of a view that broadcast a message must have
one. A simulated process that crashed before it received its first view has none, and broadcast nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from priocast.core.errors import UnreadableTrace
from priocast.trace.schema import VIEW, GroupEventRow, Manifest, ViewName

_VIRTUAL = "virtual"


def check_records(
    location: object,
    manifest: Manifest,
    group_events: Iterable[GroupEventRow],
    recorded: Callable[[], set[str]],
    senders: Callable[[], set[str]],
) -> None:
    """Raise if the files of a process are missing: nothing can be concluded about it, nor that all is well.

    `recorded` are the processes that have rows in any table, `senders` those whose messages are in any row;
    they are only asked for if a process has no row in `group_events`.
    """
    views = [row for row in group_events if row.event == VIEW]
    with_events = {f"{row.member}#{row.incarnation}" for row in group_events}
    lacking = {process for row in views for process in row.members} - with_events
    if not lacking:
        return
    lacking -= recorded()
    if not lacking:
        return
    if manifest.clock == _VIRTUAL:
        found, when = lacking & senders(), "broadcast messages"
    else:
        found, when = lacking & _expected_at_the_end(views), "was in the last view"
    for process in sorted(found):
        last = max(ViewName(row.view, row.coordinator) for row in views if process in row.members)
        files = f"{process.replace('#', '-')}-*.parquet"
        raise UnreadableTrace(
            f"{location} lacks the record of {process}, which was in view {last} and {when}: copy the files "
            f"of every member (here {files})"
        )


def _expected_at_the_end(views: list[GroupEventRow]) -> set[str]:
    """The processes of views that nobody continued from, without those that were only about to join."""
    names: dict[tuple[str, int], list[tuple[int, ViewName]]] = defaultdict(list)
    members: dict[ViewName, tuple[str, ...]] = {}
    founded = set()
    for row in views:
        name = ViewName(row.view, row.coordinator)
        names[row.member, row.incarnation].append((row.step, name))
        members.setdefault(name, row.members)
        if row.founded:
            founded.add(name)
    continued = {name for of in names.values() for _, name in sorted(of)[:-1]}
    times = Counter(process for of in members.values() for process in of)
    return {
        process
        for name, of in members.items()
        if name not in continued
        for process in of
        if name in founded or times[process] > 1
    }
