"""`priocast probe`: the status of the nodes of a group, side by side."""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from priocast.cli.exit_codes import EXIT_PROBLEMS
from priocast.cli.json_output import print_json, print_json_line
from priocast.cli.option_checks import check_seconds
from priocast.cli.shared_options import AsJson
from priocast.core.priority import NAMED_LEVELS
from priocast.operations.node_probe import PROBE_SECONDS, Probed, ask_all, by_group, probe_all, problems_of
from priocast.operations.visible_text import visible
from priocast.runtime.status import Status

EXAMPLES = """
[bold]Examples[/] (admin addresses: --admin, or listen under \\[node.admin]):

  priocast probe 127.0.0.1:9401 127.0.0.1:9402 127.0.0.1:9403

  priocast probe 127.0.0.1:9401 --watch 1

  priocast probe 127.0.0.1:9401 --json | jq '.nodes[0].status.groups[0].view'
"""
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}
_STYLES = {"active": "green", "changing_view": "yellow", "state_transfer": "yellow"}
_SUSPICION_SHOWN = 0.5


def probe(
    addresses: Annotated[
        list[str], typer.Argument(help="Admin addresses of nodes, host:port.", show_default=False)
    ],
    as_json: AsJson = False,
    watch: Annotated[
        float | None,
        typer.Option(callback=check_seconds, help="Repeat every SECONDS until Ctrl-C.", metavar="SECONDS"),
    ] = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for a reply, in seconds.")
    ] = PROBE_SECONDS,
) -> None:
    """Show the status of nodes: view, queues, bottleneck, suspected members, rejections.

    Exit code 0: no problems; 1: a member is joining or suspended, acknowledges nothing, members are in
    different views, or a node does not reply; 2: no node replies.
    """
    if watch is not None:
        _watch(addresses, watch, timeout, as_json)
        return
    probed = asyncio.run(probe_all(addresses, timeout))
    if as_json:
        print_json(_document(probed))
    else:
        Console().print(_page(probed))
    if problems_of(probed):
        raise typer.Exit(EXIT_PROBLEMS)


def _watch(addresses: list[str], seconds: float, timeout: float, as_json: bool) -> None:
    """Repeat until interrupted: replace the page on the terminal, or print a JSON document per line."""
    with Live(console=Console(quiet=as_json), auto_refresh=False) as live:
        while True:
            probed = asyncio.run(ask_all(addresses, timeout))
            if as_json:
                print_json_line(_document(probed))
            else:
                live.update(_page(probed), refresh=True)
            time.sleep(seconds)


def _document(probed: list[Probed]) -> dict[str, object]:
    problems = problems_of(probed)
    return {"healthy": not problems, "problems": problems, "nodes": probed}


def _page(received: list[Probed]) -> RenderableType:
    probed = msgspec.convert(_visible(msgspec.to_builtins(received)), list[Probed])
    parts: list[RenderableType] = [_table(group, statuses) for group, statuses in by_group(probed).items()]
    problems = problems_of(probed)
    parts += [f"[bold red]![/] {problem}" for problem in problems]
    if not problems:
        parts.append("[green]no problems[/]")
    return Group(*parts)


def _visible(value: object) -> object:
    """What nodes sent, with all texts made safe to print: neither control characters nor markup act."""
    match value:
        case str():
            return escape(visible(value))
        case dict():
            return {_visible(key): _visible(each) for key, each in value.items()}
        case list() | tuple():
            return [_visible(each) for each in value]
    return value


def _table(group: str, statuses: list[Status]) -> Table:
    """One group, with a column for each member that replied."""
    table = Table(title=f"group {group}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", style="dim", no_wrap=True)
    for status in statuses:
        table.add_column(_name(status.member), overflow="fold")
    for name, cell in _ROWS.items():
        cells = [cell(status) for status in statuses]
        if any(cells):
            table.add_row(name, *(each or "-" for each in cells))
    return table


def _state(status: Status) -> str:
    style = _STYLES.get(status.state, "bold red")
    percent = status.state_transfer_percent
    return f"[{style}]{status.state}[/]" + (f" ({percent:.0f} %)" if percent is not None else "")


def _view(status: Status) -> str:
    if status.view is None:
        return ""
    return f"{status.view.number}: {', '.join(member.name for member in status.view.members)}"


