"""The command line: `priocast demo | node | send | orders | advise | probe | …`."""

import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from priocast.cli import (
    advise,
    demo,
    explain,
    explore,
    keys,
    node,
    orders,
    probe,
    report,
    send,
    simulate,
    study,
    verify,
)
from priocast.core.errors import PriocastError

EXIT_BAD_INPUT = 2
#: What a shell says of a program that ended because nobody reads what it writes.
EXIT_UNREAD = 128 + signal.SIGPIPE

app = typer.Typer(
    name="priocast",
    help="Prioritised, totally ordered group communication: the same order everywhere, the urgent first.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=node.EXAMPLES)(node.node)
app.command(epilog=send.EXAMPLES)(send.send)
app.command(epilog=orders.EXAMPLES)(orders.orders)
app.command("advise", epilog=advise.EXAMPLES)(advise.advice)
app.command("change-order", epilog=orders.CHANGE_EXAMPLES)(orders.change_order)
app.command(epilog=probe.EXAMPLES)(probe.probe)
app.add_typer(keys.keys, name="keys")
app.command(epilog=simulate.EXAMPLES)(simulate.simulate)
app.add_typer(study.study, name="study")
app.command(epilog=explore.EXAMPLES)(explore.explore)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain_message)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=report.EXAMPLES)(report.report)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"priocast {version('priocast')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which release this is."),
    ] = False,
) -> None:
    """What there is besides commands."""


def main() -> None:
    """Run a command; a fault of the user's, a peer's or the machine's is one line and exit code 2."""
    try:
        app()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer and Rich say 1: here, a broken promise
            sys.exit(EXIT_UNREAD)
        raise
    except (Exception, BaseExceptionGroup) as error:
        causes = list(_causes(error))
        if not all(isinstance(cause, PriocastError | OSError) for cause in causes):
            raise  # a fault of our own
        Console(stderr=True).print(
            f"[bold red]error:[/] {escape(_said(causes[0]))}", highlight=False, soft_wrap=True
        )
        sys.exit(EXIT_BAD_INPUT)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What went wrong, the machine's faults last: one of ours says more."""
    if isinstance(error, BaseExceptionGroup):
        causes = [cause for each in error.exceptions for cause in _causes(each)]
        yield from sorted(causes, key=lambda cause: not isinstance(cause, PriocastError))
    else:
        yield error


def _said(error: BaseException) -> str:
    """The error in words; of the machine's, the file and the reason."""
    if isinstance(error, PriocastError) or not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"{reason} (the system refused what this command needs)"
    return f"cannot use {error.filename}: {reason}; name another path, or correct this one"
