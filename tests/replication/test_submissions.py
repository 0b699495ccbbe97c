"""Submissions: commands stay outstanding until their outcome is known, and one timer serves all deadlines."""

import asyncio

import pytest

from priocast.core.errors import GroupClosed
from priocast.replication.sessions import OUTSTANDING_MAX, Outcome
from priocast.replication.submissions import Submissions
from support.waiting import run

DONE = Outcome("applied", b"done")
HOUR_SECONDS = 3600.0


def test_each_command_has_its_own_deadline() -> None:
    async def test() -> None:
        submissions = Submissions("a#1")
        patient, answer = submissions.open(HOUR_SECONDS)
        hasty = [submissions.open(seconds)[1] for seconds in (0.02, 0.01, 0.02)]
        for outcome in hasty:
            with pytest.raises(TimeoutError):
                await outcome
        assert not answer.done() and submissions.floor == 0, (
            "the others are outstanding, too: they may be applied"
        )
        assert submissions.finish(patient, DONE) is not None and await answer == DONE
        assert submissions.floor == 1
        late, _ = submissions.open(0.01)
        assert submissions.finish(late, DONE) is not None
        assert submissions.finish(late, DONE) is None, "it was finished before"
        submissions.close(GroupClosed("over"))

    run(test)


def test_a_replica_that_closes_ends_the_waiting_before_the_deadline() -> None:
    async def test() -> None:
        submissions = Submissions("a#1")
        _, answer = submissions.open(0.01)
        submissions.close(GroupClosed("over"))
        await asyncio.sleep(0.05)
        with pytest.raises(GroupClosed, match="over"):
            await answer

    run(test)


def test_the_floor_is_the_lowest_command_without_an_outcome() -> None:
    async def test() -> None:
        submissions = Submissions("a#1")
        ids = [submissions.open(HOUR_SECONDS)[0] for _ in range(4)]
        floors = []
        for number in (1, 2, 0, 3):
            submissions.finish(ids[number], DONE)
            floors.append(submissions.floor)
        assert floors == [0, 0, 3, 4]
        submissions.close(GroupClosed("over"))

    run(test)


def test_a_replica_that_closes_ends_the_waiting_for_room() -> None:
    async def test() -> None:
        submissions = Submissions("a#1")
        for _ in range(OUTSTANDING_MAX):
            submissions.open(HOUR_SECONDS)
        assert submissions.is_full
        waiting = asyncio.create_task(submissions.wait_room())
        await asyncio.sleep(0)
        submissions.close(GroupClosed("over"))
        await waiting
        assert not submissions.is_full

    run(test)
