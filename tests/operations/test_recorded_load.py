"""The load measured from a recorded run."""

from pathlib import Path

import msgspec
import pytest

from priocast.core.errors import UnreadableTrace
from priocast.operations.recorded_load import _matched, measure_run
from priocast.simulation.choice import Choice
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run
from priocast.trace.schema import BROADCAST, DELIVERED


def test_load_of_a_simulated_run(tmp_path: Path) -> None:
    run = run_scenario(generate_scenario(5, Choice(order="token-ring")))
    write_run(run, tmp_path)
    load = measure_run(tmp_path, rtt_ms=2.0)
    broadcasts = [row for row in run.messages if row.event == BROADCAST]
    assert load.order == "token-ring"
    assert load.messages == sum(row.count for row in broadcasts)
    assert load.situation.rtt_ms == 2.0
    assert load.situation.senders == len({row.member for row in broadcasts})
    times = {
        (row.sender, row.sender_incarnation, row.level, row.first + index): row.time_ns
        for row in broadcasts
        for index in range(row.count)
    }
    taken = [
        row.time_ns - times[row.sender, row.sender_incarnation, row.level, row.first + index]
        for row in run.messages
        if row.event == DELIVERED and (row.member, row.incarnation) == (row.sender, row.sender_incarnation)
        for index in range(row.count)
    ]
    assert load.delivery_ms == pytest.approx(sum(taken) / len(taken) / 1e6)


def test_run_without_messages_is_rejected(tmp_path: Path) -> None:
    run = run_scenario(generate_scenario(5))
    quiet = msgspec.structs.replace(
        run, rows=[row for row in run.rows if row.event not in (BROADCAST, DELIVERED)]
    )
    write_run(quiet, tmp_path)
    with pytest.raises(UnreadableTrace, match="contains no broadcast"):
        measure_run(tmp_path, rtt_ms=1.0)


@pytest.mark.parametrize(
    ("broadcast", "delivered", "matched"),
    [
        ([(0, 4, 10)], [(0, 4, 15)], [(4, 5)]),
        ([(0, 4, 10)], [(0, 1, 15), (1, 4, 20)], [(1, 5), (3, 10)]),
        ([(0, 1, 10), (1, 4, 12)], [(0, 4, 20)], [(1, 10), (3, 8)]),
        ([(0, 2, 10), (2, 4, 12)], [(1, 3, 20)], [(1, 10), (1, 8)]),
        ([(0, 2, 10)], [], []),
        ([(5, 6, 10)], [(0, 1, 3), (5, 6, 11)], [(1, 1)]),
    ],
)
def test_ranges_are_matched_by_their_overlaps(
    broadcast: list[tuple[int, int, int]],
    delivered: list[tuple[int, int, int]],
    matched: list[tuple[int, int]],
) -> None:
    assert _matched(broadcast, delivered) == matched
