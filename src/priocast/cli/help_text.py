"""Help texts fit the terminal: the lines of a paragraph are joined, and wrapped where they are shown.

Typer keeps the line breaks of a docstring when it formats markup, so every second line would be short.
"""

from inspect import getdoc

import typer


def join_lines(app: typer.Typer) -> None:
    """Give each command of an application, and of those in it, a help text with one line per paragraph."""
    for command in app.registered_commands:
        text = command.help or getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(each.split()) for each in text.split("\n\n"))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            join_lines(group.typer_instance)
