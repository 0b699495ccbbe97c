"""The history of an incarnation's views."""

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.view_history import ViewHistory


def test_all_views_are_counted_and_the_last_ones_kept() -> None:
    history, me = ViewHistory(), ProcessId("a", 1)
    for number in range(1, 51):
        history.add(View(number, (me,)), ViewReason(joined=("b",)), at=number, took_ns=number * 1_000_000)
    assert history.count == history.durations.count == 50
    assert [each.view.number for each in history.recent] == list(range(19, 51))
    assert history.durations.counts_up_to((25_000_000,)) == [25]
