"""The recorder: the events of a member, row by row."""

from typing import Any

import msgspec
import pytest

from priocast.core.errors import UnreadableTrace
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Reference, Scope, pack, reference_to
from priocast.core.protocol import Packet
from priocast.core.quality import atomic, delta
from priocast.core.stamp import DistributionId, Stamp
from priocast.core.starvation import FirstInFirstOut, parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import Eviction, ViewReason
from priocast.membership.departure import Departed
from priocast.membership.packets import Ordering
from priocast.services.outputs import SendReceipt
from priocast.services.packets import ServiceData, ServiceStream, TransmissionId
from priocast.services.units import deliveries_of
from priocast.trace.recorder import Recorder, view_order
from priocast.trace.schema import GroupEventRow, MessageRow, ServiceRow, TraceRow

A, B = ProcessId("a", 3), ProcessId("b", 4)
AGEING = "ageing:20ms"
SEQUENCED = Ordering("sequencer-ub", True, "none")
FOUNDED, LEFT = ViewReason(founded=True), ViewReason(left=("a",))
ALONE, BOTH = View(9, (A,)), View(10, (B, A))
COLUMNS = (
    "step",
    "time_ns",
    "event",
    "packet",
    "peer",
    "sender",
    "level",
    "first",
    "count",
    "position",
    "backlog",
)


class Submit(Packet, frozen=True, tag="submit"):
    batches: tuple[Batch, ...]


class Ordered(Packet, frozen=True, tag="ordered"):
    position: int
    batches: tuple[Batch, ...]


class ByReference(Packet, frozen=True, tag="named"):
    position: int
    references: tuple[Reference, ...]


class Report(Packet, frozen=True, tag="report"):
    consumed: int


def _recorder(view: View = ALONE) -> tuple[Recorder, list[Any]]:
    rows: list[TraceRow] = []
    recorder = Recorder(A, rows.append)
    recorder.installed(view)
    return recorder, rows


def _cells(rows: list[MessageRow]) -> list[tuple[object, ...]]:
    return [tuple(getattr(row, column) for column in COLUMNS) for row in rows]


def test_the_rows_of_a_tiny_run() -> None:
    recorder, rows = _recorder()
    urgent, routine = pack(A, 200, 0, [b"z"]), pack(A, 7, 0, [b"x", b"y"])
    recorder.view(ALONE, SEQUENCED, 0, FOUNDED, now=1)
    for backlog, batch in enumerate((urgent, routine)):
        recorder.broadcast(batch, now=2, backlog=backlog)
    recorder.sent(Submit((urgent, routine)), A, now=2, backlog=0)
    recorder.received(Submit((urgent, routine)), A, now=2, backlog=0)
    recorder.sent(Ordered(0, (urgent, routine)), None, now=2, backlog=0)
    recorder.received(Ordered(0, (urgent, routine)), A, now=2, backlog=0)
    recorder.delivered(OrderedBatch(ALONE.id, 0, urgent), 1, now=3, backlog=0)
    recorder.delivered(OrderedBatch(ALONE.id, 1, routine), 1, now=3, backlog=0)
    view, *messages = rows
    assert isinstance(view, GroupEventRow) and (view.step, view.time_ns, view.event) == (0, 1, "view")
    assert _cells(messages) == [
        (1, 2, "broadcast", "", "", "a", 200, 0, 1, -1, 0),
        (2, 2, "broadcast", "", "", "a", 7, 0, 2, -1, 1),
        (3, 2, "sent", "submit", "a", "a", 200, 0, 1, -1, 0),
        (4, 2, "sent", "submit", "a", "a", 7, 0, 2, -1, 0),
        (5, 2, "received", "submit", "a", "a", 200, 0, 1, -1, 0),
        (6, 2, "received", "submit", "a", "a", 7, 0, 2, -1, 0),
        (7, 2, "sent", "ordered", "", "a", 200, 0, 1, 0, 0),
        (8, 2, "sent", "ordered", "", "a", 7, 0, 2, 1, 0),
        (9, 2, "received", "ordered", "a", "a", 200, 0, 1, 0, 0),
        (10, 2, "received", "ordered", "a", "a", 7, 0, 2, 1, 0),
        (11, 3, "delivered", "", "", "a", 200, 0, 1, 0, 0),
        (12, 3, "delivered", "", "", "a", 7, 0, 1, 1, 0),
    ]
    assert {(row.member, row.incarnation, row.view, row.coordinator) for row in rows} == {("a", 3, 9, "a#3")}
    assert {row.sender_incarnation for row in messages} == {3}


def test_a_row_contains_the_request_of_the_client() -> None:
    recorder, rows = _recorder()
    recorder.broadcast(pack(A, 0, 0, [b"1"], scope=Scope(client="k#2", request=5)), now=1, backlog=0)
    recorder.broadcast(pack(A, 0, 1, [b"2"]), now=1, backlog=0)
    assert [(row.client, row.request, row.packet) for row in rows] == [("k#2", 5, ""), ("", 0, "")]


