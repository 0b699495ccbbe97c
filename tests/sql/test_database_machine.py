"""The state machine of a database: procedures, schemas, invariants, and what travels to another replica."""

from contextlib import suppress

import msgspec
import pytest

from priocast.core.errors import DatabaseUnusable, ForeignFrame, InvalidInput, StatementRejected
from priocast.replication.commands import CommandId
from priocast.replication.state_machine import Applied, StateMachine
from priocast.sql.database_machine import SavedDatabase
from priocast.sql.function_registry import FunctionRegistry
from priocast.sql.procedures import ProcedureCursor
from priocast.sql.requests import Committed, DefineSchema, RolledBack, bound_parameters
from sql.databases import SENDER, LocalMachine

SCHEMA = (
    "CREATE TABLE seats (id INTEGER PRIMARY KEY, buyer TEXT, CONSTRAINT named CHECK (buyer != ''))",
    "INSERT INTO seats (id) VALUES (1), (2), (3)",
)


def shop(member: str = "a") -> LocalMachine:
    return LocalMachine(SCHEMA, member)


def call(machine: LocalMachine, name: str, **arguments: object) -> Committed | RolledBack:
    """Call a procedure that the group knows."""
    machine.request(DefineSchema((), {}, machine.procedures.digests()))
    return machine.request(machine.procedures.get(name).request(dict(arguments)))  # type: ignore[arg-type]


def test_a_machine_is_a_state_machine() -> None:
    assert isinstance(shop(), StateMachine)


def test_procedures_of_sql_have_named_parameters() -> None:
    machine = shop()
    machine.procedures.add_sql(
        "buy",
        "UPDATE seats SET buyer = :buyer WHERE id = :id; SELECT id FROM seats WHERE buyer = :buyer",
    )
    verdict = call(machine, "buy", id=1, buyer="x")
    assert isinstance(verdict, Committed)
    assert verdict.rows == ((1,),)
    assert machine.rows("SELECT buyer FROM seats WHERE id = 1") == [["x"]]
    missing = call(machine, "buy", id=1)
    assert isinstance(missing, RolledBack)
    assert (missing.kind, "the parameter 'buyer' has no value" in missing.text) == ("rejected", True)


def test_procedures_in_python_decide_by_what_they_read() -> None:
    machine = shop()

    def buy(cursor: ProcedureCursor, buyer: str, count: int = 1) -> list[int]:
        free = cursor.execute("SELECT id FROM seats WHERE buyer IS NULL ORDER BY id LIMIT ?", (count,))
        if len(free) < count:
            raise LookupError(f"only {len(free)} seats left")
        for (seat,) in free:
            cursor.execute("UPDATE seats SET buyer = ? WHERE id = ?", (buyer, seat))
            assert cursor.changed == 1
        return [seat for (seat,) in free if isinstance(seat, int)]

    machine.procedures.add_function("buy", buy)
    verdict = call(machine, "buy", buyer="x", count=2)
    assert isinstance(verdict, Committed)
    assert msgspec.msgpack.decode(verdict.value) == [1, 2]
    verdict = call(machine, "buy", buyer="y", count=2)
    assert verdict == RolledBack("aborted", "LookupError: only 1 seats left")
    assert machine.rows("SELECT count(*) FROM seats WHERE buyer IS NOT NULL") == [[2]]
    with pytest.raises(InvalidInput, match="missing a required argument: 'buyer'"):
        call(machine, "buy")


def test_a_procedure_that_catches_an_error_is_aborted_all_the_same() -> None:
    machine = shop()

    def careless(cursor: ProcedureCursor) -> None:
        cursor.execute("UPDATE seats SET buyer = 'x' WHERE id = 1")
        for _ in range(2):
            with suppress(Exception):
                cursor.execute("UPDATE seats SET buyer = '' WHERE id = 2")

    machine.procedures.add_function("careless", careless)
    verdict = call(machine, "careless")
    assert isinstance(verdict, RolledBack)
    assert verdict.constraint == "named"
    assert machine.rows("SELECT buyer FROM seats WHERE id = 1") == [[None]]


