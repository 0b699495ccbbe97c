"""`priocast node`: one member of a real group. It broadcasts input lines and prints what is delivered."""

# ruff: noqa: ARG001 - the arguments that make a plan are read from the context, all at once

import sys
from collections.abc import Callable
from pathlib import Path

import typer

from priocast.cli.exit_codes import EXIT_OUTPUT_LOST, EXIT_UNORDERED
from priocast.cli.line_sender import LineSender
from priocast.cli.node_arguments import (
    AdminAddress,
    Check,
    Config,
    Count,
    DeliveryMode,
    EventsAsJson,
    Example,
    Founders,
    GroupArgument,
    LinesTo,
    Listen,
    LogFormat,
    LogLevel,
    Name,
    Peers,
    Plain,
    Policy,
    SendTo,
    StartSeconds,
    StateDirectory,
    Trace,
    check_only_config,
    plan_from_arguments,
)
from priocast.cli.node_lines import event_as_json, event_as_text, split_group, split_priority
from priocast.cli.shared_options import (
    ACKNOWLEDGE_MS,
    ADAPTATION,
    BUCKET,
    PART_COUNT,
    PART_MS,
    AcknowledgeMs,
    Adaptation,
    Bucket,
    Burst,
    Order,
    PartCount,
    PartMs,
    SendQuality,
    Starvation,
    TlsAuthority,
    TlsCertificate,
    TlsKey,
    TlsRevoked,
)
from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.events import Delivery, Event, ServiceDelivery
from priocast.operations.config import read_config
from priocast.operations.config_example import EXAMPLE
from priocast.operations.line_io import LINE_BYTES_MAX, LineReader, LineWriter
from priocast.operations.logs import configure_logging
from priocast.operations.node_plan import ORDER, NodePlan
from priocast.operations.service import Service
from priocast.operations.visible_text import visible
from priocast.runtime import event_loop
from priocast.runtime.configuration import START_SECONDS
from priocast.runtime.group import Group

EXAMPLES = """
[bold]Examples[/] (three terminals on one machine):

  priocast node tickets --member a --listen 127.0.0.1:7401 --peer 127.0.0.1:7402 --peer 127.0.0.1:7403

  priocast node tickets --member b --listen 127.0.0.1:7402 --peer 127.0.0.1:7401 --peer 127.0.0.1:7403

  priocast node tickets --member c --listen 127.0.0.1:7403 --peer 127.0.0.1:7401 --peer 127.0.0.1:7402

Then type lines: [cyan]two seats please[/] is routine, [cyan]urgent: stop selling[/] overtakes what waits.

With --quality reliable, or another quality of service, lines are sent beside the total order.

From a configuration file, as a service:

  priocast node --example-config > group.toml

  priocast node --config group.toml --check

  priocast node --config group.toml --json --log-format json --log-level info
"""
_WRITE_SECONDS = 2.0
_NO_DESCRIPTOR = -1  # stands for standard input or output that is closed


