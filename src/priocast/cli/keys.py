"""`priocast keys`: creates, revokes and changes the certificates and keys that authenticate processes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from priocast.cli.option_checks import check_directory, check_file
from priocast.core.role import Role

EXAMPLES = """
[bold]Examples[/]

Once, on a trusted machine that runs no member (the key is needed only to sign certificates):

  priocast keys authority --out keys

For each member, client and observer, with the groups it may use:

  priocast keys member a --group tickets --group audit --out keys

  priocast keys client shop --group tickets --out keys

For a group over UDP, one key for all its members:

  priocast keys group keys/tickets.key

When a key is lost, or a process must not connect any more:

  priocast keys revoke keys/shop.crt --out keys

  priocast keys rotate keys/tickets.key add
"""

keys = typer.Typer(
    help="Create certificates for members and clients, and keys for groups over UDP.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DAYS_MAX = 36_500

RotationStep = Literal["add", "use", "drop"]

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


Name = Annotated[str, typer.Argument(help="Name of the process.", show_default=False)]
Groups = Annotated[list[str], typer.Option(help="Group that it may use. Repeat it for several.")]
AuthorityDirectory = Annotated[
    Path | None,
    typer.Option("--authority", help="Directory of the authority.", show_default="same as --out"),
]
Days = Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Validity, in days.")]


@keys.command(epilog="  priocast keys member a --group tickets --group audit --out keys")
def member(
    name: Name,
    group: Groups,
    out: Out = Path("keys"),
    authority_directory: AuthorityDirectory = None,
    days: Days = 365,
) -> None:
    """Create the certificate of a member, with its name and groups, and its private key."""
    _certify(Role.MEMBER, name, group, out, authority_directory, days)


@keys.command(epilog="  priocast keys client shop --group tickets --out keys")
def client(
    name: Name,
    group: Groups,
    out: Out = Path("keys"),
    authority_directory: AuthorityDirectory = None,
    days: Days = 365,
) -> None:
    """Create the certificate of a client, which may have members broadcast for it, and nothing else."""
    _certify(Role.CLIENT, name, group, out, authority_directory, days)


@keys.command(epilog="  priocast keys observer board --group tickets --out keys")
def observer(
    name: Name,
    group: Groups,
    out: Out = Path("keys"),
    authority_directory: AuthorityDirectory = None,
    days: Days = 365,
) -> None:
    """Create the certificate of an observer, which hears the heartbeats of members and may send nothing."""
    _certify(Role.OBSERVER, name, group, out, authority_directory, days)


def _certify(
    role: Role, name: str, groups: list[str], out: Path, authority_directory: Path | None, days: int
) -> None:
    from priocast.network.keys import Authority, make_member_certificate

    check_directory("--out", out)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    where = authority_directory or out
    signer = Authority(where / "authority.crt", where / "authority.key")
    made = make_member_certificate(out, signer, name, groups, role=role, days=days)
    may = {Role.MEMBER: "may join", Role.CLIENT: "may send to", Role.OBSERVER: "may observe"}[role]
    typer.echo(f"created {made.certificate} and {made.key}: {name} {may} {', '.join(groups)} for {days} days")


@keys.command(epilog="  priocast keys revoke keys/shop.crt --out keys")
def revoke(
    certificate: Annotated[
        list[Path] | None, typer.Argument(help="Certificates to revoke.", show_default="an empty list")
    ] = None,
    out: Out = Path("keys"),
    authority_directory: AuthorityDirectory = None,
) -> None:
    """Add certificates to the list of those that are no longer accepted, revoked.crl.

    Copy the list to every machine, where the node names it (revoked in node.tls, or --tls-revoked), and send
    each node SIGHUP.
    """
    from priocast.network.keys import Authority
    from priocast.network.revocation import revoke_certificates

    check_directory("--out", out)
    where = authority_directory or out
    path = out / "revoked.crl"
    signer = Authority(where / "authority.crt", where / "authority.key")
    count = len(revoke_certificates(path, signer, certificate or []))
    typer.echo(f"wrote {path}: {count} revoked; copy it to every member and send SIGHUP to its node")


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


@keys.command(epilog="  priocast keys rotate keys/tickets.key add")
def rotate(
    path: Annotated[Path, typer.Argument(help="File of the group's key.", show_default=False)],
    step: Annotated[
        RotationStep,
        typer.Argument(help="add: a new key. use: seal with it. drop: the old one.", show_default=False),
    ],
) -> None:
    """Change the key of a group over UDP while it runs, in three steps.

    After each step, copy the file to every member and send SIGHUP to its node, before the next step.
    """
    from priocast.network.keys import rotate_group_key

    count = rotate_group_key(path, step)
    typer.echo(f"wrote {path}: {count} key(s); copy it to every member and send SIGHUP to its node")
