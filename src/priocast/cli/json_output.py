"""Output of the `--json` options."""

import msgspec
import typer


def print_json(document: object) -> None:
    """Print one indented JSON document; it may contain structs and dataclasses."""
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
