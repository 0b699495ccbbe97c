"""Who waits for the position of an own message is told it once, or that it will not be known."""

from priocast.core.assembler import Assembler, Run
from priocast.core.identity import ProcessId
from priocast.membership.own_positions import OwnPositions


def delivered(positions: OwnPositions, level: int, first: int, count: int, position: int) -> None:
    """What the stream does when it delivers a part of a batch."""
    positions.recent.append((level, first, count, position))
    if positions.awaited:
        positions.resolve()


def numbered(level: int, first: int, *payloads: bytes) -> Run:
    return Run(level, first, list(payloads))


def test_a_position_is_told_when_the_message_is_delivered() -> None:
    positions, told = OwnPositions(), list[int | None]()
    run = numbered(96, 5, b"x", b"y")
    positions.watch(run, 1, told.append)
    delivered(positions, 224, 6, 1, 70)
    delivered(positions, 96, 4, 2, 80)
    assert told == []
    delivered(positions, 96, 6, 3, 82)
    assert told == [82]
    assert not positions.awaited
    positions.watch(run, 1, told.append)
    assert told == [82, 82], "it is remembered for a while"


def test_a_message_that_has_no_number_yet_can_be_waited_for() -> None:
    positions, told = OwnPositions(), list[int | None]()
    assembler = Assembler(ProcessId("a"), prioritised=True)
    assembler.add(b"x", 96)
    run = assembler.add(b"y", 96)
    positions.watch(run, 1, told.append)
    delivered(positions, 96, 0, 1, 3)
    assembler.close()
    assert told == []
    delivered(positions, 96, 1, 1, 4)
    assert told == [4]


def test_messages_that_are_numbered_again_have_no_known_position() -> None:
    positions, told = OwnPositions(), list[int | None]()
    assembler = Assembler(ProcessId("a"), prioritised=True)
    run = assembler.add(b"x", 96)
    positions.watch(run, 0, told.append)
    assembler.restart()
    delivered(positions, 96, 0, 1, 3)
    positions.watch(run, 0, told.append)
    assert told == [None, None]


def test_when_the_incarnation_is_over_nobody_waits_any_more() -> None:
    positions, told = OwnPositions(), list[int | None]()
    positions.watch(numbered(96, 0, b"x"), 0, told.append)
    positions.watch(Run(96), 0, told.append)
    positions.close()
    positions.watch(Run(96), 0, told.append)
    assert told == [None] * 3
