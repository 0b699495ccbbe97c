"""The handle of a message that was broadcast: it can be awaited for the message's position."""

import asyncio
from collections.abc import Generator
from typing import Any

import msgspec

from priocast.core.assembler import Run
from priocast.core.errors import DeadlineExceeded
from priocast.member import Member
from priocast.runtime.arguments import check_seconds
from priocast.runtime.configuration import BROADCAST_SECONDS


class BroadcastHandle(msgspec.Struct, frozen=True, gc=False):
    """A message that was broadcast; `await` it for its position, or do not.

    It is the message with this `index` of a `run` of messages of a `member`.
    """

    member: Member
    run: Run
    index: int

    def __await__(self) -> Generator[Any, None, int | None]:
        return self.position().__await__()

    async def position(self, timeout_seconds: float = BROADCAST_SECONDS) -> int | None:
        """The position of the message, once this member has delivered it or passed it over (`to`).

        The application of this member has to consume the stream meanwhile. None if the member was evicted
        before, or the message was delivered so long ago that its position is not remembered. After
        `timeout_seconds`, `DeadlineExceeded` is raised: the message may get a position later.
        """
        check_seconds("timeout_seconds", timeout_seconds)
        found: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def on_position(position: int | None) -> None:
            if not found.done():
                found.set_result(position)

        self.member.stream.own_positions.watch(self.run, self.index, on_position)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await found
        except TimeoutError:
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: the message was not delivered at "
                f"{self.member.me.name}; does its application consume the stream?"
            ) from None
