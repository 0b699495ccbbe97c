"""`priocast node`: one member of a real group, which broadcasts lines and prints what is delivered."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from priocast.core.errors import InvalidInput, PriorityOutOfRange
from priocast.core.events import Delivery, Event, ViewChange
from priocast.core.priority import ROUTINE, parse_priority
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import parse_starvation
from priocast.runtime.group import START_SECONDS, Group, Joining, join

EXAMPLES = """
[bold]Examples[/] (three terminals on one machine):

  priocast node tickets --member a --listen 127.0.0.1:7401 --peer 127.0.0.1:7402 --peer 127.0.0.1:7403

  priocast node tickets --member b --listen 127.0.0.1:7402 --peer 127.0.0.1:7401 --peer 127.0.0.1:7403

  priocast node tickets --member c --listen 127.0.0.1:7403 --peer 127.0.0.1:7401 --peer 127.0.0.1:7402

then type lines: [cyan]two seats please[/] is routine, [cyan]urgent: stop selling[/] overtakes what waits.
"""


def node(
    group: Annotated[str, typer.Argument(help="The name of the group.")],
    member: Annotated[str, typer.Option(help="The name of this member, unlike any other.")],
    listen: Annotated[str, typer.Option(help="The address of this member, host:port.")],
    peer: Annotated[
        list[str] | None, typer.Option(help="The address of another member; once for each of them.")
    ] = None,
    order: Annotated[str, typer.Option(help="The protocol that orders the messages.")] = "sequencer-ub",
    plain: Annotated[
        bool, typer.Option("--plain", help="Ignore priorities: first come, first served.")
    ] = False,
    starvation: Annotated[
        str, typer.Option(help="How long urgent messages may overtake: none, ageing:20ms or flush:500ms.")
    ] = "none",
    trace: Annotated[Path | None, typer.Option(help="Record the run in this directory.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Leave after this many messages.")] = None,
    start_seconds: Annotated[
        float, typer.Option(help="How long to wait for the other members.")
    ] = START_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Be one member of a group: lines typed are broadcast, messages delivered are printed, in one order."""
    joining = join(
        group,
        member=member,
        listen=listen,
        peers=peer or [],
        order=order,
        options=OrderingOptions(starvation=parse_starvation(starvation)),
        prioritised=not plain,
        trace=trace,
        start_seconds=start_seconds,
    )
    try:
        uvloop.run(_take_part(joining, count, _as_json if as_json else _as_text))
    except KeyboardInterrupt:
        typer.echo("left the group", err=True)


async def _take_part(joining: Joining, count: int | None, render: Callable[[Event], str]) -> None:
    async with joining as group, asyncio.TaskGroup() as tasks:
        typing = tasks.create_task(_broadcast_lines(group))
        async for event in group:
            sys.stdout.write(render(event) + "\n")
            sys.stdout.flush()
            if isinstance(event, Delivery) and event.position + 1 == count:
                break
        typing.cancel()


async def _broadcast_lines(group: Group) -> None:
    """Broadcast every line of standard input until it ends; one that cannot be sent is named and left out."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        text = line.decode(errors="replace").rstrip("\n")
        if not text:
            continue
        try:
            priority, payload = _split(text)
            await group.broadcast(payload, priority)
        except InvalidInput as error:
            typer.echo(f"error: {error}", err=True)


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


def _as_text(event: Event) -> str:
    match event:
        case Delivery(message=message, position=position):
            text = message.payload.decode(errors="replace")
            return f"{position:>6}  {message.sender.name:<8} {message.priority:>3}  {text}"
        case ViewChange(view=view):
            names = ", ".join(member.name for member in view.members)
            return f"the group is complete: {names} (view {view.number})"


def _as_json(event: Event) -> str:
    match event:
        case Delivery(message=message, position=position):
            fields: dict[str, object] = {
                "position": position,
                "sender": message.sender.name,
                "priority": message.priority,
                "id": str(message.id),
                "payload": message.payload.decode(errors="replace"),
            }
        case ViewChange(view=view):
            fields = {"view": view.number, "members": [str(member) for member in view.members]}
    return json.dumps(fields)
