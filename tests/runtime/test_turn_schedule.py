"""When a turn comes: a lone message has it at once, and messages of one iteration share it."""

import asyncio

from priocast.runtime.turn_schedule import TurnSchedule
from support.waiting import run


class Iterations:
    """A schedule, and how many iterations it has seen end."""

    def __init__(self) -> None:
        self.ended = 0
        self.schedule = TurnSchedule(asyncio.get_running_loop(), self._on_end)

    def _on_end(self) -> None:
        self.ended += 1

    async def broadcast(self, count: int) -> list[bool]:
        """Which of the messages of one iteration have their turn at once."""
        at_once = []
        for _ in range(count):
            at_once.append(self.schedule.next_is_lone)
            self.schedule.on_broadcast(had_turn=at_once[-1])
        ended = self.ended
        await asyncio.sleep(0)
        assert self.ended == ended + 1, "one end for all of them"
        return at_once


def test_a_message_after_a_lone_one_has_its_turn_at_once() -> None:
    async def test() -> None:
        iterations = Iterations()
        assert await iterations.broadcast(1) == [False]
        assert await iterations.broadcast(1) == [True]
        assert await iterations.broadcast(1) == [True]

    run(test)


def test_a_burst_shares_its_turn() -> None:
    async def test() -> None:
        iterations = Iterations()
        assert await iterations.broadcast(3) == [False, False, False]
        assert await iterations.broadcast(3) == [False, False, False]

    run(test)


def test_a_burst_after_a_lone_message_sends_its_first_message_alone() -> None:
    async def test() -> None:
        iterations = Iterations()
        await iterations.broadcast(1)
        assert await iterations.broadcast(3) == [True, False, False]
        assert await iterations.broadcast(1) == [False]

    run(test)


def test_a_message_does_not_precede_what_is_due_in_this_iteration() -> None:
    async def test() -> None:
        iterations = Iterations()
        await iterations.broadcast(1)
        iterations.schedule.request_report()
        assert await iterations.broadcast(1) == [False]

    run(test)


def test_a_report_alone_makes_no_turn_due() -> None:
    async def test() -> None:
        iterations = Iterations()
        iterations.schedule.request_report()
        assert not iterations.schedule.turn_is_due
        iterations.schedule.request_turn()
        assert iterations.schedule.turn_is_due
        await asyncio.sleep(0)
        assert iterations.ended == 1

    run(test)
