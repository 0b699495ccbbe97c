"""Interactive transactions: the anomalies that certification prevents, and what it lets through."""

from typing import Any

import pytest

from priocast.core.errors import InvalidInput, StatementRejected, TransactionAborted, TransactionConflict
from priocast.sql.engine import Engine
from priocast.sql.requests import STATEMENTS_MAX, Committed, DefineSchema, RolledBack
from sql.databases import LocalClient, LocalMachine

SCHEMA = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CONSTRAINT solvent CHECK (v >= 0))",
    "INSERT INTO accounts VALUES (1, 5), (2, 5)",
)
INCREMENT = "UPDATE accounts SET v = v + 1 WHERE id = 1"


def bank() -> LocalMachine:
    return LocalMachine(SCHEMA)


def is_conflict(verdict: Any) -> bool:
    return isinstance(verdict, RolledBack) and verdict.kind == "conflict"


def test_a_transaction_commits_what_it_has_written() -> None:
    machine = bank()
    client = LocalClient(machine)
    assert client.execute("SELECT v FROM accounts WHERE id = 1") == [(5,)]
    client.execute("UPDATE accounts SET v = ? WHERE id = 1", 7)
    assert client.execute("SELECT v FROM accounts WHERE id = 1") == [(7,)], "it reads its own writes"
    assert machine.rows("SELECT v FROM accounts WHERE id = 1") == [[5]], "nobody else does"
    assert isinstance(client.commit(), Committed)
    assert machine.rows("SELECT v FROM accounts WHERE id = 1") == [[7]]


def test_no_update_is_lost() -> None:
    machine = bank()
    first, second = LocalClient(machine), LocalClient(machine)
    requests = []
    for client in (first, second):
        ((value,),) = client.execute("SELECT v FROM accounts WHERE id = 1")
        assert isinstance(value, int)
        client.execute("UPDATE accounts SET v = ? WHERE id = 1", value + 1)
        requests.append(client.finish())
    verdicts = [machine.request(request) for request in requests]
    assert isinstance(verdicts[0], Committed)
    assert is_conflict(verdicts[1])
    assert machine.rows("SELECT v FROM accounts WHERE id = 1") == [[6]]


def test_there_is_no_write_skew() -> None:
    machine = bank()
    requests = []
    for account in (1, 2):  # each may be emptied as long as the other is not
        client = LocalClient(machine)
        assert client.execute("SELECT sum(v) FROM accounts") == [(10,)]
        client.execute("UPDATE accounts SET v = 0 WHERE id = ?", account)
        requests.append(client.finish())
    assert isinstance(machine.request(requests[0]), Committed)
    assert is_conflict(machine.request(requests[1]))
    assert machine.rows("SELECT v FROM accounts ORDER BY id") == [[0], [5]]


def test_there_are_no_phantoms() -> None:
    machine = bank()
    requests = []
    for account in (3, 4):  # one more account, if there are fewer than three with money
        client = LocalClient(machine)
        assert client.execute("SELECT id FROM accounts WHERE v > 0") == [(1,), (2,)]
        client.execute("INSERT INTO accounts VALUES (?, 1)", account)
        requests.append(client.finish())
    assert isinstance(machine.request(requests[0]), Committed)
    verdict = machine.request(requests[1])
    assert is_conflict(verdict)
    assert isinstance(verdict, RolledBack)
    assert "statement 1 of 2 gives another result now" in verdict.text
    assert "SELECT id FROM accounts WHERE v > 0" in verdict.text


def test_the_predicate_of_an_update_is_certified() -> None:
    machine = bank()
    client = LocalClient(machine)
    client.execute("UPDATE accounts SET v = 9 WHERE v = 5")
    request = client.finish()
    machine.run("UPDATE accounts SET v = 4 WHERE id = 1")
    assert is_conflict(machine.request(request))


def test_what_does_not_matter_is_no_conflict() -> None:
    machine = bank()
    clients = [LocalClient(machine) for _ in range(3)]
    for client in clients:
        client.execute("SELECT count(*) FROM accounts WHERE id < 3")
        client.execute(INCREMENT)
    requests = [client.finish() for client in clients]
    assert all(isinstance(machine.request(request), Committed) for request in requests)
    assert machine.rows("SELECT v FROM accounts WHERE id = 1") == [[8]], "increments commute"


def test_a_constraint_decides_at_the_place_of_the_transaction() -> None:
    machine = bank()
    requests = []
    for _ in range(2):
        client = LocalClient(machine)
        client.execute("UPDATE accounts SET v = v - 4 WHERE id = 1")
        requests.append(client.finish())
    assert isinstance(machine.request(requests[0]), Committed)
    verdict = machine.request(requests[1])
    assert isinstance(verdict, RolledBack)
    assert (verdict.kind, verdict.constraint) == ("aborted", "solvent")


