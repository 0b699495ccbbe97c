"""The first view of a member, for which joining waits."""

import asyncio
from collections.abc import Callable

from priocast.core.errors import DeadlineExceeded, JoinRejected, PriocastError
from priocast.member import Member
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.waits import logged_if_long


class FirstView:
    """Whether a member was in a view yet: it is `awaited`, was `reached`, or there will be none."""

    def __init__(self) -> None:
        self.awaited = True
        self._joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def reached(self) -> bool:
        """Whether the member was in a view."""
        return self._joined.done() and self._joined.exception() is None

    def on_turn(self, member: Member) -> None:
        """The member has had a turn."""
        if member.view is not None:
            self.awaited = False
            self._joined.set_result(None)
        elif mismatches := member.membership.mismatches.texts():
            self.fail(JoinRejected(mismatches[-1]))

    def fail(self, error: PriocastError) -> None:
        """There will be no view, because of this error."""
        if self.awaited:
            self.awaited = False
            self._joined.set_exception(error)
            self._joined.exception()  # otherwise asyncio reports an exception that was never retrieved

    async def wait(self, configuration: MemberConfiguration, why: Callable[[], str]) -> None:
        """Wait for the view; `why` says what is missing."""
        name, group = configuration.name, configuration.group
        timeout_seconds = configuration.deadlines.start_seconds
        try:
            with logged_if_long(f"{name} has waited for a view of group {group!r}", why):
                async with asyncio.timeout(timeout_seconds):
                    await asyncio.shield(self._joined)
        except TimeoutError:
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: no view of group {group!r} contains {name} ({why()})"
            ) from None