def test_packets_without_messages_are_not_recorded() -> None:
    recorder, rows = _recorder()
    recorder.sent(Report(5), B, now=1, backlog=0)
    recorder.received(Report(5), B, now=1, backlog=0)
    assert rows == []


def test_only_packets_with_messages_are_observed() -> None:
    recorder, _ = _recorder()
    observed = [packet for packet in (Submit, Ordered, ByReference, Report) if recorder.observes(packet)]
    assert observed == [Submit, Ordered, ByReference]


def test_a_view_contains_its_members_and_its_orderer() -> None:
    recorder, rows = _recorder()
    recorder.view(BOTH, SEQUENCED, 17, FOUNDED, now=1)
    recorder.view(BOTH, Ordering("token-ring", True, "none"), 17, FOUNDED, now=1)
    assert [(row.view, row.coordinator, row.members, row.position) for row in rows] == [
        (10, "b#4", ("b#4", "a#3"), 17)
    ] * 2
    assert [row.orderer for row in rows] == ["b#4", ""]


@pytest.mark.parametrize(
    "reason",
    [
        FOUNDED,
        ViewReason(joined=("a", "d"), left=("b",), failed=("c",)),
        ViewReason(evicted=(Eviction("c", "slow", "3 s"), Eviction("d", "overflow"))),
        ViewReason(merged=("e",), order="token-ring"),
        ViewReason(),
    ],
    ids=str,
)
def test_the_reason_for_a_view_is_recorded_as_columns(reason: ViewReason) -> None:
    recorder, rows = _recorder()
    recorder.view(BOTH, SEQUENCED, 17, reason, now=1)
    (row,) = rows
    assert row.reason == reason
    assert (row.founded, row.joined, row.left, row.failed) == reason_columns(reason)
    assert row.evicted == tuple((each.member, each.cause, each.detail) for each in reason.evicted)
    assert (row.merged, row.order_change) == (reason.merged, reason.order)


def reason_columns(reason: ViewReason) -> tuple[object, ...]:
    return reason.founded, reason.joined, reason.left, reason.failed


def test_a_view_contains_how_it_is_ordered() -> None:
    recorder, rows = _recorder()
    for ordering in (
        SEQUENCED,
        Ordering("sequencer-ub", False, "none"),
        Ordering("token-ring", True, AGEING),
    ):
        recorder.view(ALONE, ordering, 0, FOUNDED, now=1)
    recorder.stopped(Departed(True, LEFT), now=2)
    sequenced, plain, ringed = (row.view_order for row in rows[:3])
    assert (sequenced.order, sequenced.policy, sequenced.priorities_act) == (
        "sequencer-ub",
        "none",
        "sequencing",
    )
    assert sequenced.sends_by_priority and not sequenced.is_plain
    assert plain.is_plain and plain.starvation == FirstInFirstOut()
    assert (ringed.priorities_act, ringed.starvation) == ("sending", parse_starvation(AGEING))
    assert rows[3].order == ""


@pytest.mark.parametrize("policy", ["", "soon", "ageing:never"])
def test_a_view_with_an_unknown_starvation_policy_is_unreadable(policy: str) -> None:
    recorder, rows = _recorder()
    recorder.view(ALONE, SEQUENCED, 0, FOUNDED, now=1)
    assert rows[0].view_order == view_order(SEQUENCED)
    with pytest.raises(UnreadableTrace, match="view 9@a#3 has an unknown starvation policy"):
        assert rows[0]._replace(starvation=policy).view_order


def test_a_view_with_an_unknown_cause_of_eviction_is_unreadable() -> None:
    recorder, rows = _recorder()
    recorder.view(ALONE, SEQUENCED, 0, FOUNDED, now=1)
    with pytest.raises(UnreadableTrace, match="view 9@a#3 has an unknown eviction"):
        assert rows[0]._replace(evicted=(("b", "whim", ""),)).reason


def test_a_referenced_batch_has_no_bytes() -> None:
    recorder, rows = _recorder()
    batch = pack(A, 0, 4, [b"1", b"2"], bytes([3, 9]), Scope(safe=True, to=("a",)))
    recorder.sent(Submit((batch,)), None, now=1, backlog=0)
    recorder.sent(ByReference(7, (reference_to(batch), reference_to(batch))), None, now=1, backlog=0)
    assert [(row.first, row.count, row.position) for row in rows] == [(4, 2, -1), (4, 2, 7), (4, 2, 9)]
    assert [(row.bytes > 0, row.priorities, row.safe, row.to) for row in rows] == [
        (True, bytes([3, 9]), True, "a"),
        (False, b"", False, ""),
        (False, b"", False, ""),
    ]


def test_rows_have_the_view_of_the_protocol_and_deliveries_their_own() -> None:
    """The application may consume messages of the previous view when the protocol is in the next one."""
    recorder, rows = _recorder(ALONE)
    batch = pack(A, 0, 0, [b"1"])
    recorder.broadcast(batch, now=1, backlog=0)
    recorder.installed(BOTH)
    recorder.broadcast(batch, now=2, backlog=0)
    recorder.delivered(OrderedBatch(ALONE.id, 5, batch), 1, now=3, backlog=0)
    recorder.view(BOTH, SEQUENCED, 6, FOUNDED, now=4)
    recorder.delivered(OrderedBatch(BOTH.id, 6, batch), 1, now=5, backlog=0)
    assert [(row.event, row.view, row.coordinator) for row in rows] == [
        ("broadcast", 9, "a#3"),
        ("broadcast", 10, "b#4"),
        ("delivered", 9, "a#3"),
        ("view", 10, "b#4"),
        ("delivered", 10, "b#4"),
    ]


