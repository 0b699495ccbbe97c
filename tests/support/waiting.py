"""Tests in real time: they wait for what must come about, however long a busy machine takes."""

import asyncio
from collections.abc import Awaitable, Callable

import uvloop

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATIENCE_SECONDS = 60.0
_RUN_SECONDS = 240.0


def run(test: Callable[[], Awaitable[None]], loop: str = "asyncio") -> None:
    """Run a test in an event loop of its own, and not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(_RUN_SECONDS):
            await test()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(bounded())


async def wait_until(condition: Callable[[], object], what: Callable[[], str] | None = None) -> None:
    """Wait until a condition holds; one that never does fails the test, and says what there is instead."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await asyncio.sleep(0.003)
    except TimeoutError:
        raise AssertionError(f"after {PATIENCE_SECONDS:g} s: {what() if what else 'not yet'}") from None
