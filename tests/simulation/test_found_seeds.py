"""Seeds and scenarios that once failed, each with the defect that it found."""

import pytest

from priocast.core.protocol import OrderingOptions
from priocast.links.fifo_link import FifoLink
from priocast.links.frame import Frame, LinkOptions
from priocast.simulation.choice import Choice
from priocast.simulation.faults import Crash, FaultOptions, NetworkCut, Pause, Stall
from priocast.simulation.scenario import NetworkOptions
from priocast.simulation.swarm import run_seed
from simulation.scenarios import MILLISECOND, group, last_views, run_without_violation

#: Nobody is suspected because its heartbeats wait behind a load of messages.
UNHURRIED = {"heartbeat_ms": 1_000, "failure_ms": 60_000}


@pytest.mark.parametrize("window", [None, 1_000])
def test_full_byte_window_is_reported_before_a_quarter_of_the_messages(window: int | None) -> None:
    """Members reported consumption by count only, so a window that was full in bytes never opened again."""
    scenario = group((30, 30), ordering=OrderingOptions(window=window, window_bytes=500))
    run = run_without_violation(scenario)
    assert run.counters.deliveries == 120


def test_slow_interface_does_not_collapse_under_retransmissions() -> None:
    """Frames that waited at a slow interface for longer than the retransmission time were sent for ever.

    Any acknowledgement reset the doubling of that time, even if it measured no round trip.
    """
    run = run_without_violation(
        group(
            (50, 50, 50, 50, 50),
            rate_per_second=150,
            consume_us=100,
            burst=50,
            network=NetworkOptions(latency_us=200, bandwidth_bytes_per_second=1_400_000),
            membership=UNHURRIED,
            load={"payload_bytes_min": 39, "payload_bytes_max": 38_396},
            seed=1792,
        )
    )
    assert run.counters.occurred["retransmission"] < run.counters.frames / 2


def test_link_window_larger_than_the_interface_can_write_is_not_sent_repeatedly() -> None:
    """A link window that took seconds to write was retransmitted 2,194 times, although no frame was lost."""
    run = run_without_violation(
        group(
            (20, 20, 30),
            consume_us=100,
            burst=30,
            network=NetworkOptions(latency_us=150, bandwidth_bytes_per_second=500_000),
            membership=UNHURRIED,
            load={"payload_bytes_min": 20_000, "payload_bytes_max": 67_000},
            seed=5881,
        )
    )
    assert run.counters.occurred["retransmission"] < 150


def test_repeated_selective_acknowledgements_do_not_delay_the_timer() -> None:
    """A peer that keeps sending repeats its acknowledgements, which restarted the timer every time."""
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
    assert link.retransmissions >= 1, "the first frame is missing, and nothing new was acknowledged after it"


def test_more_processes_than_founders_can_start() -> None:
    """A process that was not among the first `founders` looked up its rank among them and failed."""
    run = run_without_violation(group((5, 5, 5, 5), membership={"founders": 3}))
    assert run.counters.occurred["founding"] == 1 and run.counters.occurred["join"] == 1


@pytest.mark.parametrize("packets", range(1, 24, 2))
def test_member_that_a_proposal_omits_can_still_vote_for_it(packets: int) -> None:
    """The side without a and d accepts a view; its proposer and a crash. The remaining quorum needs d.

    d declined to vote on a view without itself. So the proposal, which may have been decided, could neither
    be decided nor replaced.
    """
    run = run_without_violation(
        group(
            (10,) * 6,
            rate_per_second=30,
            faults=FaultOptions(
                cuts=(NetworkCut(kind="halves", members=("a", "d"), from_us=100_000, for_us=260_000),),
                crashes=(
                    Crash(member="a", at_us=150_000, back_after_us=400_000),
                    Crash(member="b", at_us=160_000, change_packets=packets, back_after_us=300_000),
                ),
                loss_percent=20,
                healed_at_us=700_000,
            ),
            seed=421,
        )
    )
    assert run.counters.occurred["crash in a view change"] == 1
    assert last_views(run, "abcdef") == {"abcdef"}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_stable_packets_are_not_kept(size: int) -> None:
    """A group of one kept everything that it sent; and a copy that arrived after the reports was kept."""
    run = run_without_violation(group((40,) * size, rate_per_second=400))
    assert run.counters.deliveries == 40 * size * size


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
@pytest.mark.parametrize("seed", range(3))
def test_member_that_waits_for_a_crashed_one_is_not_evicted_as_slow(policy: str, seed: int) -> None:
    """A message that a crashed member has not received is not safe yet; who waited for it was evicted."""
    run = run_without_violation(
        group(
            (40, 40, 40),
            rate_per_second=200,
            ordering=OrderingOptions(window=2),
            faults=FaultOptions(
                crashes=(Crash(member="b", at_us=150_000, back_after_us=600_000),), healed_at_us=750_000
            ),
            membership={
                "policy": policy,
                "delivery": "safe",
                "failure_ms": 400,
                "slow_ms": 400,
                "state": True,
            },
            seed=seed,
        )
    )
    assert "eviction" not in run.counters.occurred


def test_only_member_with_the_state_is_not_evicted_as_slow() -> None:
    """It was evicted while the other member waited for its state; it rejoined, and both waited for ever."""
    run = run_without_violation(
        group(
            (30, 30),
            rate_per_second=60,
            ordering=OrderingOptions(window=2),
            faults=FaultOptions(
                cuts=(NetworkCut(kind="isolated", members=("a",), from_us=690_000, for_us=400_000),),
                stalls=(Stall(member="a", from_us=480_000, for_us=2_100_000),),
                healed_at_us=2_600_000,
            ),
            membership={"failure_ms": 260, "slow_ms": 780, "state": True},
        )
    )
    assert run.counters.occurred["rejoin"] and run.counters.occurred["state transfer"]


