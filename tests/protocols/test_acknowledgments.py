"""Acknowledgments: each member sends one for each packet of data, in order and for all batches."""

import msgspec
import pytest

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.membership.options import MEMBERS_MAX
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.protocols.reorder.acknowledgments import (
    PER_PACKET_MAX,
    Acknowledgment,
    Acknowledgments,
    AcknowledgmentsToAll,
    Decision,
    Decisions,
    in_packets,
)
from priocast.protocols.reorder.exchange import Complete, Exchange, ExchangePackets
from priocast.protocols.reorder.level_order import Insertion
from priocast.protocols.reorder.lock_packets import LockAcknowledgment, LockAcknowledgments
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.message_ranges import MessageRange

MEMBERS = tuple(map(ProcessId, "abc"))
PACKETS = ExchangePackets(Acknowledgments, AcknowledgmentsToAll, Decisions)


def distributed_exchange() -> Exchange[Insertion, Acknowledgment, Decision]:
    def decision(number: int, acknowledgments: list[Acknowledgment]) -> Decision:
        return Decision(number, acknowledgments[0].proposals)

    return Exchange(MEMBERS[1], MEMBERS, True, PACKETS, decision, lambda *_: None, lambda *_: None)


def acknowledgment(number: int, *proposals: int, sender: int = 0) -> Acknowledgment:
    return Acknowledgment(sender, number, proposals or (1,))


def test_the_last_acknowledgment_completes_them_by_rank() -> None:
    exchange = distributed_exchange()
    assert exchange.collect(2, acknowledgment(0, 5), (2, 1)) is None
    assert exchange.collect(0, acknowledgment(0, 3), (0, 1)) is None
    complete = exchange.collect(1, acknowledgment(0, 4), (1, 1))
    assert complete == Complete(
        [acknowledgment(0, 3), acknowledgment(0, 4), acknowledgment(0, 5)], [(0, 1), (1, 1), (2, 1)]
    )


def test_each_sender_has_its_own_numbers() -> None:
    exchange = distributed_exchange()
    for sender in range(3):
        for number in range(2):
            assert exchange.collect(0, acknowledgment(number, sender=sender), (0, 1)) is None


@pytest.mark.parametrize("number", [0, 2])
def test_an_acknowledgment_out_of_order_is_rejected(number: int) -> None:
    exchange = distributed_exchange()
    exchange.collect(2, acknowledgment(0), (2, 1))
    with pytest.raises(PeerFault, match=rf"c#1 acknowledges data \(0, {number}\); expected number 1"):
        exchange.collect(2, acknowledgment(number), (2, 2))


def test_an_acknowledgment_after_the_last_one_is_rejected() -> None:
    exchange = distributed_exchange()
    for rank in range(3):
        exchange.collect(rank, acknowledgment(0), (rank, 1))
    with pytest.raises(PeerFault, match="expected number 1"):
        exchange.collect(2, acknowledgment(0), (2, 2))


def test_an_acknowledgment_of_an_unknown_sender_is_rejected() -> None:
    with pytest.raises(PeerFault, match="data of rank 3, which is no member"):
        distributed_exchange().collect(2, acknowledgment(0, sender=3), (2, 1))


@pytest.mark.parametrize("last", [0, 1, 2])
def test_the_error_names_the_member_that_does_not_acknowledge_each_batch(last: int) -> None:
    """Not the one whose acknowledgment is the last."""
    exchange = distributed_exchange()
    acknowledgments = {0: acknowledgment(0, 2, 2), 1: acknowledgment(0, 1, 1), 2: acknowledgment(0, 1)}
    for rank in {0, 1, 2} - {last}:
        assert exchange.collect(rank, acknowledgments[rank], (0, 1)) is None
    with pytest.raises(PeerFault, match=r"c#1 does not acknowledge each batch of data \(0, 0\)"):
        exchange.collect(last, acknowledgments[last], (0, 1))


class SizedAcknowledgment(Acknowledgment, frozen=True, array_like=True):
    """An acknowledgment of any size."""

    entries: int = 0

    @property
    def entry_count(self) -> int:
        return self.entries


def test_acknowledgments_share_a_packet_as_far_as_it_has_room() -> None:
    small = [acknowledgment(number) for number in range(PER_PACKET_MAX + 1)]
    assert in_packets(small) == [tuple(small[:PER_PACKET_MAX]), (small[-1],)]
    sizes = (20_000, 12_768, 1, 99_999, 5)
    large = [SizedAcknowledgment(0, number, (1,), size) for number, size in enumerate(sizes)]
    assert in_packets(large) == [tuple(large[:2]), (large[2],), (large[3],), (large[4],)]
    assert in_packets(large[3:4]) == [(large[3],)]
    assert in_packets([]) == []


def test_the_largest_acknowledgment_fits_into_a_frame() -> None:
    """All that may be queued is locked for each batch of a frame, and every sender has used all levels."""
    tail = tuple(MessageRange(200, 60, 1 << 40, 4096) for _ in range(ReorderLocks.QUEUED_MAX))
    batches = ReorderLocks.FRAME_BATCHES_MAX
    history = tuple(
        MessageRange(level, sender, 1 << 40, 4096) for sender in range(MEMBERS_MAX) for level in range(257)
    )
    largest = LockAcknowledgment(60, 1 << 40, (1 << 40,) * batches, (tail,) * batches, history)
    packet = LockAcknowledgments((largest,))
    body = msgspec.msgpack.encode(packet)
    assert len(body) < FRAME_BYTES_MAX
    assert msgspec.msgpack.decode(body, type=LockAcknowledgments) == packet
