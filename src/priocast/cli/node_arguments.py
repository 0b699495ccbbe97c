"""The arguments of `priocast node`, and the node plan that they describe."""

from pathlib import Path
from typing import Annotated, Any

import typer

from priocast.advice.choice import resolve_order
from priocast.cli.option_checks import check_directory, check_location, first_given
from priocast.cli.shared_options import tls_of
from priocast.core.errors import InvalidOption, UnusableKey
from priocast.core.identity import check_name
from priocast.core.protocol import OrderingOptions
from priocast.core.role import Role
from priocast.core.starvation import parse_starvation
from priocast.membership.options import MembershipOptions
from priocast.network.address import parse_address
from priocast.network.security import TlsSecurity
from priocast.operations.node_plan import AdminPlan, GroupPlan, NodePlan
from priocast.runtime.admin.admin_address import check_admin_address
from priocast.runtime.arguments import discovery_of

_ALLOWED_WITH_CONFIG = {
    "config",
    "check",
    "example_config",
    "lines_to",
    "count",
    "quality",
    "to",
    "log_format",
    "log_level",
    "as_json",
}

_ORDER_OPTIONS = ("burst", "bucket", "acknowledge_ms", "part_ms", "part_count", "adaptation")

GroupArgument = Annotated[str | None, typer.Argument(help="Name of the group.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Name of this member, unique in the group.")]
Listen = Annotated[str | None, typer.Option(help="Address of this member, host:port.")]
Peers = Annotated[
    list[str] | None,
    typer.Option(help="Address of another member; repeat it for each. Or dns:NAME:PORT, a name for all."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Ignore priorities: first in, first out.")]
Policy = Annotated[
    str,
    typer.Option(
        help="Which side of a network partition continues: primary (the one with a quorum) or partitionable "
        "(every side)."
    ),
]
DeliveryMode = Annotated[
    str,
    typer.Option(help="Deliver a message when it is ordered (agreed) or when all members have it (safe)."),
]
Founders = Annotated[
    int | None,
    typer.Option(help="How many members form the first view together.", show_default="1 + number of --peer"),
]
StateDirectory = Annotated[
    Path | None, typer.Option(help="Directory for the last incarnation number, kept across restarts.")
]
AdminAddress = Annotated[
    str | None,
    typer.Option("--admin", help="Address for 'priocast probe' and Prometheus, host:port."),
]
Trace = Annotated[
    str | None, typer.Option(help="Record a trace in this directory, or at a URL such as s3://bucket/run.")
]
Count = Annotated[int | None, typer.Option(min=1, help="Leave after this many messages.")]
StartSeconds = Annotated[
    float, typer.Option(help="How long to wait for the first view that contains this member, in seconds.")
]
Config = Annotated[
    Path | None, typer.Option(help="Read the configuration of the node and its groups from this file.")
]
Check = Annotated[bool, typer.Option("--check", help="Check the configuration, print a summary and exit.")]
Example = Annotated[
    bool, typer.Option("--example-config", help="Print a commented configuration file and exit.")
]
LinesTo = Annotated[
    str | None,
    typer.Option("--group", help="With several groups: the group that input lines are broadcast to."),
]
SendTo = Annotated[
    list[str] | None,
    typer.Option(
        "--to", help="With --quality: member that gets the lines. Repeat it.", show_default="all members"
    ),
]
LogFormat = Annotated[str, typer.Option(help="Format of the log on standard error: text or json.")]
LogLevel = Annotated[str, typer.Option(help="Lowest level to log: debug, info, warning or error.")]
EventsAsJson = Annotated[bool, typer.Option("--json", help="Print each event as a JSON object on one line.")]


def check_only_config(context: typer.Context) -> None:
    """Reject an argument that would contradict the configuration file."""
    name = first_given(context, except_for=_ALLOWED_WITH_CONFIG)
    if name is not None:
        raise InvalidOption(
            f"{name} cannot be combined with --config: set it in the file, under [node] or [[group]]"
        )


def plan_from_arguments(given: dict[str, Any]) -> NodePlan:
    """The plan that the command line describes, checked as a configuration file is."""
    missing = [name for name in ("group", "member", "listen") if given[name] is None]
    if missing:
        raise InvalidOption(
            f"{' and '.join(missing)} missing: give GROUP, --member NAME and --listen HOST:PORT, "
            "or --config FILE"
        )
    peers = tuple(given["peer"] or ())
    discovery = discovery_of(peers)
    for address in (given["listen"], *(peers if discovery is None else ())):
        parse_address(address)
    if discovery is not None and given["founders"] is None:
        raise InvalidOption(f"--peer is {discovery.name}: also give --founders, how many found the group")
    if given["admin"] is not None:
        check_admin_address(given["admin"], allow_remote=False)
    check_directory("--state-directory", given["state_directory"])
    name = check_name(given["member"], "member")
    tls = tls_of(*(given[f"tls_{file}"] for file in ("certificate", "key", "authority", "revoked")))
    if tls is not None:
        _check_certificate(tls, name, given["group"])
    return NodePlan(
        name=name,
        listen=given["listen"],
        peers=peers,
        groups=(_group_plan(given, founders_default=len(peers) + 1),),
        tls=tls,
        state_directory=given["state_directory"],
        admin=AdminPlan(listen=given["admin"]) if given["admin"] else None,
        start_seconds=given["start_seconds"],
    )


def _check_certificate(tls: TlsSecurity, name: str, group: str) -> None:
    """Raise if the files cannot be used, or do not admit this member to this group."""
    tls.contexts()
    if tls.roles_of(name).get(group) is not Role.MEMBER:
        raise UnusableKey(
            f"{tls.certificate} does not allow {name} to join {group}: create one that does "
            "(priocast keys member), or correct the name of the group"
        )


def _group_plan(given: dict[str, Any], founders_default: int) -> GroupPlan:
    founders = founders_default if given["founders"] is None else given["founders"]
    membership = MembershipOptions(founders=founders, policy=given["policy"], delivery=given["delivery"])
    options = OrderingOptions(
        prioritised=not given["plain"],
        starvation=parse_starvation(given["starvation"]),
        **{name: given[name] for name in _ORDER_OPTIONS},
    )
    resolve_order(given["order"], options, membership)
    check_location("--trace", given["trace"])
    return GroupPlan(
        name=check_name(given["group"], "group"),
        order=given["order"],
        options=options,
        membership=membership,
        trace=given["trace"],
    )
