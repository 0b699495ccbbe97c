"""The record of a broken guarantee: how people read it, and that it survives the way between processes."""

import msgspec

from priocast.core.guarantees import TOTAL_ORDER
from priocast.core.violation import Violation

COMPLETE = Violation(
    guarantee=TOTAL_ORDER,
    summary="b#1 delivers a#1/0/3 again",
    run="seed 7",
    view="2@b#1",
    position=14,
    members=("b#1",),
    messages=("a#1/0/3",),
    details={"time_ns": 12_500},
)


def test_text_names_run_guarantee_view_and_position() -> None:
    assert str(COMPLETE) == (
        "seed 7: Total order violated in view 2@b#1 at position 14: "
        "b#1 delivers a#1/0/3 again; time_ns 12,500"
    )


def test_text_leaves_out_what_is_unknown() -> None:
    assert str(Violation(guarantee="Liveness", summary="b#1 waits")) == "Liveness violated: b#1 waits"


def test_position_zero_is_a_position() -> None:
    assert "at position 0" in str(Violation(guarantee=TOTAL_ORDER, summary="a gap", position=0))


def test_record_survives_encoding() -> None:
    assert msgspec.json.decode(msgspec.json.encode(COMPLETE), type=Violation) == COMPLETE
