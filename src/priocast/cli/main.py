"""The command line: `priocast demo | node | send | sql | orders | advise | probe | …`."""

import logging
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from priocast.cli.commands import LazyCommands
from priocast.cli.exit_codes import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_INVALID, interrupted
from priocast.core.errors import PriocastError
from priocast.core.extras import extra_missing
from priocast.operations.visible_text import visible

EXAMPLES = """
[bold]Examples[/]

  priocast demo

  priocast node tickets --member a --listen 127.0.0.1:7401

  priocast advise --members 8 --rate 2000

  priocast simulate --seeds 0:1000

'priocast COMMAND --help' has examples for each command.
"""

app = typer.Typer(
    name="priocast",
    cls=LazyCommands,
    help="Prioritised, totally ordered group communication: one order at all members, urgent messages first.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # takes 15 ms to import

        typer.echo(f"priocast {version('priocast')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Options of `priocast` itself."""


def main() -> None:
    """Run a command. An error of the user, a peer or the system is one line and exit code 2.

    Ctrl-C is one line and exit code 130, in every command.
    """
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(_is_news)
    logging.getLogger().addHandler(handler)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(interrupted())
    except SystemExit as end:
        if end.code == EXIT_INTERRUPTED:  # Typer's, for Ctrl-C
            interrupted()
        if isinstance(
            end.__context__, BrokenPipeError
        ):  # Typer and Rich exit with 1, which means a violation here
            sys.exit(EXIT_BROKEN_PIPE)
        raise
    except (Exception, BaseExceptionGroup) as error:
        causes = [_named_extra(cause) for cause in _causes(error)]
        if not all(isinstance(cause, PriocastError | OSError) for cause in causes):
            raise  # a bug in Priocast: show the traceback
        _print_error(_lines_of(_text_of(causes[0])))
        sys.exit(EXIT_INVALID)


def _print_error(text: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)


def _named_extra(error: BaseException) -> BaseException:
    """The error, or the one that names the extra to install if a package is missing."""
    return extra_missing(error) or error if isinstance(error, ImportError) else error


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record may be logged: Spark's connection to Java reports Ctrl-C with tracebacks."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is None


def _lines_of(text: str) -> str:
    """The text of an error, which may have several lines; nothing in it acts on the terminal."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, Priocast's first: they say more than those of the system."""
    if isinstance(error, BaseExceptionGroup):
        causes = [cause for each in error.exceptions for cause in _causes(each)]
        yield from sorted(causes, key=lambda cause: not isinstance(cause, PriocastError))
    else:
        yield error


def _text_of(error: BaseException) -> str:
    """The text of an error; for one of the system, the file and the reason."""
    if isinstance(error, PriocastError) or not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"{reason} (reported by the operating system)"
    return f"cannot use {error.filename}: {reason}; choose another path or fix this one"
