"""Batches: encoding, decoding, cutting, and damaged ones."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builders import A, B, batch_of, levels, payload_lists
from priocast.core.identity import MessageId, ProcessId
from priocast.core.message import (
    BATCH_COUNT_MAX,
    CONTROL,
    PAYLOAD_BYTES_MAX,
    TO_ALL,
    Batch,
    OrderedBatch,
    Scope,
    pack,
)
from priocast.core.priority import HIGHEST, class_of
from priocast.core.view import ViewId

_over_the_wire = msgspec.msgpack.Decoder(Batch).decode


@given(levels, st.integers(0, 2**40), payload_lists)
def test_a_batch_decodes_to_its_payloads_also_after_the_wire(
    level: int, first: int, payloads: list[bytes]
) -> None:
    batch = pack(A, level, first, payloads)
    received = _over_the_wire(msgspec.msgpack.encode(batch))
    assert received == batch
    assert received.payloads() == payloads


def test_a_batch_reads_as_the_ids_of_its_messages() -> None:
    assert str(batch_of(5, level=96, first=7)) == "a#1/96/7+5"


@pytest.mark.parametrize("block", [b"", b"\xc1", b"\x92\xc4\x01a", b"\xa1a", b"\x91\x07"])
def test_a_damaged_block_has_empty_messages(block: bytes) -> None:
    damaged = Batch(A, 0, 0, 1, block)
    assert damaged.payloads() == [b""] and damaged.readable_payloads() is None
    ordered = OrderedBatch(ViewId(1, A), 0, damaged)
    assert ordered.payloads == [b""] and ordered.damaged


@pytest.mark.parametrize("count", [1, 3])
def test_a_block_with_another_number_of_messages_is_damaged(count: int) -> None:
    honest = batch_of(2)
    assert Batch(A, 0, 0, count, honest.block).payloads() == [b""] * count


def test_missing_priorities_read_as_the_level() -> None:
    plain = Batch(A, 0, 0, 3, batch_of(3).block, b"\x07\x08")
    assert [plain.priority_of(index) for index in range(3)] == [7, 8, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        Batch(A, 257, 0, 1, b"x"),
        Batch(A, -1, 0, 1, b"x"),
        Batch(A, 0, -1, 1, b"x"),
        Batch(A, 0, 0, 0, b"x"),
        Batch(A, 0, 0, BATCH_COUNT_MAX + 1, b"x"),
        Batch(A, 0, 0, 1, bytes(2 * PAYLOAD_BYTES_MAX)),
        Batch(A, 0, 0, 1, b"x", bytes(BATCH_COUNT_MAX + 1)),
    ],
    ids=["level", "negative-level", "number", "empty", "count", "bytes", "priorities"],
)
def test_values_out_of_bounds_are_not_decoded(wrong: Batch) -> None:
    with pytest.raises(msgspec.ValidationError):
        _over_the_wire(msgspec.msgpack.encode(wrong))


def test_the_largest_payload_fits_into_a_batch() -> None:
    batch = pack(A, 0, 0, [bytes(PAYLOAD_BYTES_MAX)])
    assert _over_the_wire(msgspec.msgpack.encode(batch)) == batch


def test_a_prioritised_batch_has_the_priority_of_its_level_and_a_plain_one_the_requested_ones() -> None:
    payloads = [b"x", b"y"]
    prioritised = pack(A, 224, 0, payloads)
    plain = pack(A, 0, 0, payloads, bytes([7, 224]))
    assert [prioritised.priority_of(index) for index in (0, 1)] == [224, 224]
    assert [plain.priority_of(index) for index in (0, 1)] == [7, 224]


@given(payload_lists, st.data(), st.booleans())
def test_the_rest_after_the_first_messages_is_a_batch(
    payloads: list[bytes], data: st.DataObject, plain: bool
) -> None:
    scope = Scope(safe=True, to=("b",), client="k#1", request=3)
    priorities = bytes(index % 256 for index in range(len(payloads))) if plain else b""
    batch = pack(B, 7, 40, payloads, priorities, scope)
    count = data.draw(st.integers(0, len(payloads) - 1))
    rest = batch.after(count)
    assert rest == pack(B, 7, 40 + count, payloads[count:], priorities[count:], scope)
    assert [rest.priority_of(index) for index in range(rest.count)] == [
        batch.priority_of(count + index) for index in range(rest.count)
    ]


def test_a_whole_batch_is_the_same_batch_and_is_not_decoded() -> None:
    damaged = Batch(A, 0, 0, 2, b"not a block")
    assert damaged.after(0) is damaged


def test_a_batch_of_a_plain_view_is_more_urgent_than_its_level() -> None:
    prioritised, plain = pack(A, 7, 0, [b"x"]), pack(A, 0, 0, [b"x"], bytes([3]))
    assert (prioritised.urgency, plain.urgency) == (7, 255)


def test_a_control_message_is_more_urgent_than_any_message() -> None:
    control = _over_the_wire(msgspec.msgpack.encode(pack(A, CONTROL, 0, [b"x"])))
    assert control.urgency > pack(A, HIGHEST, 0, [b"x"]).urgency
    assert class_of(control.urgency) == class_of(HIGHEST)


def test_a_batch_in_line_has_one_priority_per_message() -> None:
    batch = pack(A, 7, 4, [b"x", b"y"], scope=Scope(safe=True))
    in_line = batch.in_line()
    assert in_line == pack(A, 7, 4, [b"x", b"y"], bytes([7, 7]), Scope(safe=True))
    assert [in_line.priority_of(index) for index in (0, 1)] == [7, 7]
    assert in_line.in_line() is in_line


def test_a_control_message_has_no_priorities_in_line() -> None:
    control = pack(A, CONTROL, 0, [b"x"])
    assert control.in_line() is control


class TestScope:
    def test_without_names_a_message_is_for_all_members(self) -> None:
        assert TO_ALL.includes(A)
        assert Scope(safe=True).includes(B)

    def test_names_are_of_members_whatever_their_incarnation(self) -> None:
        scope = Scope(to=("a", "c"))
        assert scope.includes(ProcessId("a", 1))
        assert scope.includes(ProcessId("a", 2))
        assert not scope.includes(B)

    def test_it_travels_with_the_batch(self) -> None:
        scope = Scope(safe=True, to=("a", "c"), client="k#1", request=3)
        batch = pack(A, 0, 0, [b"x"], scope=scope)
        assert _over_the_wire(msgspec.msgpack.encode(batch)).scope == scope
        assert _over_the_wire(msgspec.msgpack.encode(batch_of(1))).scope == TO_ALL

    @pytest.mark.parametrize(
        "wrong",
        [
            Scope(to=("a" * 65,)),
            Scope(to=("a",) * 257),
            Scope(client="k" * 129),
            Scope(request=-1),
        ],
        ids=["name", "names", "client", "request"],
    )
    def test_values_out_of_bounds_are_not_decoded(self, wrong: Scope) -> None:
        with pytest.raises(msgspec.ValidationError):
            _over_the_wire(msgspec.msgpack.encode(pack(A, 0, 0, [b"x"], scope=wrong)))


def test_an_ordered_batch_returns_messages_and_decodes_its_block_once() -> None:
    scope = Scope(safe=True)
    view = ViewId(3, A)
    ordered_batch = OrderedBatch(
        view, 40, pack(B, 0, 5, [b"x", b"y"], bytes([1, 2]), scope), dependencies=(1, 9)
    )
    assert ordered_batch.payloads is ordered_batch.payloads
    message = ordered_batch.message(1)
    assert (message.payload, message.priority, message.scope) == (b"y", 2, scope)
    assert message.id == MessageId(B, 0, 6)
    assert (ordered_batch.view, ordered_batch.position, ordered_batch.taken, ordered_batch.dependencies) == (
        view,
        40,
        0,
        (1, 9),
    )


@given(payload_lists, st.booleans(), st.data())
def test_a_cut_of_an_ordered_batch_is_a_batch_of_those_messages(
    payloads: list[bytes], plain: bool, data: st.DataObject
) -> None:
    priorities = bytes(index % 256 for index in range(len(payloads))) if plain else b""
    batch = pack(B, 4, 5, payloads, priorities, Scope(safe=True))
    ordered_batch = OrderedBatch(ViewId(1, A), 0, batch)
    start = data.draw(st.integers(0, len(payloads) - 1))
    count = data.draw(st.integers(1, len(payloads) - start))
    end = start + count
    assert ordered_batch.cut(start, count) == pack(
        B, 4, 5 + start, payloads[start:end], priorities[start:end], Scope(safe=True)
    )
    assert ordered_batch.cut(0, len(payloads)) is batch
