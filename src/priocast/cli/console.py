"""`priocast console`: the live page of a whole group."""

import asyncio
import webbrowser
from typing import Annotated

import typer

from priocast.operations.group_console import GroupConsole

EXAMPLES = """
[bold]Examples[/]

  priocast console 127.0.0.1:9401

  priocast console 127.0.0.1:9401 127.0.0.1:9402 127.0.0.1:9403

  priocast console 10.0.0.1:9401 10.0.0.2:9401 --listen 127.0.0.1:9500 --no-browser

Every node with an admin address also serves the page by itself: open http://127.0.0.1:9401/
"""
LISTEN = "127.0.0.1:0"

Listen = Annotated[
    str,
    typer.Option(
        help="Address of this machine to serve the page at.", show_default="127.0.0.1 and any free port"
    ),
]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")]


def console(
    addresses: Annotated[
        list[str], typer.Argument(help="Admin addresses of the nodes.", metavar="ADDR...", show_default=False)
    ],
    listen: Listen = LISTEN,
    browser: Browser = True,
) -> None:
    """Serve the live page of a group: members, queues, delivery times, and the order as it happens.

    The nodes are followed only while the page is open. Ctrl-C ends it.
    """
    asyncio.run(_serve(GroupConsole(addresses), listen, browser))


async def _serve(page: GroupConsole, listen: str, browser: bool) -> None:
    from priocast.runtime.admin.server import AdminServer  # h11 takes 15 ms to import

    async with AdminServer(page, listen) as server:
        typer.echo(f"the live page is at {server.url} (Ctrl-C ends)")
        if browser:
            open_browser(server.url)
        await asyncio.Event().wait()


def open_browser(url: str) -> None:
    """Open a page, if there is a graphical browser; the address was printed for those who have none."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return
    if not isinstance(found, webbrowser.GenericBrowser) or isinstance(found, webbrowser.BackgroundBrowser):
        found.open(url)
