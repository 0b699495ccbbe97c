"""A load that is sent with a quality of service: the simulator runs it beside the order."""

from priocast.simulation.load_phases import phases_of
from priocast.trace.schema import DELIVERED, SENT, ServiceRow
from simulation.scenarios import group, run_without_violation


def test_all_messages_are_sent_with_the_quality_and_delivered_by_all() -> None:
    load = {"phases": phases_of((100, 50, 0), 100_000), "until_us": 300_000, "quality": "causal"}
    run = run_without_violation(group((0, 0, 0), load=load))
    rows = [row for row in run.rows if isinstance(row, ServiceRow)]
    sent = {(row.sender, row.number) for row in rows if row.event == SENT}
    assert 28 <= len(sent) <= 32
    assert {row.quality for row in rows if row.event == SENT} == {"causal"}
    for member in "abc":
        delivered = [
            (row.sender, row.number) for row in rows if (row.event, row.member) == (DELIVERED, member)
        ]
        assert sorted(delivered) == sorted(sent)
    assert run.messages == []


def test_a_load_with_a_quality_may_last_longer_than_a_group_needs_to_settle() -> None:
    """The deadline of a run was computed from ordered messages only."""
    load = {"phases": phases_of((2, 0, 0), 100_000), "until_us": 5_000_000, "quality": "causal"}
    run = run_without_violation(group((0, 0, 0), load=load))
    assert run.duration_ns > 4_500_000_000