def test_results_must_fit() -> None:
    machine = shop()
    machine.procedures.add_function("huge", lambda _: "x" * 600_000)
    machine.procedures.add_function("strange", lambda _: object())
    verdict = call(machine, "huge")
    assert isinstance(verdict, RolledBack)
    assert verdict.kind == "too-large"
    verdict = call(machine, "strange")
    assert isinstance(verdict, RolledBack)
    assert "cannot be encoded" in verdict.text


def test_a_function_that_the_group_does_not_know_is_rejected() -> None:
    """One member with another version must not stop all others."""
    machine, other = shop(), shop("b")
    machine.procedures.add_function("buy", lambda cursor: cursor.execute("SELECT 1"))
    other.procedures.add_function("buy", lambda cursor: cursor.execute("SELECT 2"))
    request = other.procedures.get("buy").request({})
    assert isinstance(machine.request(request), RolledBack), "nobody has defined it"
    assert isinstance(machine.request(DefineSchema((), {}, machine.procedures.digests())), Committed)
    for odd in (request, DefineSchema((), {}, other.procedures.digests())):
        verdict = machine.request(odd)
        assert isinstance(verdict, RolledBack)
        assert "procedure buy " in verdict.text
    assert isinstance(call(machine, "buy"), Committed)


def test_a_function_is_agreed_on_when_all_members_have_announced_it() -> None:
    registry, one, two = FunctionRegistry(), b"1" * 16, b"2" * 16
    registry.on_members("ab")
    registry.announce("a", {"buy": one, "sell": one})
    registry.announce("b", {"buy": one, "sell": two})
    registry.check_call("buy", one)
    with pytest.raises(StatementRejected, match=r"sell is not the same at every member \(see b\)"):
        registry.check_call("sell", one)
    registry.on_members("ac")
    with pytest.raises(StatementRejected, match=r"\(see c\)"):
        registry.check_call("sell", one)
    registry.check_call("buy", one)  # for ever
    registry.on_members("a")
    registry.check_call("sell", one)
    with pytest.raises(StatementRejected, match="another source in the group"):
        registry.check_announced({"buy": two})
    registry.announce("b", {"late": two})
    registry.on_members("ab")
    with pytest.raises(StatementRejected, match="late"):
        registry.check_call("late", two)


def test_a_replica_without_the_function_of_the_group_stops() -> None:
    machine, other = shop(), LocalMachine(member="b")
    machine.procedures.add_function("buy", lambda cursor: cursor.execute("SELECT 1"))
    assert isinstance(call(machine, "buy"), Committed)
    other.restore(machine.snapshot())
    other.next_position = machine.next_position
    request = machine.procedures.get("buy").request({})
    with pytest.raises(DatabaseUnusable, match="procedure buy is missing here"):
        other.request(request)
    other.procedures.add_function("buy", lambda cursor: cursor.execute("SELECT 2"))
    with pytest.raises(DatabaseUnusable, match="procedure buy has another source here"):
        other.request(request)


def test_a_function_without_a_source_is_known_by_its_code() -> None:
    digests = []
    for program in ("1", "1 ", "2", "[each for each in (1, 2)]", "[each for each in (1, 3)]", "other"):
        machine = shop()
        machine.procedures.add_function("a", eval(f"lambda cursor: {program}"))  # noqa: S307  # our own
        digests.append(machine.procedures.get("a").request({}).digest)  # type: ignore[union-attr]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 5


def test_errors_of_the_machine_stop_the_replica() -> None:
    machine = shop()

    def reads_a_file(cursor: ProcedureCursor) -> None:
        raise FileNotFoundError("prices.txt")

    machine.procedures.add_function("bad", reads_a_file)
    with pytest.raises(FileNotFoundError):
        call(machine, "bad")
    assert isinstance(machine.run("SELECT 1"), Committed), "the transaction was rolled back"


