"""What status and slow-member detection see of a queue: counts and waiting times by level."""

from priocast.core.inspection import queues_by_level


def test_what_waits_is_added_up_by_level_the_highest_first() -> None:
    waiting = [(5, 2, 30), (200, 1, 40), (5, 4, 10)]
    assert queues_by_level(waiting, now=100) == [(200, 1, 60), (5, 6, 90)]
    assert queues_by_level([], now=100) == []
