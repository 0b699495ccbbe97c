"""Stability: a packet is kept until every member has acknowledged it, and no longer."""

from hypothesis import given
from hypothesis import strategies as st

from priocast.membership.stability import Stability

PLENTY = 1 << 20


def test_packets_are_numbered_per_sender() -> None:
    stability = Stability(3, my_rank=0)
    assert [stability.add(1, b"x"), stability.add(1, b"yy"), stability.add(2, b"z")] == [1, 2, 1]
    assert stability.received == [0, 2, 1]
    assert (stability.unstable_bytes, stability.packets_total, stability.bytes_total) == (4, 3, 4)
    assert stability.bodies(1, 1, 2, PLENTY) == [b"x", b"yy"]


def test_stable_packets_are_forgotten() -> None:
    stability = Stability(3, my_rank=0)
    stability.add(1, b"x")
    stability.add(1, b"y")
    assert not stability.report(1, [0, 2, 0]), "a sender has what it sent"
    assert stability.unstable_bytes == 2 and not stability.is_stable((0, 1, 0)), (
        "the third has not acknowledged it"
    )
    assert stability.report(2, [0, 1, 0])
    assert stability.is_stable((0, 1, 0)) and not stability.is_stable((0, 2, 0))
    assert stability.is_stable((0, 1, 0)), "whatever was asked before"
    assert stability.unstable_bytes == 1 and stability.bodies(1, 1, 2, PLENTY) == []
    assert stability.bodies(1, 2, 2, PLENTY) == [b"y"]


def test_what_one_member_completes_is_forgotten_at_the_next_tick() -> None:
    stability = Stability(3, my_rank=0)
    stability.add(1, b"x")
    stability.report(1, [0, 1, 0])
    stability.report(2, [1, 0, 0])
    assert stability.unstable_bytes == 1
    stability.report(2, [1, 1, 0])
    assert stability.is_stable((0, 1, 0)) and stability.unstable_bytes == 1, "the other may report again"
    stability.forget_stable()
    assert stability.unstable_bytes == 0


def test_a_packet_that_all_others_acknowledged_is_not_kept() -> None:
    stability = Stability(2, my_rank=0)
    stability.report(1, [0, 3])
    for _ in range(3):
        stability.add(1, b"x")
    assert stability.unstable_bytes == 0 and stability.received == [0, 3]


def test_a_member_alone_keeps_nothing() -> None:
    stability = Stability(1, my_rank=0)
    stability.add(0, b"x")
    assert stability.unstable_bytes == 0 and stability.is_stable((1,))


def test_reports_never_lower_a_count() -> None:
    stability = Stability(2, my_rank=0)
    stability.add(0, b"x")
    assert stability.report(1, [1, 0])
    assert not stability.report(1, [0, 0]), "an old report says nothing new"
    assert stability.is_received_by(1, (1, 0))
    assert not stability.is_received_by(1, (1, 1))
    assert not stability.report(0, [9, 9]), "nobody else reports for us"
    assert not stability.report(1, [9]), "a report of another size is of another view"
    assert stability.received == [1, 0]


def test_merged_acknowledgements_forget_nothing() -> None:
    stability = Stability(3, my_rank=0)
    stability.add(1, b"x")
    stability.merge([[9, 9, 9], [0, 1, 0], [0, 1, 0]])
    assert stability.received == [0, 1, 0], "our own counts are exact"
    assert stability.is_stable((0, 1, 0)) and stability.unstable_bytes == 1


def test_a_flush_reply_is_cut_by_bytes() -> None:
    stability = Stability(2, my_rank=0)
    for _ in range(5):
        stability.add(1, bytes(10))
    assert len(stability.bodies(1, 1, 5, 25)) == 2
    assert len(stability.bodies(1, 1, 5, 5)) == 1, "a packet that is too large for a reply travels alone"
    assert len(stability.bodies(1, 1, 2, PLENTY)) == 2
    assert stability.bodies(1, 6, 9, PLENTY) == []


reports = st.tuples(st.integers(1, 2), st.lists(st.integers(0, 8), min_size=3, max_size=3))
additions = st.tuples(st.just(0), st.lists(st.integers(0, 2), min_size=1, max_size=1))


@given(st.lists(st.one_of(additions, reports)))
def test_whatever_a_member_lacks_is_kept(history: list[tuple[int, list[int]]]) -> None:
    """Rank 0 adds packets of each sender, which has them; the others report what they have received."""
    stability = Stability(3, my_rank=0)
    said = {1: [0, 0, 0], 2: [0, 0, 0]}
    for rank, numbers in history:
        if rank == 0:
            (sender,) = numbers
            number = stability.add(sender, b"%d/%d" % (sender, stability.received[sender] + 1))
            if sender:
                said[sender][sender] = max(said[sender][sender], number)
        else:
            stability.report(rank, numbers)
            said[rank] = list(map(max, said[rank], numbers))
    stability.forget_stable()
    for sender in range(3):
        stable = min(said[1][sender], said[2][sender], stability.received[sender])
        expected = [
            b"%d/%d" % (sender, number) for number in range(stable + 1, stability.received[sender] + 1)
        ]
        assert stability.bodies(sender, stable + 1, 99, PLENTY) == expected
