"""Reading rows: how an incarnation departed."""

from typing import Any

import pytest

from priocast.core.view_reason import Eviction, ViewReason
from priocast.simulation.checkers.rows import departure_event, view_event
from priocast.trace.schema import STOPPED, VIEW, GroupEventRow

EVICTED = (("c", "slow", "no consumption for 10 s"),)


@pytest.mark.parametrize(
    ("columns", "was_slow"),
    [
        ({"voluntary": True, "left": ("c",)}, False),
        ({"voluntary": False, "left": ("b",)}, False),
        ({"voluntary": False, "failed": ("b",), "evicted": EVICTED}, True),
        ({"voluntary": False, "evicted": (("b", "slow", ""),)}, False),
        ({"voluntary": False, "evicted": (("c", "fault", ""),)}, False),
    ],
)
def test_departure_is_read(columns: dict[str, Any], was_slow: bool) -> None:
    event = departure_event(GroupEventRow("c", 1, 1, "a#1", 7, 1_000, STOPPED)._replace(**columns))
    assert (event.process, event.voluntary, event.was_slow) == ("c#1", columns["voluntary"], was_slow)


def test_reason_of_a_view_is_read() -> None:
    row = GroupEventRow("c", 1, 2, "a#1", 7, 1_000, VIEW, 5, ("a#1", "c#1"), "a#1", "sequencer-ub", "none")
    event = view_event(row._replace(joined=("d",), evicted=EVICTED))
    assert (event.members, event.orderer, event.position) == (("a#1", "c#1"), "a#1", 5)
    eviction = Eviction("c", "slow", "no consumption for 10 s")
    assert event.reason == ViewReason(joined=("d",), evicted=(eviction,))
