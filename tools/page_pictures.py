"""Pictures of the live page for the docs: `python -m tools.page_pictures docs/images`.

A group of four members in one process gets more messages than its applications consume, so that messages wait
and urgent ones overtake.
"""

import asyncio
import random
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import priocast
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.operations.group_console import GroupConsole
from priocast.runtime.admin.server import AdminServer
from priocast.runtime.group import Group
from tools.browser import browser, show_as, take_picture

MEMBERS = "abcd"
SHARES = {URGENT: 0.03, ELEVATED: 0.12, ROUTINE: 0.35, BACKGROUND: 0.5}
HANDLING_SECONDS = 0.01
TICK_SECONDS = 0.04
WATCHED_SECONDS = 14.0
PICTURES = {
    "live-page-light": (1280, 1000, False),
    "live-page-dark": (1280, 1000, True),
    "live-page-phone-light": (390, 1240, False),
    "live-page-phone-dark": (390, 1240, True),
}


async def _consume(group: Group) -> None:
    async for _ in group:
        await asyncio.sleep(HANDLING_SECONDS)


async def _send(group: Group, seeded: random.Random) -> None:
    while True:
        [priority] = seeded.choices(list(SHARES), list(SHARES.values()))
        await group.broadcast(b"one seat", priority)
        await asyncio.sleep(seeded.uniform(0, 2 * TICK_SECONDS))


def _take_pictures(url: str, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with browser() as driver:
        driver.get(url)
        wait = f"const done = arguments[0]; setTimeout(done, {WATCHED_SECONDS * 1000})"
        driver.execute_async_script(wait)
        for name, (width, height, dark) in PICTURES.items():
            show_as(driver, width, height, dark=dark)
            driver.execute_async_script("const done = arguments[0]; setTimeout(done, 1500)")
            take_picture(driver, directory / f"{name}.png")


async def main(directory: Path) -> None:
    """Run the group, and take the pictures."""
    hub = priocast.MemoryHub()
    options = priocast.MembershipOptions(founders=len(MEMBERS), failure_ms=20_000, slow_ms=60_000)
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        addresses, joinings = [], []
        for name in MEMBERS:
            node = await stack.enter_async_context(priocast.open_node(name, hub=hub, size=len(MEMBERS)))
            admin = await stack.enter_async_context(node.serve_admin("127.0.0.1:0"))
            addresses.append(admin.url.removeprefix("http://").removesuffix("/"))
            joinings.append(node.join("tickets", membership=options))
        groups = await asyncio.gather(*(joining.__aenter__() for joining in joinings))
        working = [tasks.create_task(_consume(group)) for group in groups]
        working += [
            tasks.create_task(_send(group, random.Random(seed)))  # noqa: S311 - seeded, not secret
            for seed, group in enumerate(groups)
        ]
        async with AdminServer(GroupConsole(addresses), "127.0.0.1:0") as page:
            await asyncio.to_thread(_take_pictures, page.url, directory)
        for task in working:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
