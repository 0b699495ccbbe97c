"""The table of sessions: what is known of commands, and what is forgotten, within bounds."""

import msgspec
import pytest

from priocast.replication.commands import CommandId
from priocast.replication.session_table import SessionTable
from priocast.replication.sessions import (
    FORGOTTEN,
    OUTSTANDING_MAX,
    RESULTS_BYTES_MAX,
    RESULTS_MAX,
    SESSIONS_MAX,
    VOID,
    CommandSession,
    Outcome,
)


def command(number: int, session: str = "a#1") -> CommandId:
    return CommandId(session, number)


def applied(table: SessionTable, number: int, floor: int = 0, session: str = "a#1") -> Outcome | None:
    """Deliver a command, and apply it if it is new; return the outcome of one that is not."""
    known = table.on_command(command(number, session), floor, frozenset({"a"}))
    if known is None:
        table.add(command(number, session), Outcome("applied", str(number).encode()))
    return known


def test_a_command_that_was_applied_is_known_whatever_came_between() -> None:
    table = SessionTable()
    assert [applied(table, number) for number in (3, 0, 1)] == [None] * 3, "urgent ones overtake"
    assert [applied(table, number) for number in (1, 3)] == [
        Outcome("applied", b"1"),
        Outcome("applied", b"3"),
    ]
    assert applied(table, 2) is None


def test_outcomes_below_the_floor_are_forgotten_and_not_applied_again() -> None:
    table = SessionTable()
    for number in range(5):
        applied(table, number)
    applied(table, 5, floor=4)
    assert [table.outcome(command(number)) for number in (3, 4)] == [FORGOTTEN, Outcome("applied", b"4")]
    assert applied(table, 3) == FORGOTTEN
    applied(table, 1 << 40, floor=1 << 40)
    assert table.sessions["a#1"].size == len(str(1 << 40))
    assert applied(table, 1, floor=0) == FORGOTTEN, "a floor never sinks"


def test_a_command_that_was_settled_first_is_never_applied() -> None:
    table = SessionTable()
    applied(table, 0)
    assert table.settle(command(1), is_own=False) == VOID
    assert applied(table, 1) == VOID
    assert table.settle(command(0), is_own=False) == Outcome("applied", b"0")
    assert table.settle(command(0, "b#1"), is_own=False) == FORGOTTEN, "it may have been applied, long ago"
    assert table.settle(command(0, "b#1"), is_own=True) == VOID
    assert applied(table, 0, session="b#1") == VOID


def test_a_session_keeps_the_last_results_only() -> None:
    session = CommandSession()
    for number in range(RESULTS_MAX + 10):
        session.add(number, Outcome("applied", b"x"))
    assert session.outcome(9) == FORGOTTEN
    assert session.outcome(10) == Outcome("applied", b"x")
    session.add(RESULTS_MAX + 10, Outcome("applied", bytes(RESULTS_BYTES_MAX)))
    assert session.outcome(RESULTS_MAX + 9) == FORGOTTEN
    assert session.outcome(RESULTS_MAX + 10) == Outcome("applied", bytes(RESULTS_BYTES_MAX))
    assert len(session.results) == 1


def test_numbers_far_above_the_floor_are_not_accepted() -> None:
    table = SessionTable()
    applied(table, 0)
    assert applied(table, OUTSTANDING_MAX) == FORGOTTEN
    assert table.settle(command(OUTSTANDING_MAX), is_own=True) == FORGOTTEN
    assert applied(table, OUTSTANDING_MAX - 1) is None


def test_of_too_many_sessions_one_of_a_process_that_is_gone_is_forgotten() -> None:
    table = SessionTable()
    applied(table, 0, session="a#1")
    for number in range(SESSIONS_MAX):
        applied(table, 0, session=f"x{number}#1")
    assert len(table.sessions) == SESSIONS_MAX
    assert table.outcome(command(0, "a#1")) is not None, "a is in the view"
    assert table.outcome(command(0, "x0#1")) is None
    assert applied(table, 1, floor=1, session="x0#1") == FORGOTTEN, "it must not begin anew"


def test_the_session_of_the_command_that_is_applied_is_never_the_one_forgotten() -> None:
    table = SessionTable()
    for number in range(SESSIONS_MAX):
        applied(table, 0, session=f"a#{number}")
    assert applied(table, 0, session="x#1") is None, "its process is gone, and all others are in the view"
    assert table.outcome(command(0, "x#1")) == Outcome("applied", b"0")
    assert table.outcome(command(0, "a#0")) is None


@pytest.mark.parametrize("kind", ["applied", "failed", "void", "unfinished", "forgotten"])
def test_a_session_survives_being_saved(kind: str) -> None:
    session = CommandSession(3)
    session.add(5, Outcome(kind, b"r" if kind in {"applied", "failed"} else b""))  # type: ignore[arg-type]
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(session), type=CommandSession)
    assert again == session
