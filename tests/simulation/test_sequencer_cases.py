"""Named cases of the fixed sequencer and of starvation: where priorities act, and what bounds them.

Times are virtual, so these are facts about the protocol and not about a machine. A consumer needs 1 ms per
message; the load is the rate of broadcasts relative to that.
"""

from itertools import pairwise

from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from priocast.simulation.faults import FaultOptions
from priocast.simulation.simulator import SimulatedRun
from priocast.trace.schema import DELIVERED, NO_POSITION, SENT
from simulation.scenarios import (
    HIGH,
    LOW,
    MILLISECOND,
    group,
    mean,
    overtakings,
    run_without_violation,
    waits_ms,
)

STEP_NS = PERIOD_NS = 20 * MILLISECOND


def mean_waits_at_load_90(window: int) -> tuple[float, float]:
    """Mean waiting of the high and the low level with this window."""
    scenario = group(
        (800, 800, 800), rate_per_second=300, consume_us=1_000, ordering=OrderingOptions(window=window)
    )
    waits = waits_ms(run_without_violation(scenario))
    return mean(waits[HIGH]), mean(waits[LOW])


def test_sequencer_eager_vs_window() -> None:
    """Techniques paper, section 6.1: priorities act on what waits at the sequencer, and only there."""
    eager_high, eager_low = mean_waits_at_load_90(window=4096)
    wide_high, wide_low = mean_waits_at_load_90(window=8)
    narrow_high, narrow_low = mean_waits_at_load_90(window=1)
    assert 0.85 < eager_high / eager_low < 1.15, "nothing waits at an eager sequencer"
    assert eager_high > wide_high > narrow_high, (
        "the smaller the window, the shorter the waiting time of urgent messages"
    )
    assert eager_low <= wide_low <= narrow_low, "and the longer that of routine messages"
    assert narrow_low > 3.5 * narrow_high
    assert eager_high > 2.5 * narrow_high


def test_sequencer_same_level_fifo() -> None:
    """Messages of one level keep their order, although the network reorders and the window splits batches."""
    scenario = group(
        (60, 60, 60, 60),
        burst=20,
        consume_us=300,
        priorities=((LOW, 1),),
        ordering=OrderingOptions(window=3),
        faults=FaultOptions(
            loss_percent=20, reordering_percent=30, reordering_us=2_000, healed_at_us=1_000_000
        ),
    )
    run = run_without_violation(scenario)
    assert run.counters.occurred.keys() >= {"loss", "reordering", "retransmission"}
    for member in scenario.members:
        for sender in scenario.members:
            numbers = [
                row.first
                for row in run.messages
                if (row.event, row.member, row.sender) == (DELIVERED, member, sender)
            ]
            assert numbers == list(range(60))


def test_sequencer_loop_restarts_after_empty() -> None:
    """Cost paper, figure 1: `while incoming is not empty` must wait for more, not end."""
    run = run_without_violation(group((0, 6), rate_per_second=2))
    ordered_at = [row.time_ns for row in run.messages if row.event == SENT and row.position != NO_POSITION]
    pauses_ms = [(later - at) / MILLISECOND for at, later in pairwise(ordered_at)]
    assert len(ordered_at) == 6, "each message found the queue empty and was ordered alone"
    assert max(pauses_ms) > 100, "and the sequencer was idle in between"


def starved(starvation: Starvation) -> SimulatedRun:
    """Load 0.98, nine of ten messages high."""
    return run_without_violation(
        group(
            (700, 700, 700),
            rate_per_second=327,
            consume_us=1_000,
            priorities=((HIGH, 9), (LOW, 1)),
            ordering=OrderingOptions(window=2, starvation=starvation),
        )
    )


def test_ageing_bounds_low() -> None:
    """Techniques paper, section 4: ageing bounds how long a low message is overtaken."""
    strict, ageing = starved(Strict()), starved(Ageing(STEP_NS))
    assert max(waits_ms(ageing)[LOW]) < max(waits_ms(strict)[LOW]) / 1.5
    assert mean(waits_ms(ageing)[LOW]) < mean(waits_ms(strict)[LOW]) / 1.5
    assert mean(waits_ms(ageing)[HIGH]) < mean(waits_ms(ageing)[LOW]), "priorities are weaker, but still act"
    assert all(
        overtaker.entered_at < overtaken.entered_at + (HIGH - LOW) * STEP_NS
        for overtaken, overtaker in overtakings(ageing)
    )
    assert any(
        overtaker.entered_at >= overtaken.entered_at + (HIGH - LOW) * STEP_NS
        for overtaken, overtaker in overtakings(strict)
    ), "the strict policy has no such bound"


def test_periodic_release_bounds_overtaking() -> None:
    """Techniques paper, section 4: nothing overtakes what was queued in an earlier period."""
    strict, flush = starved(Strict()), starved(PeriodicRelease(PERIOD_NS))

    def periods_apart(run: SimulatedRun) -> set[int]:
        return {
            overtaker.entered_at // PERIOD_NS - overtaken.entered_at // PERIOD_NS
            for overtaken, overtaker in overtakings(run)
        }

    assert periods_apart(flush) == {0}, "high messages overtake low ones of their own period only"
    assert max(periods_apart(strict)) > 3, "the strict policy has no such bound"
    assert max(waits_ms(flush)[LOW]) < max(waits_ms(strict)[LOW]) / 1.5
