"""`priocast node`: one member of a real group, which broadcasts lines and prints what is delivered."""

# ruff: noqa: ARG001 - the arguments that describe a plan are taken from the context, all at once

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from priocast.advice.choice import resolve_order
from priocast.cli.checks import check_directory, first_typed
from priocast.cli.ordering import (
    BUCKET,
    PART_COUNT,
    PART_MS,
    Bucket,
    Burst,
    Order,
    PartCount,
    PartMs,
    Starvation,
)
from priocast.core.errors import InvalidInput, InvalidOption, PriorityOutOfRange
from priocast.core.events import Delivery, Event, Evicted, Restored, ViewChange
from priocast.core.identity import check_name
from priocast.core.message import Message
from priocast.core.priority import ROUTINE, parse_priority
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import parse_starvation
from priocast.membership.options import MembershipOptions
from priocast.network.address import parse_address
from priocast.network.security import TlsSecurity
from priocast.operations.admin import check_admin_address
from priocast.operations.config import read_config
from priocast.operations.config_example import EXAMPLE
from priocast.operations.lines import LineReader, LineWriter
from priocast.operations.logs import configure_logging
from priocast.operations.plan import ORDER, AdminPlan, GroupPlan, Plan
from priocast.operations.service import Service
from priocast.runtime.group import Group
from priocast.runtime.node import START_SECONDS

EXAMPLES = """
[bold]Examples[/] (three terminals on one machine):

  priocast node tickets --member a --listen 127.0.0.1:7401 --peer 127.0.0.1:7402 --peer 127.0.0.1:7403

  priocast node tickets --member b --listen 127.0.0.1:7402 --peer 127.0.0.1:7401 --peer 127.0.0.1:7403

  priocast node tickets --member c --listen 127.0.0.1:7403 --peer 127.0.0.1:7401 --peer 127.0.0.1:7402

then type lines: [cyan]two seats please[/] is routine, [cyan]urgent: stop selling[/] overtakes what waits.

From a file, which a service would use:

  priocast node --example-config > group.toml

  priocast node --config group.toml --check

  priocast node --config group.toml --json --log-format json --log-level info
"""
EXIT_UNSETTLED = 1
_WRITE_SECONDS = 2.0
_NOWHERE = -1  # a descriptor that is closed
_BESIDE_CONFIG = {
    "config",
    "check",
    "example_config",
    "lines_to",
    "count",
    "log_format",
    "log_level",
    "as_json",
}

