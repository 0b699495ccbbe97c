"""Output of the `--json` options."""

import msgspec
import typer

from priocast.operations.visible_text import visible_json


def print_json(document: object) -> None:
    """Print one indented JSON document; it may contain structs and dataclasses."""
    typer.echo(visible_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()))


def print_json_line(document: object) -> None:
    """Print a JSON document on one line."""
    typer.echo(visible_json(msgspec.json.encode(document).decode()))