def test_invariants_hold_after_interactive_transactions() -> None:
    machine = bank()
    invariant = {"enough": "SELECT sum(v) FROM accounts HAVING sum(v) < 4"}
    assert isinstance(machine.request(DefineSchema((), invariant)), Committed)
    client = LocalClient(machine)
    client.execute("UPDATE accounts SET v = 1")
    verdict = client.commit()
    assert isinstance(verdict, RolledBack)
    assert (verdict.kind, verdict.constraint) == ("aborted", "enough")


def test_an_undisturbed_transaction_is_not_executed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, other = bank(), LocalMachine(SCHEMA, "b")
    client = LocalClient(machine)
    client.execute(INCREMENT)
    request = client.finish()
    executed: list[str] = []
    honest = type(other.engine).execute

    def execute(self: Engine, sql: str, parameters: Any) -> Any:
        executed.append(sql)
        return honest(self, sql, parameters)

    monkeypatch.setattr(type(other.engine), "execute", execute)
    assert isinstance(other.request(request), Committed)
    assert executed == [], "its write-set was applied"
    machine.request(request)
    assert other.lines() == machine.lines()


def test_a_write_set_that_cannot_be_applied_row_by_row_is_executed_again() -> None:
    """Two unique values are exchanged: no order of the two changes is free of a violation."""
    machine = LocalMachine(
        (
            "CREATE TABLE seats (id INTEGER PRIMARY KEY, buyer TEXT UNIQUE)",
            "INSERT INTO seats VALUES (1, 'x'), (2, 'y')",
        )
    )
    client = LocalClient(machine)
    for buyer, seat in (("z", 1), ("x", 2), ("y", 1)):
        client.execute("UPDATE seats SET buyer = ? WHERE id = ?", buyer, seat)
    assert isinstance(client.commit(), Committed)
    assert machine.rows("SELECT buyer FROM seats ORDER BY id") == [["y"], ["x"]]


def test_the_snapshot_moves_on_while_nothing_that_was_read_changes() -> None:
    machine = bank()
    client = LocalClient(machine)
    client.execute("SELECT v FROM accounts WHERE id = 2")
    client.execute("INSERT INTO accounts VALUES (3, 1)")
    machine.run(INCREMENT)
    assert client.execute("SELECT v FROM accounts ORDER BY id") == [(6,), (5,), (1,)]
    assert client.local.snapshot == machine.engine.position
    assert isinstance(client.commit(), Committed)


def test_a_transaction_that_cannot_commit_any_more_ends_early() -> None:
    machine = bank()
    client = LocalClient(machine)
    client.execute("SELECT v FROM accounts WHERE id = 1")
    machine.run(INCREMENT)
    for _ in range(2):
        with pytest.raises(TransactionConflict, match="another transaction was first"):
            client.execute("SELECT 1")
    with pytest.raises(TransactionConflict):
        client.finish()


def test_random_numbers_stay_the_same_when_a_transaction_is_executed_again() -> None:
    machine = bank()
    client = LocalClient(machine)
    drawn = client.execute("SELECT random(), random()")
    machine.run("UPDATE accounts SET v = v + 1 WHERE id = 2")
    assert client.execute("SELECT random()") != drawn
    client.execute(INCREMENT)
    machine.run("UPDATE accounts SET v = v + 1 WHERE id = 2")
    assert isinstance(client.commit(), Committed)


def test_transactions_that_read_or_change_nothing_are_not_broadcast() -> None:
    machine = bank()
    client = LocalClient(machine)
    assert client.commit() is None
    client.execute("SELECT * FROM accounts")
    machine.run(INCREMENT)
    assert client.commit() is None
    unchanged = LocalClient(machine)
    unchanged.execute("UPDATE accounts SET v = v")
    assert unchanged.commit() is None


def test_an_error_ends_a_transaction() -> None:
    machine = bank()
    for sql, error in (
        ("UPDATE accounts SET v = -1", TransactionAborted),
        ("PRAGMA user_version", StatementRejected),
        ("UPDATE accounts SET v = 8 RETURNING CAST(x'ff' AS TEXT)", StatementRejected),
        ("CREATE TABLE x (id INTEGER PRIMARY KEY)", StatementRejected),
    ):
        client = LocalClient(machine)
        client.execute(INCREMENT)
        with pytest.raises(error):
            client.execute(sql)
        with pytest.raises(error):
            client.execute("SELECT 1")
        with pytest.raises(error):
            client.finish()
    assert machine.rows("SELECT v FROM accounts ORDER BY id") == [[5], [5]]


def test_a_transaction_has_a_limited_number_of_statements() -> None:
    machine = bank()
    client = LocalClient(machine)
    for _ in range(STATEMENTS_MAX):
        client.execute("SELECT 1")
    with pytest.raises(InvalidInput, match="at most 1,000 statements"):
        client.execute("SELECT 1")
