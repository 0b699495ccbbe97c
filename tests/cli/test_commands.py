"""The list of commands: it says what the commands themselves say, and is complete."""

from pathlib import Path

import pytest

from priocast.cli import commands
from priocast.cli.commands import COMMANDS, load_command
from support.command import priocast_here

CLI = Path(commands.__file__).parent


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_paragraph_of_the_help(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert (command.help or "").split("\n\n")[0] == COMMANDS[name].summary
    assert command.epilog


def test_every_module_with_a_command_is_listed() -> None:
    own_examples = {path.stem for path in CLI.glob("*.py") if "\nEXAMPLES = " in path.read_text()}
    parts = {name for name in own_examples if name.startswith("study_")} | {"main"}
    assert own_examples - parts == {entry.module for entry in COMMANDS.values()}


def test_a_command_is_found_by_its_name_and_nothing_else() -> None:
    assert priocast_here("orders", "--help").stdout.count("priocast orders") >= 1
    unknown = priocast_here("order")
    assert unknown.returncode == 2
    assert "No such command 'order'. Did you mean 'orders'" in unknown.stderr