def test_procedures_are_checked_when_they_are_defined() -> None:
    table = shop().procedures

    async def waits(cursor: ProcedureCursor) -> None:
        """Waits for something."""

    table.add_sql("a", "SELECT 1")
    table.add_sql("a", "SELECT 1")
    for define, reason in (
        (lambda: table.add_sql("a", "SELECT 2"), "another procedure a already"),
        (lambda: table.add_sql("b", "  "), "has no statement"),
        (lambda: table.add_sql("", "SELECT 1"), "1 to 128 characters"),
        (lambda: table.add_function("c", waits), "must not wait"),
        (lambda: table.get("d"), r"no procedure 'd' \(known: a\)"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            define()


def test_a_schema_is_executed_once() -> None:
    machine = shop()
    schema = DefineSchema(("CREATE TABLE x (id INTEGER PRIMARY KEY)", "INSERT INTO x VALUES (1)"), {})
    for _ in range(2):
        assert isinstance(machine.request(schema), Committed)
    assert machine.rows("SELECT count(*) FROM x") == [[1]]
    other = LocalMachine(member="b")
    other.restore(machine.snapshot())
    other.next_position = machine.next_position
    assert isinstance(other.request(schema), Committed)
    assert other.rows("SELECT count(*) FROM x") == [[1]]
    without_key = DefineSchema(("CREATE TABLE y (id)",), {})
    verdict = machine.request(without_key)
    assert isinstance(verdict, RolledBack)
    assert "table y has no primary key" in verdict.text


def test_invariants_are_queries_that_return_no_row() -> None:
    machine = shop()
    twice = {"once": "SELECT buyer FROM seats GROUP BY buyer HAVING buyer IS NOT NULL AND count(*) > 1"}
    for bad, reason in (
        ({"writes": "DELETE FROM seats"}, "must be a query"),
        ({"violated": "SELECT id FROM seats"}, "invariant violated would be violated"),
        ({"unknown": "SELECT id FROM nowhere"}, "no such table"),
    ):
        verdict = machine.request(DefineSchema((), bad))
        assert isinstance(verdict, RolledBack)
        assert reason in verdict.text
    assert isinstance(machine.request(DefineSchema((), twice)), Committed)
    assert isinstance(machine.run("UPDATE seats SET buyer = 'x' WHERE id = 1"), Committed)
    verdict = machine.run("UPDATE seats SET buyer = 'x' WHERE id = 2")
    assert verdict == RolledBack("aborted", "invariant once would be violated: ('x',)", "once")
    other = LocalMachine(member="b")
    other.restore(machine.snapshot())
    other.next_position = machine.next_position
    assert other.run("UPDATE seats SET buyer = 'x' WHERE id = 2") == verdict


def test_foreign_snapshots_and_commands_are_rejected() -> None:
    machine = shop()
    before = machine.lines()
    for data, reason in (
        (b"\x00", "cannot be read"),
        (
            msgspec.msgpack.encode(SavedDatabase("postgresql", b"", [], {}, FunctionRegistry())),
            "database is postgresql, not sqlite",
        ),
    ):
        with pytest.raises(DatabaseUnusable, match=reason):
            machine.restore(data)
    at = Applied(50, CommandId("a#1", 50), SENDER, 96, 0)
    with pytest.raises(ForeignFrame, match="a transaction that cannot be read"):
        machine.apply(b"\x00", at)
    assert machine.lines() == before


def test_a_database_that_is_ahead_of_the_order_is_noticed() -> None:
    machine = shop()
    machine.next_position = 0
    with pytest.raises(DatabaseUnusable, match="was changed from outside"):
        machine.run("SELECT 1")


def test_parameters_are_values_of_sql() -> None:
    assert bound_parameters((1, 1.5, "x", b"y", None, True)) == [1, 1.5, "x", b"y", None, 1]
    assert bound_parameters({"a": 1}) == {"a": 1}
    for bad in ([object()], [1 << 63], [[1]], ["\ud800"], "text", 5, [0] * 40_000):
        with pytest.raises(InvalidInput):
            bound_parameters(bad)  # type: ignore[arg-type]
