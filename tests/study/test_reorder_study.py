"""The study of placing: what is made of the times, and one small round on real processes."""

import pytest

from priocast.core.errors import GroupClosed, InvalidOption
from priocast.study.reorder import VARIANTS, InsertionPlan, InsertionTimes, measure_round, rows_of, times_of
from priocast.study.reorder_worker import ROUND_TRIP, InsertionReport

MS = 1_000_000


def placed(times_ms: list[int], sent_ms: list[int] | None = None, **fields: int | str) -> InsertionReport:
    """What a replica noted of one way; the sender noted echoes, too."""
    found = InsertionReport(
        delivered=len(times_ms),
        digest=str(fields.get("digest", "same")),
        placed={"way": [MS * each for each in times_ms]},
        overtaken=int(fields.get("overtaken", 0)),
    )
    if sent_ms is not None:
        found.sent["way"] = found.sent[ROUND_TRIP] = [MS * each for each in sent_ms]
        found.placed[ROUND_TRIP] = [MS * (each + 2) for each in sent_ms]
    return found


def test_times_run_from_the_broadcast_to_the_sender_and_to_the_last_replica() -> None:
    sender = placed([13, 25, 36], sent_ms=[10, 20, 30])
    found = times_of([placed([12, 27, 39]), placed([18, 24, 33]), sender])
    assert found["way"] == InsertionTimes(at_sender_ms=5, everywhere_ms=8)
    assert found[ROUND_TRIP] == InsertionTimes(at_sender_ms=2, everywhere_ms=2)


def test_replicas_that_differ_or_do_not_consume_the_urgent_one_next_are_no_result() -> None:
    sender = placed([13], sent_ms=[10])
    with pytest.raises(GroupClosed, match="same order"):
        times_of([placed([12], digest="another"), sender])
    with pytest.raises(GroupClosed, match="2 times an urgent message was not the next"):
        times_of([placed([12], overtaken=2), sender])


def a_round(raw: float, base: float, other: float) -> dict[str, InsertionTimes]:
    ways = {way.name: InsertionTimes(other, other + 1) for way in VARIANTS}
    return {**ways, ROUND_TRIP: InsertionTimes(raw, raw), "agreement-skeen": InsertionTimes(base, base)}


def test_ratios_are_taken_within_a_round_and_medians_over_the_rounds() -> None:
    rounds = {2: [a_round(1, 10, 11), a_round(2, 10, 14), a_round(4, 40, 42)]}
    rows = {row.way: row for row in rows_of(rounds)}
    assert list(rows) == [ROUND_TRIP, *(way.name for way in VARIANTS)]
    reorder = rows["reorder"]
    assert (reorder.members, reorder.at_sender_ms, reorder.everywhere_ms) == (2, 14, 15)
    assert reorder.round_trips == pytest.approx(10.5)
    assert reorder.overhead_ms == pytest.approx(2)
    assert reorder.overhead == pytest.approx(0.1)
    assert (rows[ROUND_TRIP].overhead_ms, rows[ROUND_TRIP].overhead) == (None, None)
    assert rows["agreement-skeen"].overhead == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"members": ()},
        {"members": (1, 2)},
        {"members": (257,)},
        {"rounds": 0},
        {"messages": 0},
        {"messages": 10**9},
        {"rounds": 10**9},
        {"payload_bytes": 0},
        {"payload_bytes": 1 << 40},
        {"queued": -1},
        {"queued": 257},
    ],
)
def test_an_invalid_plan_is_rejected(bad: dict[str, int]) -> None:
    with pytest.raises(InvalidOption):
        InsertionPlan(**bad)  # type: ignore[arg-type]


@pytest.mark.processes
def test_a_round_of_real_replicas_measures_every_way() -> None:
    heard: list[int] = []
    plan = InsertionPlan(members=(3,), rounds=1, messages=5, queued=3)
    found = measure_round(3, plan, heard.append)
    assert set(found) == {ROUND_TRIP, *(way.name for way in VARIANTS)}
    assert heard[-1] == 5
    assert all(0 < times.at_sender_ms <= times.everywhere_ms for times in found.values())
