"""The command line: `priocast demo | node | send | orders | advise | probe | …`."""

import sys

import typer
from rich.console import Console
from rich.markup import escape

from priocast.cli import (
    advise,
    client,
    demo,
    explain,
    explore,
    keys,
    node,
    orders,
    probe,
    report,
    simulate,
    study,
    verify,
)
from priocast.core.errors import PriocastError

EXIT_BAD_INPUT = 2

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
app.command(epilog=client.EXAMPLES)(client.send)
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


def main() -> None:
    """Run a command; a fault of the user's, a peer's or the machine's is one line and exit code 2."""
    try:
        app()
    except* PriocastError as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        Console(stderr=True).print(
            f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(EXIT_BAD_INPUT)
