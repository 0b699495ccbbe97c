"""Reading rows: the reason of a view as data, and how an incarnation departed."""

import pytest

from priocast.core.view_reason import Eviction, ViewReason
from priocast.simulation.checkers.rows import departure_event, parse_reason
from priocast.trace.schema import NO_POSITION, STOPPED, MessageRow

SLOW = ViewReason(failed=("b",), evicted=(Eviction("c", "slow"),))


def stopped(reason: str) -> MessageRow:
    who = ("c", 1, 1, "a#1", 7, 1_000)
    return MessageRow(*who, STOPPED, reason, "", "", 0, 0, 0, 0, b"", False, "", NO_POSITION, 0, 0, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("the group was founded", ViewReason(founded=True)),
        ("the view was renewed", ViewReason()),
        ("a joined; b failed", ViewReason(joined=("a",), failed=("b",))),
        ("b failed; c was evicted (slow)", SLOW),
        ("c left; the order changed to token-ring", ViewReason(left=("c",), order="token-ring")),
    ],
)
def test_reason_is_read(text: str, reason: ViewReason) -> None:
    assert parse_reason(text) == reason


def test_text_of_a_reason_is_read_back() -> None:
    reason = ViewReason(joined=("a",), merged=("d", "e"), failed=("b",), left=("c",), order="sequencer-bb")
    assert parse_reason(str(reason)) == reason


@pytest.mark.parametrize(
    ("text", "voluntary", "was_slow"),
    [
        ("the group was left", True, False),
        ("c left", True, False),
        ("b left", False, False),
        ("b failed; c was evicted (slow)", False, True),
        ("b was too slow", False, False),
        ("the group went on without c: c failed", False, False),
        ("the group went on without c: c was evicted (slow)", False, True),
    ],
)
def test_departure_is_read(text: str, voluntary: bool, was_slow: bool) -> None:
    event = departure_event(stopped(text))
    assert (event.process, event.voluntary, event.was_slow) == ("c#1", voluntary, was_slow)
