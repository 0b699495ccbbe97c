"""Calls that wait for a condition on the local state, which is checked after every event."""

import asyncio
from collections.abc import Callable

from priocast.core.errors import GroupClosed


class Conditions:
    """Conditions that somebody waits for."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds, at once or after an event."""
        if condition():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    @property
    def are_awaited(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def check(self) -> None:
        """Something has changed: wake those whose condition holds."""
        for future, condition in list(self._waiting.items()):
            if not future.done() and condition():
                future.set_result(None)

    def close(self, reason: GroupClosed) -> None:
        """Nothing will change any more."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(reason)
