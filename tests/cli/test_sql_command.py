"""`priocast sql`: the shell on a replicated database."""

from pathlib import Path

from priocast.cli.sql_shell import HELP, SqlShell
from priocast.core.errors import InvalidInput, PriocastError, PriorityOutOfRange, TransactionConflict
from sql.databases import databases
from support.command import command_error, priocast
from support.waiting import run

SCHEMA = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INT CONSTRAINT solvent CHECK (balance >= 0));"
)
TYPED = """INSERT INTO accounts VALUES (1, 5);
UPDATE accounts
  SET balance = balance + 3; SELECT * FROM accounts;
UPDATE accounts SET balance = -1;
SELECT count(*) AS n, NULL, x'ff' FROM accounts"""


def test_statements_of_standard_input_are_executed(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(SCHEMA)
    result = priocast("sql", "--state-directory", str(tmp_path), "--schema-file", str(schema), typed=TYPED)
    assert result.stderr == "error: CHECK constraint failed: solvent\n"
    inserted, raised, *rows = result.stdout.splitlines()
    assert inserted.startswith("-- rows changed: 1; position ")
    assert ", priority 96 (no rule applies), view " in inserted
    assert inserted.endswith(": a")
    assert (tmp_path / "sql.a.db").exists()
    assert "priority 160 (can only raise accounts.balance, which is bounded below)" in raised
    assert rows == ["id | balance", "1 | 8", "n | NULL | x'ff'", "1 | NULL | x'ff'"]
    assert result.returncode == 1


def test_options_that_contradict_each_other() -> None:
    assert "--peer needs --listen" in command_error("sql", "--peer", "127.0.0.1:7402")


async def typed(shell: SqlShell, text: str) -> list[str]:
    """What the shell prints for a text; errors as lines, too."""
    lines = []
    for line in text.splitlines():
        for each in shell.add_line(line):
            try:
                lines += [line async for line in shell.execute(each)]
            except PriocastError as error:
                lines.append(f"{type(error).__name__}: {error}")
    return lines


def test_transactions_are_typed_statement_by_statement() -> None:
    async def test() -> None:
        async with databases("a", schema=SCHEMA) as (database,):
            shell = SqlShell(database)
            assert await typed(shell, "urgent: INSERT INTO accounts VALUES (1, 5);") == [
                "-- rows changed: 1; position 1, priority 224 (given by the caller), view 1: a"
            ]
            assert shell.prompt == "> "
            assert await typed(shell, "BEGIN;\nUPDATE accounts SET balance = 7;") == ["-- rows changed: 1"]
            assert shell.prompt == "(transaction)> "
            (committed,) = await typed(shell, "COMMIT;")
            assert committed == "-- committed; position 3, priority 96 (no rule applies), view 1: a"
            rolled_back = await typed(shell, "BEGIN;UPDATE accounts SET balance = 9; ROLLBACK;")
            assert rolled_back == ["-- rows changed: 1", "-- rolled back"]
            assert await typed(shell, "BEGIN; SELECT balance FROM accounts; COMMIT;") == [
                "balance",
                "7",
                "-- committed: it has changed nothing",
            ]

    run(test)


def test_what_is_wrong_is_said() -> None:
    async def test() -> None:
        async with databases("a", schema=SCHEMA) as (database,):
            shell = SqlShell(database)
            await typed(shell, "INSERT INTO accounts VALUES (1, 5); BEGIN; SELECT * FROM accounts;")
            await database.execute("UPDATE accounts SET balance = 6")
            (conflict,) = await typed(shell, "UPDATE accounts SET balance = 7;")
            assert conflict.startswith(TransactionConflict.__name__)
            for text, reason in (
                ("COMMIT;", "BEGIN first"),
                ("BEGIN; BEGIN;", "COMMIT or ROLLBACK first"),
                (".tables", "try .help"),
                ("300: SELECT 1;", "300"),
            ):
                (line,) = await typed(shell, text)
                assert line.startswith((InvalidInput.__name__, PriorityOutOfRange.__name__))
                assert reason in line
            assert await typed(shell, ".help") == [HELP]
            assert (await typed(shell, ".view"))[0].endswith("view 1: a")
            assert shell.add_line("SELECT 1") == []
            assert shell.prompt == "   …> "
            assert shell.end_of_input() == ["SELECT 1"]
            await shell.close()
            await typed(shell, ".quit")
            assert shell.is_ended

    run(test)
