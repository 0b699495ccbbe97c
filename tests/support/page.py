"""Pages of the documentation, whose code is run and whose commands are checked.

A block is run as `python -m asyncio` does, with asyncio and priocast imported. If it uses a `group` that it
does not join itself, it gets one: member a of three. A block with a title is a file that commands on the page
use.
"""

import ast
import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import priocast
from support.waiting import run

ROOT = Path(__file__).parent.parent.parent
_DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT = "$ "
_FREE_GROUP = re.compile(r"\bgroup\.|\bin group\b")
_OWN_GROUP = re.compile(r"\bas group\b|\bgroup = |\bgroup: priocast")


class Block(NamedTuple):
    """A block of a page: its language, the name of the file that it is, if any, and its text."""

    language: str
    title: str
    text: str


def fenced_blocks(path: Path) -> list[Block]:
    """All blocks of a page."""
    return [Block(*found) for found in _BLOCK.findall(path.read_text())]


def blocks_of(page: str) -> list[str]:
    """The blocks of Python on a page of docs/ that are run by themselves."""
    return python_blocks(_DOCS / page)


def python_blocks(path: Path) -> list[str]:
    """The blocks of Python on a page that are run by themselves."""
    return [each.text for each in fenced_blocks(path) if each.language == "python" and not each.title]


def commands_of(path: Path) -> list[str]:
    """The commands of the blocks that show a console."""
    consoles = [each.text for each in fenced_blocks(path) if each.language == "console"]
    return [
        line.removeprefix(_PROMPT)
        for text in consoles
        for line in text.splitlines()
        if line.startswith(_PROMPT)
    ]


def check_block(block: str, page: str) -> None:
    """Run a block to its end; one that iterates over the given group for ever, until it took a message."""
    code = compile(block, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    needs_group = _FREE_GROUP.search(block) and not _OWN_GROUP.search(block)

    async def execute() -> None:
        names: dict[str, Any] = {"asyncio": asyncio, "priocast": priocast, "__name__": __name__}
        if not needs_group:
            result = eval(code, names)  # noqa: S307  # our own page
            if inspect.iscoroutine(result):
                await result
            return
        async with _group_of_three() as group:
            running = asyncio.ensure_future(eval(code, names | {"group": group}))  # noqa: S307  # our own page
            if "async for event in group" in block:
                await (await group.broadcast(b"taken by the block"))
                running.cancel()
                await asyncio.wait([running])
            else:
                await running

    run(execute)


@asynccontextmanager
async def _group_of_three() -> AsyncIterator[priocast.Group]:
    hub = priocast.MemoryHub()

    async def consume(name: str) -> None:
        async with priocast.join("tickets", member=name, hub=hub, size=3) as group:
            async for _ in group:
                pass

    others = [asyncio.create_task(consume(name)) for name in "bc"]
    try:
        async with priocast.join("tickets", member="a", hub=hub, size=3) as group:
            yield group
    finally:
        for each in others:
            each.cancel()
        await asyncio.wait(others)
