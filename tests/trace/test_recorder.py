"""The recorder: a tiny run, row by row."""

import pytest

from priocast.core.identity import ProcessId
from priocast.core.message import Stretch, pack
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.links.fifo_link import LinkOptions
from priocast.member import Member
from priocast.trace.recorder import Recorder
from priocast.trace.schema import Row

A, B = ProcessId("a", 3), ProcessId("b", 4)
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


def _recorded(order: View, **options: object) -> tuple[Member, list[Row]]:
    rows: list[Row] = []
    recorder = Recorder(A, rows.append)
    ordering = OrderingOptions(**options)  # type: ignore[arg-type]
    member = Member(A, order, "sequencer-ub", ordering, LinkOptions(), recorder)
    member.start(now=1)
    return member, rows


def _cells(rows: list[Row]) -> list[tuple[object, ...]]:
    return [tuple(getattr(row, column) for column in COLUMNS) for row in rows]


def test_the_rows_of_a_tiny_run() -> None:
    member, rows = _recorded(View(9, (A,)), window=3)
    member.broadcast_many([b"x", b"y"], 7)
    member.broadcast(b"z", 200)
    member.turn(now=2)
    for count in (1, 1, 1):
        member.consume(count, now=3)
    assert _cells(rows) == [
        (0, 1, "view", "", "a#3", "", 0, 0, 0, 0, 0),
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
        (13, 3, "delivered", "", "", "a", 7, 1, 1, 2, 0),
    ]
    assert {(row.member, row.incarnation, row.view) for row in rows} == {("a", 3, 9)}
    assert {row.sender_incarnation for row in rows[1:]} == {3}


def test_packets_without_messages_leave_no_row() -> None:
    member, rows = _recorded(View(1, (A,)), window=1)
    member.broadcast(b"x", 0)
    member.turn(now=0)
    member.consume(1, now=0)
    before = len(rows)
    member.turn(now=0)  # the report of consumption
    assert len(rows) == before


def test_a_view_lists_its_members_with_their_lives() -> None:
    _, rows = _recorded(View(2, (A, B)))
    assert rows[0].peer == "a#3,b#4"


@pytest.mark.parametrize(("taken", "count"), [(0, 1), (1, 2), (3, 1)])
def test_consuming_a_part_records_that_part(taken: int, count: int) -> None:
    rows: list[Row] = []
    batch = pack(B, 0, 50, [b"1", b"2", b"3", b"4"], bytes([1, 2, 3, 4]))
    stretch = Stretch(100, batch)
    stretch.taken = taken
    Recorder(A, rows.append).delivered(stretch, count, now=5, backlog=6)
    (row,) = rows
    assert (row.first, row.count, row.position) == (50 + taken, count, 100 + taken)
    assert row.priorities == bytes([1, 2, 3, 4])[taken : taken + count]
    assert row.bytes == len(batch.block) * count // 4
    assert (row.sender, row.sender_incarnation, row.backlog) == ("b", 4, 6)


def test_consuming_all_at_once_records_the_batch_as_it_came() -> None:
    rows: list[Row] = []
    batch = pack(B, 8, 0, [b"1", b"2"])
    Recorder(A, rows.append).delivered(Stretch(0, batch), 2, now=5, backlog=0)
    assert (rows[0].count, rows[0].bytes, rows[0].level) == (2, len(batch.block), 8)
