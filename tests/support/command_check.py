"""Checks commands that a page or a deployment file shows, without running them."""

import re
import shlex
import tomllib
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from priocast.cli.main import app
from support.page import ROOT

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What the command line raises for arguments that it does not understand."""

_EXTRAS = re.compile(r"\[([\w,]+)\]")
_OF_OTHERS = {"docker", "kubectl", "systemctl", "journalctl", "kill"}
_FILE_OPTIONS = {"-f", "--file", "--filename"}


def check_command(command: str, titles: Collection[str] = ()) -> None:
    """Raise if a command would not be understood. `titles` are files that its page tells to create."""
    program, *arguments = shlex.split(command, comments=True)
    match program:
        case "priocast":
            parse_arguments(arguments)
        case "make":
            [target, *variables] = arguments
            assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
            assert all("=" in each for each in variables), variables
        case "pip":
            _check_install(arguments)
        case "python" if arguments[:2] == ["-m", "pip"]:
            _check_install(arguments[2:])
        case "python" if arguments[0] == "-m":
            assert list(ROOT.glob(f"{arguments[1].replace('.', '/')}*")), f"there is no {arguments[1]}"
        case "python":
            assert arguments[0] in titles or (ROOT / arguments[0]).exists(), f"there is no {arguments[0]}"
        case _:
            assert program in _OF_OTHERS, f"nobody checks {program}"
            for option, value in pairwise(arguments):
                assert option not in _FILE_OPTIONS or (ROOT / value).exists(), f"there is no {value}"


def parse_arguments(arguments: list[str]) -> dict[str, Any]:
    """What the command line makes of these arguments, by the names of its parameters; nothing is run."""
    try:
        return _parse(typer.main.get_command(app), "priocast", arguments, None)
    except typer.Exit:  # --version, --help
        return {}


def _parse(command: Any, name: str | None, arguments: list[str], parent: Any) -> dict[str, Any]:
    context = command.make_context(name, list(arguments), parent=parent)
    if not isinstance(command, TyperGroup):
        return dict(context.params)
    found, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    return _parse(inner, found, rest, context)


def _check_install(arguments: list[str]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert arguments[0] == "install"
    for extras in _EXTRAS.findall(" ".join(arguments)):
        assert set(extras.split(",")) <= set(declared), f"no such extra: {extras}"
