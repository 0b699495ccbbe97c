"""`priocast explain`: which messages one message overtook, at which member, and why."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from priocast.cli.option_checks import check_pipeline, check_replaceable
from priocast.cli.shared_options import MASTER
from priocast.core.errors import InvalidOption
from priocast.operations.output_paths import PNG, SVG
from priocast.trace.explanation import Explanation, explain, find_message, find_worst
from priocast.trace.explanation_text import describe
from priocast.trace.recorded_run import RecordedRun, open_run
from priocast.trace.remote_directory import is_remote, local_path

EXAMPLES = """
[bold]Examples[/]

  priocast explain runs/demo/prioritised --worst

  priocast explain runs/demo/prioritised --message a#1/224/7

  priocast explain runs/17 --message b#1/32/0 --figure why.svg

  priocast explain hdfs://host/runs/17 --worst
"""
FIGURE_KINDS = (".svg", ".png")


def explain_message(
    location: Annotated[
        str, typer.Argument(metavar="TRACE", help="A run directory, or the URL of one.", show_default=False)
    ],
    message: Annotated[
        str | None,
        typer.Option(help="The message, as sender#incarnation/level/number.", show_default=False),
    ] = None,
    worst: Annotated[
        bool, typer.Option("--worst", help="Explain the message that overtook the most others.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the queues to this file, .svg or .png.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most messages to list per queue.")] = 8,
    master: Annotated[
        str,
        typer.Option(help="For a URL: the Spark master that reads it."),
    ] = MASTER,
) -> None:
    """Explain what a message overtook, at which member, and why.

    Shows every queue that the message entered: the messages before it, its position there, and how long it
    waited. With most protocols these are the queues of its sender and of the orderer. With [bold]reorder[/]
    and [bold]reorder-locks[/] they include the members' delivery queues, with the cut (how far any member
    had consumed when the message arrived); with reorder-locks also what it locked and where it was inserted.
    """
    if message is None and not worst:
        raise InvalidOption("no message chosen: give --message NAME or --worst")
    if message is not None and worst:
        raise InvalidOption("--message and --worst exclude each other: give one of them")
    if figure is not None:
        _check_figure(figure)
    run = _open(location, master)
    explanation = explain(run, find_worst(run) if message is None else find_message(run, message))
    console = Console()
    for line in describe(explanation, limit):
        console.print(_coloured(line, explanation), soft_wrap=True)
    if figure is not None:
        from priocast.pipeline.figures.explanation import (
            write_explanation,  # imported here: matplotlib is slow to import
        )

        figure.parent.mkdir(parents=True, exist_ok=True)
        write_explanation(explanation, figure)
        console.print(f"\nFigure: [bold]{escape(str(figure))}[/]", highlight=False, soft_wrap=True)


def _open(location: str, master: str) -> RecordedRun:
    if not is_remote(location):
        return open_run(local_path(location))
    check_pipeline()
    from priocast.pipeline.remote_run import fetch_run  # imported here: Spark is slow to import

    return fetch_run(location, master)


def _check_figure(path: Path) -> None:
    if path.suffix not in FIGURE_KINDS:
        raise InvalidOption(f"--figure is {str(path)!r}: its name must end in {' or '.join(FIGURE_KINDS)}")
    check_replaceable("--figure", path, SVG if path.suffix == ".svg" else PNG)
    check_pipeline()


def _coloured(line: str, explanation: Explanation) -> Text:
    """A line with the explained message highlighted."""
    text = Text(line)
    text.highlight_words([str(explanation.message)], "bold red")
    if line and not line.startswith(" "):
        text.stylize("bold")
    return text
