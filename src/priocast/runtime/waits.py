"""Waits that take long say so: one log record for each that lasts longer than a second, with its reason."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG_SECONDS = 1.0
_POLLING_SECONDS = 0.002

log = logging.getLogger("priocast.group")


def log_if_long(what: str, why: Callable[[], str], **fields: object) -> asyncio.TimerHandle:
    """Log `what` and `why` at level warning after a second, unless the handle is cancelled before."""

    def speak() -> None:
        reason = why()
        log.warning("%s for %g s: %s", what, LONG_SECONDS, reason, extra={"reason": reason, **fields})

    return asyncio.get_running_loop().call_later(LONG_SECONDS, speak)


@contextmanager
def logged_if_long(what: str, why: Callable[[], str], **fields: object) -> Iterator[None]:
    """Log a wait, as `log_if_long` does, if it lasts longer than a second."""
    handle = log_if_long(what, why, **fields)
    try:
        yield
    finally:
        handle.cancel()


async def wait_until(condition: Callable[[], bool], deadline: float) -> None:
    """Wait until a condition holds that nobody announces, or until `deadline`, a time of `time.monotonic`."""
    while time.monotonic() < deadline and not condition():
        await asyncio.sleep(_POLLING_SECONDS)
