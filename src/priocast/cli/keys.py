"""`priocast keys`: creates the certificates and keys that authenticate members."""

from pathlib import Path
from typing import Annotated

import typer

from priocast.cli.option_checks import check_directory, check_file

EXAMPLES = """
[bold]Examples[/]

Once, on a trusted machine that runs no member (the key is needed only to sign certificates):

  priocast keys authority --out keys

For each member and each client, with the groups it may join:

  priocast keys member a --group tickets --group audit --out keys

For a group over UDP, one key for all its members:

  priocast keys group keys/tickets.key
"""

keys = typer.Typer(
    help="Create certificates for TCP with TLS, and keys for groups over UDP.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DAYS_MAX = 36_500

Out = Annotated[Path, typer.Option(help="Directory for the files; created if missing.")]


@keys.command(epilog="  priocast keys authority --out keys")
def authority(
    out: Out = Path("keys"),
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Validity, in days.")] = 3650,
) -> None:
    """Create a certificate authority: authority.crt for every member, authority.key for none of them."""
    from priocast.network.keys import make_authority  # imported here: cryptography is slow to import

    check_directory("--out", out)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = make_authority(out, days=days)
    typer.echo(f"created {made.certificate}: copy it to every member")
    typer.echo(f"created {made.key}: keep it secret, and off the machines that run members")


@keys.command(epilog="  priocast keys member a --group tickets --group audit --out keys")
def member(
    name: Annotated[str, typer.Argument(help="Name of the member or client.", show_default=False)],
    group: Annotated[list[str], typer.Option(help="Group that it may join. Repeat it for several.")],
    out: Out = Path("keys"),
    authority_directory: Annotated[
        Path | None,
        typer.Option("--authority", help="Directory of the authority.", show_default="same as --out"),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Validity, in days.")] = 365,
) -> None:
    """Create the certificate of a member or client, with its name and groups, and its private key."""
    from priocast.network.keys import Authority, make_member_certificate

    check_directory("--out", out)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    where = authority_directory or out
    signer = Authority(where / "authority.crt", where / "authority.key")
    made = make_member_certificate(out, signer, name, group, days=days)
    typer.echo(
        f"created {made.certificate} and {made.key}: {name} may join {', '.join(group)} for {days} days"
    )


@keys.command(epilog="  priocast keys group keys/tickets.key")
def group(
    path: Annotated[Path, typer.Argument(help="File to create.", show_default=False)],
) -> None:
    """Create the key that all members of a group over UDP share."""
    from priocast.network.keys import make_group_key

    check_file("PATH", path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_group_key(path)
    typer.echo(f"created {path}: copy it to every member over a secure channel")
