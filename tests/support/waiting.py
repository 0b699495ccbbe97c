"""Tests in real time: they wait for a condition, however long a busy machine takes."""

import asyncio
from collections.abc import Awaitable, Callable

import uvloop

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATIENCE_SECONDS = 60.0
_RUN_SECONDS = 240.0


def run(test: Callable[[], Awaitable[None]], loop: str = "asyncio") -> None:
    """Run a test in a new event loop, with a time limit."""

    async def bounded() -> None:
        async with asyncio.timeout(_RUN_SECONDS):
            await test()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(bounded())


async def wait_until(condition: Callable[[], object], what: Callable[[], str] | None = None) -> None:
    """Wait until a condition holds; after a timeout the test fails with the text of `what`."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await asyncio.sleep(0.003)
    except TimeoutError:
        raise AssertionError(f"after {PATIENCE_SECONDS:g} s: {what() if what else 'not yet'}") from None
