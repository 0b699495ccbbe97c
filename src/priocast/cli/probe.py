"""`priocast probe`: how the nodes of a group are doing, side by side."""

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

from priocast.cli.checks import check_seconds
from priocast.core.priority import NAMED_LEVELS
from priocast.operations.probe import PROBE_SECONDS, Probed, ask_all, by_group, probe_all, problems_of
from priocast.runtime.status import Status

EXAMPLES = """
[bold]Examples[/] (the addresses are those given by --admin, or by listen under \\[node.admin]):

  priocast probe 127.0.0.1:9401 127.0.0.1:9402 127.0.0.1:9403

  priocast probe 127.0.0.1:9401 --watch 1

  priocast probe 127.0.0.1:9401 --json | jq '.nodes[0].status.groups[0].view'
"""
EXIT_NOT_WELL = 1
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}
_STYLES = {"active": "green", "changing_view": "yellow", "state_transfer": "yellow"}
_SUSPICION_SHOWN = 0.5


def probe(
    addresses: Annotated[
        list[str], typer.Argument(help="Where nodes answer: host:port.", show_default=False)
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
    watch: Annotated[
        float | None,
        typer.Option(callback=check_seconds, help="Ask again every so many seconds, until Ctrl-C."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(callback=check_seconds, help="How long to wait for an answer.")
    ] = PROBE_SECONDS,
) -> None:
    """Show how nodes are doing: members, view, what waits and for whom, who is suspected, what was refused.

    Exits with 0 if all is well; with 1 if a group is suspended or joining, if members disagree about the view
    or if one of several nodes does not answer; with 2 if none does.
    """
    if watch is not None:
        _watch(addresses, watch, timeout, as_json)
        return
    probed = asyncio.run(probe_all(addresses, timeout))
    if as_json:
        typer.echo(_document(probed, indent=2))
    else:
        Console().print(_page(probed))
    if problems_of(probed):
        raise typer.Exit(EXIT_NOT_WELL)


def _watch(addresses: list[str], seconds: float, timeout: float, as_json: bool) -> None:
    """Ask again and again, whoever answers; the page is replaced, as JSON there is a line each time."""
    try:
        with Live(console=Console(quiet=as_json), auto_refresh=False) as live:
            while True:
                probed = asyncio.run(ask_all(addresses, timeout))
                if as_json:
                    typer.echo(_document(probed))
                else:
                    live.update(_page(probed), refresh=True)
                time.sleep(seconds)
    except KeyboardInterrupt:
        return


def _document(probed: list[Probed], indent: int = 0) -> str:
    problems = problems_of(probed)
    document = {"well": not problems, "problems": problems, "nodes": msgspec.to_builtins(probed)}
    encoded = msgspec.json.encode(document)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()


def _page(probed: list[Probed]) -> RenderableType:
    parts: list[RenderableType] = [_table(group, statuses) for group, statuses in by_group(probed).items()]
    problems = problems_of(probed)
    parts += [f"[bold red]![/] {escape(problem)}" for problem in problems]
    if not problems:
        parts.append("[green]all is well[/]")
    return Group(*parts)


def _table(group: str, statuses: list[Status]) -> Table:
    """One group: what there is to know, a column for each of its members that answered."""
    table = Table(title=f"group {group}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", style="dim", no_wrap=True)
    for status in statuses:
        table.add_column(escape(_name(status.member)), overflow="fold")
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
    return f"{escape(status.last_change_reason)}\n({ago} ago, in {took})"


def _waiting(status: Status) -> str:
    return "\n".join(
        f"{_NAMES.get(queue.priority, queue.priority)}: {queue.messages:,} "
        f"(oldest {_duration(queue.longest_wait_ms / 1000)})"
        for queue in status.queues
    )


def _blocked(status: Status) -> str:
    if not status.bottleneck:
        return ""
    return f"[yellow]on credit from {status.bottleneck} for {_duration(status.bottleneck_ms / 1000)}[/]"


def _stalled(status: Status) -> str:
    stalls = status.stalls
    if not stalls.count:
        return ""
    held = f"[yellow]{escape(stalls.reason)}, for {_duration(stalls.lasting_ms / 1000)}[/]\n"
    total, longest = _duration(stalls.total_ms / 1000), _duration(stalls.longest_ms / 1000)
    return (held if stalls.reason else "") + f"{stalls.count:,} (longest {longest}, in all {total})"


def _suspicion(status: Status) -> str:
    return "\n".join(
        f"[red]{_name(peer.member)}: {min(peer.suspicion, 9.99):.2f} of 1[/]"
        for peer in status.peers
        if peer.suspicion >= _SUSPICION_SHOWN
    )


def _sent_again(status: Status) -> str:
    counted = [(_name(peer.member), peer.retransmissions) for peer in status.peers]
    return "\n".join(f"{name}: {count:,}" for name, count in counted if count)


def _rejections(status: Status) -> str:
    counts = status.network_rejections | status.rejections
    return "\n".join(f"{escape(reason)}: {count:,}" for reason, count in sorted(counts.items()))


_ROWS: dict[str, Callable[[Status], str]] = {
    "state": _state,
    "view": _view,
    "last change": _last_change,
    "order": lambda status: f"{status.order}, {'prioritised' if status.prioritised else 'plain'}",
    "advice": lambda status: escape(status.advice),
    "position": lambda status: f"{status.position:,}",
    "waiting": _waiting,
    "not consumed": lambda status: f"{status.unconsumed:,}" if status.unconsumed else "",
    "blocked": _blocked,
    "stalls": _stalled,
    "suspected": _suspicion,
    "sent again to": _sent_again,
    "kept for others": lambda status: f"{status.unstable_bytes:,} bytes" if status.unstable_bytes else "",
    "refused": _rejections,
    "incarnations": lambda status: f"{status.incarnations}" if status.incarnations > 1 else "",
    "incarnation": lambda status: status.member.rpartition("#")[2],
}


def _name(process: str) -> str:
    return process.rpartition("#")[0]


def _duration(seconds: float) -> str:
    """A time as a person says it."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