def test_before_any_view_a_row_has_none() -> None:
    rows: list[TraceRow] = []
    Recorder(A, rows.append).broadcast(pack(A, 0, 0, [b"1"]), now=1, backlog=0)
    assert (rows[0].view, rows[0].coordinator) == (0, "")


def test_a_state_and_a_stop_are_recorded() -> None:
    recorder, rows = _recorder(BOTH)
    recorder.restored(BOTH, 40, 1000, now=1)
    recorder.stopped(Departed(True, LEFT), now=2)
    assert [(row.event, row.reason, row.view, row.position, row.state_bytes) for row in rows] == [
        ("state", ViewReason(), 10, 40, 1000),
        ("stopped", LEFT, 10, -1, 0),
    ]
    assert [row.voluntary for row in rows] == [False, True]
    assert {(row.members, row.order) for row in rows} == {((), "")}


@pytest.mark.parametrize(("taken", "count"), [(0, 1), (1, 2), (3, 1)])
def test_consuming_a_part_records_that_part(taken: int, count: int) -> None:
    recorder, rows = _recorder()
    scope = Scope(safe=True, to=("a", "c"))
    batch = pack(B, 0, 50, [b"1", b"2", b"3", b"4"], bytes([1, 2, 3, 4]), scope)
    ordered_batch = OrderedBatch(ALONE.id, 100, batch)
    ordered_batch.taken = taken
    recorder.delivered(ordered_batch, count, now=5, backlog=6)
    (row,) = rows
    assert (row.first, row.count, row.position) == (50 + taken, count, 100 + taken)
    assert row.priorities == bytes([1, 2, 3, 4])[taken : taken + count]
    assert row.bytes == len(batch.block) * count // 4
    assert (row.sender, row.sender_incarnation, row.backlog) == ("b", 4, 6)
    assert (row.safe, row.to) == (True, "a,c")


def test_consuming_all_at_once_records_the_whole_batch() -> None:
    recorder, rows = _recorder()
    batch = pack(B, 8, 0, [b"1", b"2"])
    recorder.delivered(OrderedBatch(ALONE.id, 0, batch), 2, now=5, backlog=0)
    assert (rows[0].count, rows[0].bytes, rows[0].level) == (2, len(batch.block), 8)
    assert (rows[0].safe, rows[0].to) == (False, "")


def test_the_rows_of_a_message_with_a_quality() -> None:
    recorder, rows = _recorder()
    message = TransmissionId(A, ServiceStream.ATOMIC, 4)
    data = ServiceData(message, 1, atomic(acknowledged=True), (A, B), 9, (b"xx", b"yyy"))
    recorder.service_sent(data, now=5)
    recorder.service_delivered(deliveries_of(data)[1], now=6)
    recorder.service_finished(
        SendReceipt(message=message, accepted=False, answered=("a",), rejected={"b": "no room"}, rounds=2),
        now=7,
    )
    sent, delivered, finished = rows
    name = ("a", 3, "atomic", 4)
    here = ("a", 3, 9, "a#3")
    quality: dict[str, Any] = {"quality": "atomic:acknowledged", "priority": 9, "recipients": ("a#3", "b#4")}
    assert sent == ServiceRow(*here, 0, 5, "sent", *name, units=2, bytes=5, **quality)
    assert delivered == ServiceRow(*here, 1, 6, "delivered", *name, unit=1, bytes=3, **quality)
    assert finished == ServiceRow(
        *here, 2, 7, "finished", *name, answered=("a",), rejected=("b",), reasons=("no room",), rounds=2
    )


def test_a_late_delivery_is_recorded_as_late() -> None:
    recorder, rows = _recorder()
    data = ServiceData(TransmissionId(A, ServiceStream.DISSEMINATED, 1), 1, delta(5), (A, B), 9, (b"x",))
    (unit,) = deliveries_of(data)
    recorder.service_delivered(unit, now=6)
    recorder.service_delivered(msgspec.structs.replace(unit, late_ms=2.5), now=7)
    assert [row.reasons for row in rows] == [(), ("late",)]


def test_a_delivery_has_the_stamp_of_its_first_message() -> None:
    recorder, rows = _recorder()
    batch = pack(A, 0, 0, [b"1", b"2", b"3"])
    stamp = Stamp(ALONE.id, DistributionId(2, 1), 40)
    recorder.delivered(OrderedBatch(ALONE.id, 7, batch, taken=1, stamp=stamp), 2, now=5, backlog=0)
    recorder.delivered(OrderedBatch(ALONE.id, 7, batch), 3, now=5, backlog=0)
    assert [(row.distribution, row.stamp_number) for row in rows] == [("2.1", 41), ("", -1)]
