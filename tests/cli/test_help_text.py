"""Help texts have one line per paragraph, so that a terminal of any width wraps them evenly."""

import typer
from typer.testing import CliRunner

from priocast.cli.help_text import join_lines
from priocast.cli.main import app

WIDE = {"COLUMNS": "1000", "TERMINAL_WIDTH": "1000"}


def test_paragraphs_of_a_docstring_are_lines() -> None:
    made, inner = typer.Typer(rich_markup_mode="rich"), typer.Typer()

    @inner.command()
    def work() -> None:
        """Do the work.

        It takes a while, and
        ends.

        Then it is done.
        """

    made.add_typer(inner, name="inner")
    join_lines(made)
    (command,) = inner.registered_commands
    assert command.help == "Do the work.\n\nIt takes a while, and ends.\n\nThen it is done."


def test_a_help_text_of_the_command_line_is_joined() -> None:
    shown = CliRunner().invoke(app, ["probe", "--help"], env=WIDE).output
    assert "acknowledges nothing, members are in different views, or a node does not reply" in shown
    shown = CliRunner().invoke(app, ["keys", "revoke", "--help"], env=WIDE).output
    assert "or --tls-revoked), and send each node SIGHUP." in shown
