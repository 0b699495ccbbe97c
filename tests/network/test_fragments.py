"""Reassembly: in any order, over retransmissions, and in bounded memory."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from priocast.links.frame import Frame
from priocast.network.fragments import PARTIAL_BYTES_MAX, PARTIAL_BYTES_OF_ONE_MAX, Reassembly
from priocast.network.rejections import RejectionLog
from priocast.network.udp_content import CELL_BYTES, Fragment, LinkHeader


def pieces_of(body: bytes, cells: int, sequence: int = 1, transfer_id: int = 0) -> list[Fragment]:
    """A body in fragments of this many cells."""
    header, step = LinkHeader(1, 2, sequence, 3, 4), cells * CELL_BYTES
    return [
        Fragment(header, transfer_id, len(body), offset, body[offset : offset + step])
        for offset in range(0, len(body), step)
    ]


def first_fragment(total: int, sequence: int = 1) -> Fragment:
    """The first fragment of a body that is never completed."""
    return Fragment(LinkHeader(1, 2, sequence, 3, 4), 0, total, 0, bytes(CELL_BYTES))


def bytes_of(length: int) -> bytes:
    return bytes(number * number % 251 for number in range(length))


@given(
    length=st.integers(2 * CELL_BYTES, 20 * CELL_BYTES),
    cells=st.integers(1, 4),
    lost=st.sets(st.integers(0, 20)),
    dice=st.randoms(use_true_random=False),
)
def test_a_retransmission_fills_the_gaps_of_the_first_attempt(
    length: int, cells: int, lost: set[int], dice: Random
) -> None:
    body, reassembly = bytes_of(length), Reassembly(RejectionLog("a"))
    first = [fragment for number, fragment in enumerate(pieces_of(body, 1)) if number not in lost]
    second = pieces_of(body, cells)
    dice.shuffle(first)
    dice.shuffle(second)
    whole = [reassembly.add(b"s", 1, fragment, 0.0) for fragment in [*first, *second]]
    frames = [frame for frame in whole if frame is not None]
    assert frames
    assert all(frame == Frame(2, 1, 3, 4, body) for frame in frames)


def test_bodies_of_several_senders_incarnations_and_links_do_not_mix() -> None:
    reassembly = Reassembly(RejectionLog("a"))
    keys = [(b"s", 1, 1), (b"s", 2, 1), (b"t", 1, 1), (b"s", 1, 2)]
    bodies = {key: bytes([number]) * 300 for number, key in enumerate(keys)}
    frames = {}
    for part in range(3):
        for sender, incarnation, sequence in keys:
            body = bodies[sender, incarnation, sequence]
            fragment = pieces_of(body, 1, sequence)[part]
            frames[sender, incarnation, sequence] = reassembly.add(sender, incarnation, fragment, 0.0)
    assert {key: frame.body for key, frame in frames.items() if frame} == bodies
    assert len(reassembly) == 0


def test_bodies_without_a_sequence_are_distinguished_by_their_transfer_id() -> None:
    reassembly = Reassembly(RejectionLog("a"))
    one, other = pieces_of(b"1" * 200, 1, 0, transfer_id=1), pieces_of(b"2" * 200, 1, 0, transfer_id=2)
    assert reassembly.add(b"s", 1, one[0], 0.0) is None
    assert reassembly.add(b"s", 1, other[1], 0.0) is None
    whole = reassembly.add(b"s", 1, one[1], 0.0)
    assert whole is not None
    assert whole.body == b"1" * 200


def test_a_body_that_waits_too_long_is_discarded() -> None:
    rejection_log = RejectionLog("a")
    reassembly = Reassembly(rejection_log)
    first, second, third = pieces_of(bytes(300), 1)
    reassembly.add(b"s", 1, first, 0.0)
    reassembly.add(b"s", 1, second, 9.0)
    reassembly.expire(18.0)
    assert len(reassembly) == 1, "the second fragment restarted the timeout"
    reassembly.expire(19.5)
    assert len(reassembly) == 0
    assert rejection_log.counts == {"incomplete fragments discarded": 1}
    assert reassembly.add(b"s", 1, third, 20.0) is None


def test_one_sender_cannot_displace_another() -> None:
    rejection_log = RejectionLog("a")
    reassembly = Reassembly(rejection_log)
    mine = pieces_of(bytes_of(300), 1)
    reassembly.add(b"honest", 1, mine[0], 0.0)
    for sequence in range(1, 50):
        reassembly.add(b"flood", 1, first_fragment(1_000_000, sequence), 1.0)
    assert len(reassembly) <= 1 + PARTIAL_BYTES_OF_ONE_MAX // 1_000_000
    assert rejection_log.counts["incomplete fragments discarded"] >= 40
    reassembly.add(b"honest", 1, mine[1], 2.0)
    whole = reassembly.add(b"honest", 1, mine[2], 2.0)
    assert whole is not None
    assert whole.body == bytes_of(300)


def test_many_senders_together_stay_within_the_limit() -> None:
    rejection_log = RejectionLog("a")
    reassembly = Reassembly(rejection_log)
    for sender in range(100):
        reassembly.add(b"%d" % sender, 1, first_fragment(1_000_000), float(sender))
    assert len(reassembly) <= PARTIAL_BYTES_MAX // 1_000_000


def test_small_bodies_are_counted_too() -> None:
    reassembly = Reassembly(RejectionLog("a"))
    for sequence in range(1, 20_000):
        reassembly.add(b"s", 1, first_fragment(129, sequence), 0.0)
    assert len(reassembly) <= PARTIAL_BYTES_OF_ONE_MAX // 1024
