"""The commands by name. The module of a command is imported when it is run: together they take a second."""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from priocast.cli.help_text import join_lines
from priocast.core.errors import InvalidOption


class CommandEntry(NamedTuple):
    """Where a command is defined, and what the list of commands says about it.

    `attribute` is its function or its group of commands in `priocast.cli.<module>`, `examples` the name of
    its examples there.
    """

    module: str
    attribute: str
    summary: str
    examples: str = "EXAMPLES"


COMMANDS = {
    "demo": CommandEntry(
        "demo",
        "demo",
        "Overload a real group on this machine, plain and prioritised, and compare the delivery times.",
    ),
    "node": CommandEntry(
        "node",
        "node",
        "Run one member of a group: broadcast the lines of standard input, print the messages delivered.",
    ),
    "send": CommandEntry(
        "send",
        "send",
        "Ask a member to broadcast a message, exactly once, and print its position in the order.",
    ),
    "sql": CommandEntry(
        "sql", "sql", "Run SQL on a replicated database: every member of a group has a copy."
    ),
    "feed": CommandEntry(
        "feed",
        "feed",
        "Keep the ordered messages of a group on disk, and serve them to readers that are not members.",
    ),
    "orders": CommandEntry(
        "orders", "orders", "List the ordering protocols: their class, and where priorities act."
    ),
    "advise": CommandEntry(
        "advise",
        "advice",
        "Recommend an ordering protocol for a group, from its size, its load and the guarantees required.",
    ),
    "change-order": CommandEntry(
        "orders", "change_order", "Change the ordering protocol of a running group.", "CHANGE_EXAMPLES"
    ),
    "probe": CommandEntry(
        "probe",
        "probe",
        "Show the status of nodes: view, queues, bottleneck, suspected members, rejections.",
    ),
    "console": CommandEntry(
        "console",
        "console",
        "Serve the live page of a group: members, queues, delivery times, and the order as it happens.",
    ),
    "keys": CommandEntry(
        "keys", "keys", "Create certificates for members and clients, and keys for groups over UDP."
    ),
    "simulate": CommandEntry(
        "simulate", "simulate", "Simulate groups with faults, in virtual time, and check every guarantee."
    ),
    "campaign": CommandEntry(
        "campaign",
        "campaign",
        "Run many seeds of the simulator on Spark's executors, and check every guarantee in each.",
    ),
    "cluster": CommandEntry(
        "cluster", "cluster", "Start and stop a Spark cluster on this machine, to try things out."
    ),
    "study": CommandEntry(
        "study",
        "study",
        "Experiments on this machine: costs and benefits of priorities, orders and qualities of service.",
    ),
    "explore": CommandEntry(
        "explore",
        "explore",
        "Explore every interleaving of a small group and check every reachable state (model checking).",
    ),
    "explain": CommandEntry(
        "explain", "explain_message", "Explain what a message overtook, at which member, and why."
    ),
    "verify": CommandEntry("verify", "verify", "Verify the guarantees of recorded runs."),
    "report": CommandEntry(
        "report", "report", "Write an HTML report about recorded runs, in one self-contained file."
    ),
    "tables": CommandEntry(
        "tables",
        "tables",
        "Write the tables of recorded runs as Parquet or CSV files, for other tools.",
    ),
    "watch": CommandEntry(
        "watch",
        "watch",
        "Watch groups that run with a trace: rates, delivery times, inversions, views, and violations.",
    ),
}


def load_command(name: str) -> TyperCommand | TyperGroup:
    """Import a command; it has all its options and its help."""
    entry = COMMANDS[name]
    module = import_module(f"priocast.cli.{entry.module}")
    found = getattr(module, entry.attribute)
    if isinstance(found, typer.Typer):
        join_lines(found)
        group = typer.main.get_group(found)
        group.name = name
        return group
    app = typer.Typer(rich_markup_mode="rich", add_completion=False)
    app.command(name, epilog=getattr(module, entry.examples))(found)
    join_lines(app)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


class LazyCommands(TyperGroup):
    """Lists the commands by their entries; loads one when it is resolved, which is before it is run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        command = None if name is None else load_command(name)
        if command is not None and any(parameter.name == "master" for parameter in command.params):
            _reject_spark_connect(rest)
        return name, command, rest


def _reject_spark_connect(arguments: list[str]) -> None:
    """Say why there is no `--remote`, as Spark's own programs have beside `--master`."""
    if any(argument.partition("=")[0] == "--remote" for argument in arguments):
        raise InvalidOption(
            "--remote: Spark Connect servers are not supported; give the URL of a master with --master, such "
            "as spark://HOST:PORT"
        )
