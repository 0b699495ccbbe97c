"""Seeds that once failed, each with what it found; they stay."""

import pytest

from priocast.core.protocol import OrderingOptions
from priocast.links.fifo_link import FifoLink, Frame, LinkOptions
from priocast.simulation.scenario import NetworkOptions
from simulation.scenarios import MILLISECOND, group, run_without_violation

#: Nobody is suspected because its signs of life wait behind a load of messages.
UNHURRIED = {"heartbeat_ms": 1_000, "failure_ms": 60_000}


@pytest.mark.parametrize("window", [None, 1_000])
def test_full_byte_window_is_reported_before_a_quarter_of_the_messages(window: int | None) -> None:
    """Members reported consumption by count only, so a window that was full in bytes never opened again."""
    scenario = group((30, 30), ordering=OrderingOptions(window=window, window_bytes=500))
    run = run_without_violation(scenario)
    assert run.counters.deliveries == 120


def test_slow_interface_does_not_collapse_under_retransmissions() -> None:
    """Frames that waited at a slow interface for longer than the retransmission time were sent for ever.

    Any acknowledgement ended the doubling of that time, even if no round trip could be measured by it.
    """
    run = run_without_violation(
        group(
            (50, 50, 50, 50, 50),
            rate_per_second=150,
            consume_us=100,
            burst=50,
            network=NetworkOptions(latency_us=200, bandwidth_bytes_per_second=1_400_000),
            life=UNHURRIED,
            load={"payload_bytes_min": 39, "payload_bytes_max": 38_396},
            seed=1792,
        )
    )
    assert run.counters.occurred["retransmission"] < run.counters.frames / 2


def test_link_windows_that_do_not_fit_the_interface() -> None:
    """A link window that took seconds to write was sent again and again: 2,194 frames, and none was lost."""
    run = run_without_violation(
        group(
            (20, 20, 30),
            consume_us=100,
            burst=30,
            network=NetworkOptions(latency_us=150, bandwidth_bytes_per_second=500_000),
            life=UNHURRIED,
            load={"payload_bytes_min": 20_000, "payload_bytes_max": 67_000},
            seed=5881,
        )
    )
    assert run.counters.occurred["retransmission"] < 150


def test_repeated_selective_acknowledgements_do_not_delay_the_timer() -> None:
    """A peer that keeps sending repeats what it holds; that is no reason to wait for it even longer."""
    link = FifoLink(LinkOptions())
    for number in range(3):
        link.send(b"frame %d" % number, now=0)
    link.frames.clear()
    for sequence in range(1, 200):
        now = sequence * MILLISECOND
        link.receive(Frame(1, sequence, 0, 0b110, b"more"), now)
        deadline = link.deadline
        if deadline is not None and deadline <= now:
            link.tick(now)
    assert link.retransmissions >= 1, "the first frame is missing, and nothing after it is news"
