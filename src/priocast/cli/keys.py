"""`priocast keys`: makes what members prove themselves with."""

from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.option_checks import check_directory, check_file

EXAMPLES = """
[bold]Examples[/]

Once, on a machine that is kept safe (its key signs, and is needed for nothing else):

  priocast keys authority --out keys

For each member, naming the groups that it may be in; a client needs one as well:

  priocast keys member a --group tickets --group audit --out keys

For a group over UDP, the same file for all its members:

  priocast keys group keys/tickets.key
"""

keys = typer.Typer(
    help="Make certificates for TCP with TLS, and keys for groups over UDP.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DAYS_MAX = 36_500

Out = Annotated[Path, typer.Option(help="The directory for the files; it is made if it is not there.")]


@keys.command(epilog="  priocast keys authority --out keys")
def authority(
    out: Out = Path("keys"),
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="How long it is valid.")] = 3650,
) -> None:
    """Make an authority: authority.crt, which every member gets, and authority.key, which none gets."""
    from priocast.network.keys import make_authority  # here, because cryptography is slow to import

    check_directory("--out", out)
    check_file("--out", out / "authority.crt")
    out.mkdir(parents=True, exist_ok=True)
    made = make_authority(out, days=days)
    typer.echo(f"made {made.certificate}: give it to every member")
    typer.echo(f"made {made.key}: keep it safe, and off the machines that run members")


@keys.command(epilog="  priocast keys member a --group tickets --group audit --out keys")
def member(
    name: Annotated[str, typer.Argument(help="The member, or the client.", show_default=False)],
    group: Annotated[list[str], typer.Option(help="A group that it may be in; once for each of them.")],
    out: Out = Path("keys"),
    authority_directory: Annotated[
        Path | None, typer.Option("--authority", help="The authority's directory.", show_default="as --out")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="How long it is valid.")] = 365,
) -> None:
    """Make a certificate, which says who a member is and which groups it may be in, and its private key."""
    from priocast.network.keys import Authority, make_member_certificate

    check_directory("--out", out)
    check_file("--out", out / f"{name}.crt")
    out.mkdir(parents=True, exist_ok=True)
    where = authority_directory or out
    signer = Authority(where / "authority.crt", where / "authority.key")
    made = make_member_certificate(out, signer, name, group, days=days)
    typer.echo(f"made {made.certificate} and {made.key}: {name} may be in {', '.join(group)} for {days} days")


@keys.command(epilog="  priocast keys group keys/tickets.key")
def group(
    path: Annotated[Path, typer.Argument(help="The file to make.", show_default=False)],
) -> None:
    """Make the key that all members of a group over UDP share."""
    from priocast.network.keys import make_group_key

    check_file("the key", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    make_group_key(path)
    typer.echo(f"made {path}: give it to every member, by a way that nobody else reads")