def node(
    context: typer.Context,
    group: GroupArgument = None,
    member: Name = None,
    listen: Listen = None,
    peer: Peers = None,
    order: Order = ORDER,
    plain: Plain = False,
    starvation: Starvation = "none",
    burst: Burst = None,
    bucket: Bucket = BUCKET,
    acknowledge_ms: AcknowledgeMs = ACKNOWLEDGE_MS,
    part_ms: PartMs = PART_MS,
    part_count: PartCount = PART_COUNT,
    adaptation: Adaptation = ADAPTATION,
    policy: Policy = "primary",
    delivery: DeliveryMode = "agreed",
    founders: Founders = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_authority: TlsAuthority = None,
    tls_revoked: TlsRevoked = None,
    state_directory: StateDirectory = None,
    admin: AdminAddress = None,
    trace: Trace = None,
    start_seconds: StartSeconds = START_SECONDS,
    config: Config = None,
    check: Check = False,
    example_config: Example = False,
    lines_to: LinesTo = None,
    count: Count = None,
    quality: SendQuality = None,
    to: SendTo = None,
    log_format: LogFormat = "text",
    log_level: LogLevel = "warning",
    as_json: EventsAsJson = False,
) -> None:
    """Run one member of a group: broadcast the lines of standard input, print the messages delivered.

    Describe the group by arguments or by a file (--config). The first SIGTERM or Ctrl-C leaves the group
    after the lines read so far are ordered; a second one exits at once. Exit code 1: some were not ordered,
    or what was delivered could not be written.
    """
    if example_config:
        typer.echo(EXAMPLE, nl=False)
        return
    plan = _plan_of(context, config, lines_to)
    sender = LineSender(quality, to)
    if check:
        typer.echo(plan.describe())
        return
    configure_logging(log_format, log_level)
    render = event_as_json if as_json else event_as_text
    unordered = event_loop.run(_run(plan, lines_to, count, render, sender))
    if unordered:
        raise typer.Exit(EXIT_UNORDERED)


def _plan_of(context: typer.Context, config: Path | None, lines_to: str | None) -> NodePlan:
    """The plan in the configuration file or in the arguments; it has the group that lines go to."""
    if config is not None:
        check_only_config(context)
        plan = read_config(config)
    else:
        plan = plan_from_arguments(context.params)
    names = [each.name for each in plan.groups]
    if lines_to is not None and lines_to not in names:
        raise InvalidOption(
            f"--group is {lines_to!r}: {plan.name} is in {', '.join(names)}; choose one of them"
        )
    return plan


async def _run(
    plan: NodePlan,
    lines_to: str | None,
    count: int | None,
    render: Callable[[str, Event], str],
    sender: LineSender,
) -> list[str]:
    """Broadcast input lines and print events; return the groups in which own messages stayed unordered."""
    only = plan.groups[0].name if len(plan.groups) == 1 else lines_to
    reader = LineReader(sys.stdin.fileno() if sys.stdin else _NO_DESCRIPTOR, _reject_line)
    delivered = 0

    async def print_event(group: str, event: Event) -> None:
        nonlocal delivered
        if count is not None and delivered >= count:
            return
        await writer.write(render("" if len(plan.groups) == 1 else group, event))
        delivered += isinstance(event, Delivery | ServiceDelivery)
        if delivered == count:
            service.finish()

    async def broadcast_lines(groups: dict[str, Group]) -> None:
        async for line in reader.lines(service.ending):
            if line.strip():
                await _send(line, groups, only, sender)

    service = Service(plan, print_event, broadcast_lines)
    writer = LineWriter(sys.stdout.fileno() if sys.stdout else _NO_DESCRIPTOR, service.finish)
    try:
        unordered = await service.run()
    finally:
        await writer.close(_WRITE_SECONDS)
    _check_output(writer)
    return unordered


def _check_output(writer: LineWriter) -> None:
    """Exit with an error if lines are lost, unless their reader went away, which is its own decision."""
    if writer.lost and not isinstance(writer.error, BrokenPipeError):
        why = writer.error.strerror if writer.error else f"nobody read them for {_WRITE_SECONDS:g} s"
        typer.echo(f"error: lines not written to standard output: {writer.lost:,} ({why})", err=True)
        raise typer.Exit(EXIT_OUTPUT_LOST)


def _reject_line(size: int) -> None:
    typer.echo(
        f"error: a line of {size:,} bytes was not broadcast: at most {LINE_BYTES_MAX:,} bytes are read",
        err=True,
    )


async def _send(line: str, groups: dict[str, Group], only: str | None, sender: LineSender) -> None:
    """Send one line; report it on standard error if it cannot be sent, and continue."""
    try:
        name, text = (only, line) if only else split_group(line, groups)
        priority, payload = split_priority(text)
        await sender.send(groups[name], payload, priority)
    except InvalidInput as error:
        typer.echo(f"error: {visible(str(error))}", err=True)
