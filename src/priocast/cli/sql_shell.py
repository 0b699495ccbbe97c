"""The shell of `priocast sql`: statements go in, rows and what became of them come out, as lines."""

import re
from collections.abc import AsyncIterator

from priocast.core.errors import InvalidInput
from priocast.core.priority import parse_priority
from priocast.operations.visible_text import visible
from priocast.sql import Database, SqlResult, SqlValue, Transaction
from priocast.sql.statements import complete_statements, verb_of

HELP = """\
statements end with a semicolon; 'urgent: UPDATE …;' or '200: UPDATE …;' gives one a priority
BEGIN; … COMMIT; or ROLLBACK; is an interactive transaction, certified at every member
.view    the members that have a copy, and the position
.help    this text
.quit    leave the group"""
_PRIORITY = re.compile(r"\s*(\w+)\s*:\s+(?=\S)")
_DEFINITIONS = ("create", "alter", "drop")


class SqlShell:
    """Executes what is typed on a database; `is_ended` says that the user wants to leave."""

    def __init__(self, database: Database) -> None:
        self.is_ended = False
        self._database = database
        self._unfinished = ""
        self._transaction: Transaction | None = None

    @property
    def prompt(self) -> str:
        """What to show before the next line is typed."""
        if self._unfinished.strip():
            return "   …> "
        return "(transaction)> " if self._transaction is not None else "> "

    def add_line(self, line: str) -> list[str]:
        """Take a line; return the statements and commands that are complete now."""
        if not self._unfinished.strip() and line.lstrip().startswith("."):
            return [line.strip()]
        statements, self._unfinished = complete_statements(f"{self._unfinished}{line}\n")
        return statements

    def end_of_input(self) -> list[str]:
        """The last statement, which has no semicolon."""
        rest, self._unfinished = self._unfinished.strip(), ""
        return [rest] if rest else []

    async def execute(self, typed: str) -> AsyncIterator[str]:
        """Execute a statement or a command; yield lines. Errors of Priocast are raised."""
        match typed.lower():
            case ".quit" | ".exit":
                self.is_ended = True
            case ".help":
                yield HELP
            case ".view":
                yield self._status()
            case command if command.startswith("."):
                raise InvalidInput(f"there is no command {typed!r}: try .help")
            case "begin" | "begin transaction":
                await self._begin()
            case "commit" | "end" | "rollback":
                yield await self._end(is_commit=typed.lower() != "rollback")
            case _:
                async for line in self._execute_statement(typed):
                    yield line

    async def close(self) -> None:
        """Roll back what was not committed."""
        if self._transaction is not None:
            await self._end(is_commit=False)

    async def _execute_statement(self, typed: str) -> AsyncIterator[str]:
        priority, statement = _split_priority(typed)
        if self._transaction is not None:
            try:
                result = await self._transaction.execute(statement)
            except Exception:
                await self._end(is_commit=False)
                raise
        else:
            result = await self._database.execute(statement, priority=priority)
        if result.columns:
            yield " | ".join(visible(column) for column in result.columns)
        for row in result:
            yield " | ".join(map(_shown, row))
        if not result.columns or result.position is not None:
            yield self._outcome(result, statement)

    def _outcome(self, result: SqlResult, statement: str) -> str:
        changed = (
            "schema changed" if verb_of(statement) in _DEFINITIONS else f"rows changed: {result.rowcount}"
        )
        if result.position is None or result.decision is None:
            return f"-- {changed}"
        decision = f"priority {result.decision.priority} ({result.decision.reason})"
        return f"-- {changed}; position {result.position}, {decision}, {self._view()}"

    async def _begin(self) -> None:
        if self._transaction is not None:
            raise InvalidInput("there is a transaction already: COMMIT or ROLLBACK first")
        self._transaction = await self._database.transaction().__aenter__()

    async def _end(self, is_commit: bool) -> str:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            raise InvalidInput("there is no transaction: BEGIN first")
        if not is_commit:
            await transaction.__aexit__(InvalidInput, None, None)
            return "-- rolled back"
        await transaction.__aexit__(None, None, None)
        if transaction.position is None or transaction.decision is None:
            return "-- committed: it has changed nothing"
        decision = f"priority {transaction.decision.priority} ({transaction.decision.reason})"
        return f"-- committed; position {transaction.position}, {decision}, {self._view()}"

    def _view(self) -> str:
        view = self._database.view
        names = ", ".join(member.name for member in view.members) if view is not None else "nobody"
        return f"view {view.number if view is not None else '-'}: {names}"

    def _status(self) -> str:
        return f"-- position {self._database.position}, {self._view()}"


def _split_priority(typed: str) -> tuple[int | None, str]:
    """Split `urgent: UPDATE …` into priority and statement; without a priority the policy decides."""
    found = _PRIORITY.match(typed)
    return (parse_priority(found[1]), typed[found.end() :]) if found else (None, typed)


def _shown(value: SqlValue) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"x'{value.hex()}'"
    return visible(str(value))
