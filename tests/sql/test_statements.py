"""What the text of a statement tells: where it ends, what it does, what it leaves open."""

import pytest

from priocast.core.errors import StatementRejected
from priocast.sql.statement_effects import ColumnChange, column_changes, tables_in
from priocast.sql.statements import (
    STATEMENT_LENGTH_MAX,
    has_unordered_limit,
    is_query,
    only_statement,
    shortened,
    split_statements,
    verb_of,
)

TRIGGER = """CREATE TRIGGER paid AFTER UPDATE ON seats BEGIN
    INSERT INTO sales VALUES (CASE WHEN new.price > 5 THEN 'dear' ELSE 'cheap' END);
    DELETE FROM offers WHERE seat = new.id;
END"""


def test_scripts_are_split_at_semicolons_only() -> None:
    script = f"SELECT ';' AS \"a;b\"; -- a comment; or two\n /* ; */ ;;{TRIGGER}; SELECT [c;d], `e;f`"
    assert split_statements(script) == ["SELECT ';' AS \"a;b\"", TRIGGER, "SELECT [c;d], `e;f`"]


@pytest.mark.parametrize("script", ["", " ; ", "-- nothing", "/* nothing"])
def test_scripts_without_a_statement_are_empty(script: str) -> None:
    assert split_statements(script) == []


def test_one_statement_is_expected() -> None:
    assert only_statement(" SELECT 1 ; ") == "SELECT 1"
    for text in ("", "SELECT 1; SELECT 2"):
        with pytest.raises(StatementRejected, match="one statement is expected"):
            only_statement(text)
    with pytest.raises(StatementRejected, match=r"at most 100,000 characters"):
        only_statement("x" * (STATEMENT_LENGTH_MAX + 1))


@pytest.mark.parametrize(
    ("sql", "verb", "query"),
    [
        ("select 1", "select", True),
        ("VALUES (1)", "values", True),
        ("/* select */ Insert into t values (1)", "insert", False),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "select", True),
        ("WITH a AS (SELECT 1) UPDATE t SET x = (SELECT 1)", "update", False),
        ("WITH RECURSIVE a(n) AS (VALUES (1)) DELETE FROM t", "delete", False),
        ("", "", False),
    ],
)
def test_the_verb_of_a_statement(sql: str, verb: str, query: bool) -> None:
    assert (verb_of(sql), is_query(sql)) == (verb, query)


@pytest.mark.parametrize(
    ("sql", "unordered"),
    [
        ("SELECT * FROM t", False),
        ("SELECT * FROM t LIMIT 1", True),
        ("SELECT * FROM t ORDER BY a LIMIT 1", False),
        ("DELETE FROM t WHERE a IN (SELECT a FROM t LIMIT 3)", True),
        ("DELETE FROM t WHERE a IN (SELECT a FROM t ORDER BY a LIMIT 3)", False),
        ("SELECT a, rank() OVER (ORDER BY a) FROM t LIMIT 1", True),
        ("SELECT * FROM (SELECT a FROM t ORDER BY a) LIMIT 1", True),
        ("SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 1), (SELECT a FROM u LIMIT 1)", True),
        ("SELECT 'limit', \"limit\" FROM t -- limit 1", False),
        ("SELECT a FROM t FETCH FIRST 1 ROW ONLY", True),
    ],
)
def test_limits_without_an_order_are_found(sql: str, unordered: bool) -> None:
    assert has_unordered_limit(sql) is unordered


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("UPDATE OR IGNORE main.seats SET a = 1", ["seats"]),
        ('INSERT INTO "Seats" VALUES (1)', ["seats"]),
        ("DELETE FROM seats", ["seats"]),
        ("SELECT * FROM seats", []),
        ("UPDATE", []),
    ],
)
def test_the_tables_that_a_statement_writes(sql: str, tables: list[str]) -> None:
    assert tables_in(sql) == tables


@pytest.mark.parametrize(
    ("sql", "parameters", "changes"),
    [
        ("UPDATE a SET b = b + :n WHERE id = :id", {"n": 5, "id": 1}, [("a", "b", 5)]),
        ("UPDATE a SET b = b - :n", {"n": 5}, [("a", "b", -5)]),
        ("UPDATE a SET c = ?, b = b - ? WHERE id = ?", [0, 7, 1], [("a", "b", -7)]),
        ("UPDATE a SET b = b - ?2 WHERE id = ?1", [1, 9], [("a", "b", -9)]),
        ("UPDATE a SET b = b + %(n)s", {"n": 2}, [("a", "b", 2)]),
        ("UPDATE a SET b = b + 1.5, c = c - 2 RETURNING c", [], [("a", "b", 1.5), ("a", "c", -2)]),
        ("UPDATE a SET b = b + ? * 2", [3], []),
        ("UPDATE a SET b = c + 1", [], []),
        ("UPDATE a SET b = 1", [], []),
        ("UPDATE a SET b = b + ?", ["text"], []),
        ("UPDATE a SET b = b + ?", [], []),
        ("INSERT INTO a VALUES (1)", [], []),
    ],
)
def test_what_an_update_adds_to_columns(
    sql: str, parameters: list[int] | dict[str, int], changes: list[tuple[str, str, float]]
) -> None:
    assert list(column_changes(sql, parameters)) == [ColumnChange(*each) for each in changes]


def test_messages_show_the_begin_of_a_statement() -> None:
    assert shortened("SELECT\n  1") == "SELECT 1"
    assert len(shortened("x" * 100)) == 80
