"""When a member gets its turns: at the end of an iteration of the event loop; for a lone message, at once."""

import asyncio
from collections.abc import Callable


class TurnSchedule:
    """When the member of one driver has a turn, and when it hears what its application consumed.

    What is broadcast within one iteration shares a turn at its end, when `at_end` is called. If the last
    iteration with a message had only one, waiting for others gains nothing: the first message has its turn at
    once, and only those that follow wait. So a burst after a lone message has one batch more than others.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, at_end: Callable[[], None]) -> None:
        self._loop = loop
        self._at_end = at_end
        self.is_scheduled = self.turn_is_due = False
        self._broadcasts = 0
        self._are_lone = False

    def request_turn(self) -> None:
        """Give the member a turn in this iteration of the event loop, at its end if there is none before."""
        self.turn_is_due = True
        self.request_report()

    def request_report(self) -> None:
        """Report what the application consumes at the end of this iteration, unless that happens before."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._loop.call_soon(self._at_end_of_iteration)

    @property
    def next_is_lone(self) -> bool:
        """Whether the next message should have its turn at once."""
        return self._are_lone and not self.is_scheduled

    def on_broadcast(self, *, had_turn: bool) -> None:
        """A message was broadcast; unless it had its turn at once, it has it at the end of this iteration."""
        self._broadcasts += 1
        if had_turn:
            self.request_report()
        else:
            self.request_turn()

    def _at_end_of_iteration(self) -> None:
        self.is_scheduled = False
        if self._broadcasts:
            self._are_lone = self._broadcasts == 1
            self._broadcasts = 0
        self._at_end()
