"""Batches: closing, opening, cutting, and what a damaged one does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of, levels, payload_lists
from priocast.core.errors import ForeignFrame
from priocast.core.identity import MessageId
from priocast.core.message import BATCH_COUNT_MAX, PAYLOAD_BYTES_MAX, Batch, Stretch, pack

_over_the_wire = msgspec.msgpack.Decoder(Batch).decode


@given(levels, st.integers(0, 2**40), payload_lists)
def test_a_batch_opens_to_what_was_closed_into_it_also_after_the_wire(
    level: int, first: int, payloads: list[bytes]
) -> None:
    batch = pack(A, level, first, payloads)
    received = _over_the_wire(msgspec.msgpack.encode(batch))
    assert received == batch
    assert received.payloads() == payloads


def test_a_batch_names_its_messages() -> None:
    assert str(batch_of(5, level=96, first=7)) == "a#1/96/7+5"


@pytest.mark.parametrize("block", [b"", b"\xc1", b"\x92\xc4\x01a", b"\xa1a", b"\x91\x07"])
def test_a_damaged_block_is_a_foreign_frame(block: bytes) -> None:
    with pytest.raises(ForeignFrame, match="a#1/0/0\\+1 has a damaged block"):
        Batch(A, 0, 0, 1, block).payloads()


@pytest.mark.parametrize("count", [1, 3])
def test_a_batch_that_lies_about_its_count_is_a_foreign_frame(count: int) -> None:
    honest = batch_of(2)
    with pytest.raises(ForeignFrame, match="as many messages as it says"):
        Batch(A, 0, 0, count, honest.block).payloads()


@pytest.mark.parametrize(
    "wrong",
    [
        Batch(A, 256, 0, 1, b"x"),
        Batch(A, -1, 0, 1, b"x"),
        Batch(A, 0, -1, 1, b"x"),
        Batch(A, 0, 0, 0, b"x"),
        Batch(A, 0, 0, BATCH_COUNT_MAX + 1, b"x"),
        Batch(A, 0, 0, 1, bytes(2 * PAYLOAD_BYTES_MAX)),
        Batch(A, 0, 0, 1, b"x", bytes(BATCH_COUNT_MAX + 1)),
    ],
    ids=["level", "negative-level", "number", "empty", "count", "bytes", "priorities"],
)
def test_what_is_out_of_bounds_does_not_come_in_from_the_wire(wrong: Batch) -> None:
    with pytest.raises(msgspec.ValidationError):
        _over_the_wire(msgspec.msgpack.encode(wrong))


def test_the_largest_payload_fits_into_a_batch() -> None:
    batch = pack(A, 0, 0, [bytes(PAYLOAD_BYTES_MAX)])
    assert _over_the_wire(msgspec.msgpack.encode(batch)) == batch


def test_a_prioritised_batch_has_the_priority_of_its_level_and_a_plain_one_those_asked_for() -> None:
    payloads = [b"x", b"y"]
    prioritised = pack(A, 224, 0, payloads)
    plain = pack(A, 0, 0, payloads, bytes([7, 224]))
    assert [prioritised.priority_of(index) for index in (0, 1)] == [224, 224]
    assert [plain.priority_of(index) for index in (0, 1)] == [7, 224]


def test_a_stretch_hands_out_whole_messages_and_opens_its_block_once() -> None:
    stretch = Stretch(40, pack(B, 0, 5, [b"x", b"y"], bytes([1, 2])))
    assert stretch.payloads is stretch.payloads
    message = stretch.message(1)
    assert (message.payload, message.priority) == (b"y", 2)
    assert message.id == MessageId(B, 0, 6)
    assert (stretch.position, stretch.taken) == (40, 0)
