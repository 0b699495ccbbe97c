"""`priocast sql`: a shell on a replicated database."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.exit_codes import EXIT_STATEMENT_FAILED
from priocast.cli.node_arguments import Listen, Peers
from priocast.cli.option_checks import check_directory
from priocast.cli.sql_shell import SqlShell
from priocast.core.errors import GroupClosed, InvalidOption, PriocastError
from priocast.network.memory import MemoryHub
from priocast.operations.line_io import LINE_BYTES_MAX, LineReader
from priocast.operations.logs import configure_logging
from priocast.operations.visible_text import visible
from priocast.runtime import event_loop
from priocast.runtime.configuration import START_SECONDS
from priocast.runtime.parameters import JoinParameters
from priocast.sql import Database, PriorityPolicy, RaisesFirst, connect
from priocast.sql.connecting import SQLITE

EXAMPLES = """
[bold]Examples[/]

A database of one member, or of three in this process:

  priocast sql

  priocast sql --members 3 --schema "CREATE TABLE seats (id INTEGER PRIMARY KEY, buyer TEXT);"

Then type statements: [cyan]INSERT INTO seats VALUES (7, 'Ann');[/] or [cyan]urgent: DELETE FROM seats;[/]

Two members on one machine, with a database that survives when both stop:

  priocast sql bank --member a --listen 127.0.0.1:7401 --peer 127.0.0.1:7402 --state-directory bank-a

  priocast sql bank --member b --listen 127.0.0.1:7402 --peer 127.0.0.1:7401 --state-directory bank-b

Statements from a file:

  priocast sql --schema-file schema.sql < statements.sql
"""
_MEMBERS_MAX = 26


def sql(
    group: Annotated[str, typer.Argument(help="Name of the group.")] = "sql",
    member: Annotated[str, typer.Option(help="Name of this member, unique in the group.")] = "a",
    listen: Listen = None,
    peer: Peers = None,
    members: Annotated[
        int,
        typer.Option(min=1, max=_MEMBERS_MAX, help="Without --listen: number of members in this process."),
    ] = 1,
    schema: Annotated[
        str, typer.Option(help="Statements that create tables, executed once in the group.")
    ] = "",
    schema_file: Annotated[
        Path | None, typer.Option(help="File with these statements.", exists=True, dir_okay=False)
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="sqlite, or the address of this member's database: postgresql://HOST/DATABASE."),
    ] = SQLITE,
    state_directory: Annotated[
        Path | None,
        typer.Option(help="Keep the database in this directory, so that it survives when all members stop."),
    ] = None,
    start_seconds: Annotated[
        float, typer.Option(help="How long to wait for the first view that contains this member, in seconds.")
    ] = START_SECONDS,
) -> None:
    """Run SQL on a replicated database: every member of a group has a copy.

    Statements are read from the terminal or from standard input. For each one, its position in the order, its
    priority with the reason for it, and the members are shown. Exit code 1: a statement failed.
    """
    if listen is None and (peer or (state_directory is not None and members > 1)):
        raise InvalidOption("--peer needs --listen, and --state-directory with --members is not possible")
    if members > 1 and (listen is not None or engine != SQLITE):
        raise InvalidOption("--members is for copies in this process: omit it, or omit --listen and --engine")
    check_directory("--state-directory", state_directory)
    text = f"{schema}\n;\n{schema_file.read_text()}" if schema_file is not None else schema
    configure_logging("text", "error")
    network: JoinParameters = {"start_seconds": start_seconds}
    if listen is not None:
        network |= {"listen": listen, "peers": peer or [], "size": len(peer or []) + 1}
    else:
        network |= {"hub": MemoryHub(), "size": members}
    if state_directory is not None:
        network |= {"state_directory": state_directory}
    names = [member] if listen is not None else _names(member, members)
    failed = event_loop.run(_run(group, names, engine, text, network))
    if failed:
        raise typer.Exit(EXIT_STATEMENT_FAILED)


def _names(member: str, count: int) -> list[str]:
    """The names of the members in this process; the shell is on the first one."""
    others = (letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter != member)
    return [member, *(next(others) for _ in range(count - 1))]


async def _run(group: str, names: list[str], engine: str, schema: str, network: JoinParameters) -> bool:
    """Read and execute statements until the end; return whether one has failed."""
    failed = False
    async with _opened(group, names, engine, schema, network) as database:
        shell = SqlShell(database)
        async for typed in _typed(shell):
            try:
                async for line in shell.execute(typed):
                    typer.echo(line)
            except GroupClosed:
                raise
            except PriocastError as error:
                typer.echo(f"error: {visible(str(error))}", err=True)
                failed = True
        await shell.close()
    return failed


@asynccontextmanager
async def _opened(
    group: str, names: list[str], engine: str, schema: str, network: JoinParameters
) -> AsyncIterator[Database]:
    """The database of the first member; all members in this process join together."""
    databases = [
        connect(
            group,
            member=name,
            engine=engine,
            schema=schema,
            priorities=PriorityPolicy(RaisesFirst()),
            durability="disk" if network.get("state_directory") is not None else "memory",
            **network,
        )
        for name in names
    ]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(each) for each in databases))
        yield databases[0]


async def _typed(shell: SqlShell) -> AsyncIterator[str]:
    """The statements and commands that are typed, with a prompt on a terminal."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    reader = LineReader(sys.stdin.fileno() if sys.stdin is not None else -1, _reject_line)
    ending = asyncio.Event()

    def show_prompt() -> None:
        if is_terminal:
            typer.echo(shell.prompt, nl=False)

    show_prompt()
    async for line in reader.lines(ending):
        for typed in shell.add_line(line):
            yield typed
            if shell.is_ended:
                return
        show_prompt()
    for typed in shell.end_of_input():
        yield typed


def _reject_line(size: int) -> None:
    typer.echo(
        f"error: a line of {size:,} bytes is too long: at most {LINE_BYTES_MAX:,} bytes are read", err=True
    )