def test_state_transfer_sends_each_piece_once() -> None:
    """Each tick requested pieces again that were in flight: 54 MB were sent for a state of 1 MB."""
    run = run_without_violation(
        group(
            (10, 10, 10),
            rate_per_second=20,
            network=NetworkOptions(latency_us=200, bandwidth_bytes_per_second=2_000_000),
            faults=FaultOptions(
                crashes=(Crash(member="c", at_us=200_000, back_after_us=200_000),), healed_at_us=400_000
            ),
            membership={"state": True},
            load={"state_bytes": 1_000_000},
        )
    )
    assert run.counters.occurred["state transfer"] and run.counters.frame_bytes < 1_500_000


@pytest.mark.parametrize("packets", range(15, 20))
def test_proposal_that_only_a_joiner_accepted_need_not_be_proposed_again(packets: int) -> None:
    """Its flush plan counts packets that only the crashed proposer had; others requested them for ever."""
    run = run_without_violation(
        group(
            (40, 40, 40, 40, 0),
            rate_per_second=300,
            network=NetworkOptions(latency_us=2_000),
            faults=FaultOptions(
                pauses=(Pause(member="d", from_us=100_000, for_us=200_000),),
                crashes=(Crash(member="a", at_us=190_000, change_packets=packets),),
                loss_percent=30,
                healed_at_us=700_000,
            ),
            membership={"founders": 4},
            load={"start_us": (0, 0, 0, 0, 190_000)},
            seed=7,
        )
    )
    assert run.counters.occurred["crash in a view change"] == 1
    assert last_views(run, "bcde") == {"bcde"}


@pytest.mark.parametrize("seed", range(8))
def test_evicted_proposer_repeats_its_decision(seed: int) -> None:
    """An evicted proposer sent its decision once. If that was lost, the other member waited for ever."""
    run = run_without_violation(
        group(
            (60, 60),
            rate_per_second=150,
            ordering=OrderingOptions(window=4),
            faults=FaultOptions(
                stalls=(Stall(member="a", from_us=100_000, for_us=500_000),),
                loss_percent=30,
                healed_at_us=600_000,
            ),
            membership={"slow_ms": 200, "state": True},
            seed=seed,
        )
    )
    assert run.counters.occurred["eviction"]


@pytest.mark.parametrize("layer", ["time-parts", "count-parts"])
@pytest.mark.parametrize("below", ["reorder", "reorder-locks"])
def test_end_of_a_part_passes_a_plain_queue(layer: str, below: str) -> None:
    """The end of a part was queued like a message of a plain view, but has no priority that says so."""
    run = run_without_violation(
        group((20, 20, 20), ordering=OrderingOptions(part_ms=0.5, part_count=17), order=f"{layer}/{below}")
    )
    assert run.counters.deliveries == 180


def test_group_that_could_be_founded_twice_is_founded_by_all() -> None:
    """Two of three founded it; one restarted and founded it again with the third, which was late."""
    assert not run_seed(4016).violations


@pytest.mark.parametrize("seed", [436, 1979])
def test_turn_that_was_missed_without_a_quorum_is_made_up_for(seed: int) -> None:
    """A member that was suspended when it had something to send waited for ever, if no other input came."""
    assert not run_seed(seed).violations


def test_state_that_is_not_restored_yet_is_not_given_to_others() -> None:
    """A new member gave its empty state to another one when its own had come but was not restored yet."""
    assert not run_seed(293).violations


def test_links_of_a_congested_path_are_not_given_up() -> None:
    """With a short slow_ms, members that waited for a busy interface evicted each other again and again."""
    assert not run_seed(1297).violations


def test_a_decision_is_installed_by_a_voter_that_had_accepted_another_proposal() -> None:
    """A founder that had accepted an earlier proposal ignored the view that a quorum decided, for ever."""
    assert not run_seed(1959, Choice("adaptive")).violations


def test_the_view_that_is_being_agreed_on_keeps_its_quorum() -> None:
    """A member crashed after its promise; the next view, without an evicted one, had no quorum then."""
    assert not run_seed(1904, Choice("adaptive")).violations


def test_a_member_that_has_not_heard_of_the_view_starts_no_round_in_it() -> None:
    """Its members promised to follow it, and needed another round to get rid of the promise, for ever.

    A round took about as long as a member waits for one, so there was always another member like this.
    """
    assert not run_seed(141, Choice("agreement-sets", policy="primary")).violations


@pytest.mark.parametrize("seed", [6984, 7504, 7969])
def test_a_new_member_that_lost_its_donors_does_not_wait_for_ever(seed: int) -> None:
    """It was cut off with its donors before it had the state, and merged with members of another part.

    Those rejected its request. It withdraws and rejoins now.
    """
    assert not run_seed(seed, Choice(members=3, load=30)).violations


def test_messages_of_a_new_member_without_the_state_are_delivered_after_it_merges() -> None:
    """It was alone in a view before it had the state, and ordered messages there that it never delivered.

    The state that it got in the end stood for them, too.
    """
    assert not run_seed(4448, Choice(members=3, load=30)).violations


def test_a_member_that_is_about_to_be_evicted_does_not_keep_the_group_alive() -> None:
    """One member left, one crashed and the last one was evicted as slow: nobody had the group any more."""
    assert not run_seed(9207, Choice(members=3, load=30)).violations


def test_six_members_behind_slow_interfaces_are_in_one_view_soon_after_a_ring_of_cuts() -> None:
    """Flushes share a slow interface with heartbeats, and rounds fail.

    With batches of 64 KiB it took 5.8 s until they were in one view again; the bound is 4 s.
    """
    assert not run_seed(3277, Choice("sequencer-bb")).violations