Name = Annotated[str | None, typer.Option(help="The name of this member, unlike any other.")]
Listen = Annotated[str | None, typer.Option(help="The address of this member, host:port.")]
Peers = Annotated[list[str] | None, typer.Option(help="The address of another member; once for each.")]
Plain = Annotated[bool, typer.Option("--plain", help="Ignore priorities: first come, first served.")]
Policy = Annotated[
    str, typer.Option(help="What a cut does: primary (the majority goes on) or partitionable.")
]
WhenDelivered = Annotated[
    str, typer.Option(help="When a message is delivered: agreed, or safe (all have it).")
]
Founders = Annotated[
    int | None, typer.Option(help="How many members found the group.", show_default="all that are named")
]
TlsFile = Annotated[Path | None, typer.Option(help="For TLS: the certificate, its key, the authority's.")]
State = Annotated[Path | None, typer.Option(help="Where the number of this member's last life is kept.")]
AdminAddress = Annotated[
    str | None, typer.Option("--admin", help="Answer 'priocast probe' and Prometheus here.")
]
Trace = Annotated[Path | None, typer.Option(help="Record the run in this directory.")]
Count = Annotated[int | None, typer.Option(min=1, help="Leave after this many messages.")]
Start = Annotated[float, typer.Option(help="How long to wait for the other members.")]
Config = Annotated[Path | None, typer.Option(help="Take all this from a file, and be in several groups.")]
Check = Annotated[bool, typer.Option("--check", help="Only check the file, and say what it says.")]
Example = Annotated[bool, typer.Option("--example-config", help="Print a file that explains itself.")]
LinesTo = Annotated[str | None, typer.Option("--group", help="The group that lines go to, of several.")]
LogFormat = Annotated[str, typer.Option(help="How to log to standard error: text or json.")]
LogLevel = Annotated[str, typer.Option(help="What to log: debug, info, warning or error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]


def node(
    context: typer.Context,
    group: Annotated[str | None, typer.Argument(help="The name of the group.", show_default=False)] = None,
    member: Name = None,
    listen: Listen = None,
    peer: Peers = None,
    order: Order = ORDER,
    plain: Plain = False,
    starvation: Starvation = "none",
    burst: Burst = None,
    bucket: Bucket = BUCKET,
    part_ms: PartMs = PART_MS,
    part_count: PartCount = PART_COUNT,
    policy: Policy = "primary",
    delivery: WhenDelivered = "agreed",
    founders: Founders = None,
    tls_certificate: TlsFile = None,
    tls_key: TlsFile = None,
    tls_authority: TlsFile = None,
    state_directory: State = None,
    admin: AdminAddress = None,
    trace: Trace = None,
    start_seconds: Start = START_SECONDS,
    config: Config = None,
    check: Check = False,
    example_config: Example = False,
    lines_to: LinesTo = None,
    count: Count = None,
    log_format: LogFormat = "text",
    log_level: LogLevel = "warning",
    as_json: AsJson = False,
) -> None:
    """Be one member of a group: lines typed are broadcast, messages delivered are printed, in one order.

    Everything about the group is given by arguments, or by a file (--config). The first SIGTERM or Ctrl-C
    leaves in good order: what was typed gets its place before. A second one ends at once.
    """
    if example_config:
        typer.echo(EXAMPLE, nl=False)
        return
    if config is not None:
        _refuse_beside_config(context)
        plan = read_config(config)
    else:
        plan = _plan_of(context.params)
    if check:
        typer.echo(plan.describe())
        return
    if lines_to is not None and lines_to not in [each.name for each in plan.groups]:
        raise InvalidOption(f"--group is {lines_to!r}: choose one of those that {plan.name} is in")
    configure_logging(log_format, log_level)
    unsettled = uvloop.run(_take_part(plan, lines_to, count, _as_json if as_json else _as_text))
    if unsettled:
        raise typer.Exit(EXIT_UNSETTLED)


def _refuse_beside_config(context: typer.Context) -> None:
    """What is in the file cannot be given as an argument, too: nobody could tell which holds."""
    name = first_typed(context, besides=_BESIDE_CONFIG)
    if name is not None:
        raise InvalidOption(f"{name} is given beside --config: say it in the file, under [node] or [[group]]")


def _plan_of(given: dict[str, Any]) -> Plan:
    """What the arguments say, checked like a file."""
    missing = [name for name in ("group", "member", "listen") if given[name] is None]
    if missing:
        raise InvalidOption(
            f"{' and '.join(missing)} missing: give GROUP, --member NAME and --listen HOST:PORT, "
            "or --config FILE"
        )
    tls = [given["tls_certificate"], given["tls_key"], given["tls_authority"]]
    if any(tls) and not all(tls):
        raise InvalidOption("TLS needs all of --tls-certificate, --tls-key and --tls-authority")
    peers = tuple(given["peer"] or ())
    for address in (given["listen"], *peers):
        parse_address(address)
    founders = len(peers) + 1 if given["founders"] is None else given["founders"]
    membership = MembershipOptions(founders=founders, policy=given["policy"], delivery=given["delivery"])
    options = OrderingOptions(
        prioritised=not given["plain"],
        starvation=parse_starvation(given["starvation"]),
        **{name: given[name] for name in ("burst", "bucket", "part_ms", "part_count")},
    )
    resolve_order(given["order"], options, membership)
    if given["admin"] is not None:
        check_admin_address(given["admin"], allow_remote=False)
    check_directory("--trace", given["trace"])
    check_directory("--state-directory", given["state_directory"])
    group = GroupPlan(
        name=check_name(given["group"], "group"),
        order=given["order"],
        options=options,
        membership=membership,
        trace=given["trace"],
    )
    return Plan(
        name=check_name(given["member"], "member"),
        listen=given["listen"],
        peers=peers,
        groups=(group,),
        tls=TlsSecurity(*tls) if all(tls) else None,
        state_directory=given["state_directory"],
        admin=AdminPlan(listen=given["admin"]) if given["admin"] else None,
        start_seconds=given["start_seconds"],
    )


async def _take_part(
    plan: Plan, lines_to: str | None, count: int | None, render: Callable[[str, Event], str]
) -> list[str]:
    """Run the plan; lines in are broadcast, events are lines out."""
    only = plan.groups[0].name if len(plan.groups) == 1 else lines_to
    reader = LineReader(sys.stdin.fileno() if sys.stdin else _NOWHERE)
    delivered = 0

    async def print_event(group: str, event: Event) -> None:
        nonlocal delivered
        if count is not None and delivered >= count:
            return
        await writer.write(render("" if len(plan.groups) == 1 else group, event))
        delivered += isinstance(event, Delivery)
        if delivered == count:
            service.finish()

    async def broadcast_lines(groups: dict[str, Group]) -> None:
        async for line in reader.lines(service.ending):
            if line.strip():
                await _broadcast(line, groups, only)

    service = Service(plan, print_event, broadcast_lines)
    writer = LineWriter(sys.stdout.fileno() if sys.stdout else _NOWHERE, service.finish)
    try:
        return await service.run()
    finally:
        await writer.close(_WRITE_SECONDS)


async def _broadcast(line: str, groups: dict[str, Group], only: str | None) -> None:
    """Broadcast one line; if it cannot be sent, it is named and left out."""
    try:
        name, text = (only, line) if only else _split_group(line, groups)
        priority, payload = _split(text)
        await groups[name].broadcast(payload, priority)
    except InvalidInput as error:
        typer.echo(f"error: {error}", err=True)


def _split_group(line: str, groups: dict[str, Group]) -> tuple[str, str]:
    """Read `tickets: text`, where there are several groups."""
    name, _, text = line.partition(":")
    if name.strip() not in groups:
        raise InvalidInput(
            f"{line!r} names no group: write {' or '.join(f'{each}: text' for each in groups)}"
        )
    return name.strip(), text.strip()


def _split(line: str) -> tuple[int, bytes]:
    """Read `urgent: text` or `200: text`; a line without a priority is routine."""
    head, separator, rest = line.partition(":")
    try:
        if separator and head.strip():
            return parse_priority(head), rest.strip().encode()
    except PriorityOutOfRange:
        if head.strip().lstrip("-").isdecimal():
            raise InvalidInput(f"{head.strip()} in {line!r} is not a priority from 0 to 255") from None
    return ROUTINE, line.encode()


def _as_text(group: str, event: Event) -> str:
    at = f"{group}: " if group else ""
    match event:
        case Delivery(message=message, position=position):
            text = message.payload.decode(errors="replace")
            sender = _client_of(message) or message.sender.name
            return f"{at}{position:>6}  {sender:<8} {message.priority:>3}  {text}"
        case ViewChange(view=view, reason=reason):
            names = ", ".join(member.name for member in view.members)
            return f"{at}view {view.number}: {names} ({reason})"
        case Evicted(reason=reason):
            return f"{at}evicted; rejoining with a new incarnation: {reason}"
        case Restored(position=position, bytes=size):
            return f"{at}took over the state of position {position} ({size:,} bytes)"


def _client_of(message: Message) -> str:
    """The client that a member broadcast a message for, if there was one."""
    return message.scope.client.rpartition("#")[0]


def _as_json(group: str, event: Event) -> str:
    match event:
        case Delivery(message=message, position=position):
            fields: dict[str, object] = {
                "position": position,
                "sender": message.sender.name,
                "client": _client_of(message),
                "priority": message.priority,
                "id": str(message.id),
                "payload": message.payload.decode(errors="replace"),
            }
        case ViewChange(view=view, reason=reason, position=position):
            members = [str(member) for member in view.members]
            fields = {"view": view.number, "members": members, "reason": str(reason), "position": position}
        case Evicted(reason=reason):
            fields = {"stopped": str(reason)}
        case Restored(position=position, bytes=size):
            fields = {"restored": position, "bytes": size}
    return json.dumps({"group": group} | fields if group else fields)