def _last_change(status: Status) -> str:
    if status.view is None:
        return ""
    ago, took = _duration(status.last_change_seconds_ago), _duration(status.last_change_took_ms / 1000)
    return f"{status.last_change_reason}\n({ago} ago, took {took})"


def _waiting(status: Status) -> str:
    return "\n".join(
        f"{_NAMES.get(queue.priority, queue.priority)}: {queue.messages:,} "
        f"(oldest {_duration(queue.longest_wait_ms / 1000)})"
        for queue in status.queues
    )


def _bottleneck(status: Status) -> str:
    if not status.bottleneck:
        return ""
    return f"[yellow]{status.bottleneck}, for {_duration(status.bottleneck_ms / 1000)}[/]"


def _slots(status: Status) -> str:
    if status.slots is None:
        return ""
    shares = ", ".join(f"{name} {weight}" for name, weight in status.slots.weights.items())
    return f"{shares} (distribution {status.slots.distribution})"


def _stalled(status: Status) -> str:
    stalls = status.stalls
    if not stalls.count:
        return ""
    current = f"[yellow]{stalls.reason}, for {_duration(stalls.lasting_ms / 1000)}[/]\n"
    total, longest = _duration(stalls.total_ms / 1000), _duration(stalls.longest_ms / 1000)
    return (current if stalls.reason else "") + f"{stalls.count:,} (longest {longest}, total {total})"


def _suspicion(status: Status) -> str:
    return "\n".join(
        f"[red]{_name(peer.member)}: {min(peer.suspicion, 9.99):.2f} of 1[/]"
        for peer in status.peers
        if peer.suspicion >= _SUSPICION_SHOWN
    )


def _unacknowledged(status: Status) -> str:
    return "\n".join(
        f"[red]{_name(peer.member)}, for {_duration(peer.unacknowledged_ms / 1000)}[/]"
        for peer in status.peers
        if peer.unacknowledged_ms
    )


def _retransmissions(status: Status) -> str:
    counted = [(_name(peer.member), peer.retransmissions) for peer in status.peers]
    return "\n".join(f"{name}: {count:,}" for name, count in counted if count)


def _qualities(status: Status) -> str:
    """What was sent and delivered with each quality, and what went wrong, if anything did."""
    lines = []
    for each in status.qualities:
        wrong = {"late": each.late, "rejected": each.rejected, "sent again": each.retransmissions}
        details = "".join(f", {count:,} {what}" for what, count in wrong.items() if count)
        lines.append(f"{each.quality}: {each.sent:,} sent, {each.delivered:,} delivered{details}")
    return "\n".join(lines)


def _inaccessibility(status: Status) -> str:
    found = status.inaccessibility
    if not found.periods:
        return ""
    beyond = f", {found.exceeded:,} longer than allowed" if found.exceeded else ""
    return f"{found.periods:,} times, {_duration(found.total_ms / 1000)}{beyond}"


def _rejections(status: Status) -> str:
    counts = status.network_rejections | status.rejections
    return "\n".join(f"{reason}: {count:,}" for reason, count in sorted(counts.items()))


_ROWS: dict[str, Callable[[Status], str]] = {
    "state": _state,
    "view": _view,
    "last view change": _last_change,
    "order": lambda status: f"{status.order}, {'prioritised' if status.prioritised else 'plain'}",
    "starvation policy": lambda status: status.starvation if status.starvation != "none" else "",
    "advice": lambda status: status.advice,
    "position": lambda status: f"{status.position:,}",
    "not ordered": _waiting,
    "not consumed": lambda status: f"{status.unconsumed:,}" if status.unconsumed else "",
    "bottleneck": _bottleneck,
    "slots": _slots,
    "stalls": _stalled,
    "suspected": _suspicion,
    "unacknowledged": _unacknowledged,
    "retransmissions": _retransmissions,
    "unstable": lambda status: f"{status.unstable_bytes:,} bytes" if status.unstable_bytes else "",
    "qualities": _qualities,
    "not taken": lambda status: f"{status.held:,} units" if status.held else "",
    "network silent": _inaccessibility,
    "rejections": _rejections,
    "rejoined": lambda status: f"{status.incarnations - 1} times" if status.incarnations > 1 else "",
    "incarnation": lambda status: status.member.rpartition("#")[2],
}


def _name(process: str) -> str:
    return process.rpartition("#")[0]


def _duration(seconds: float) -> str:
    """A duration with a readable unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
