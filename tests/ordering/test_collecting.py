"""Collecting answers: each member answers once and in order, and to all batches; or else it is told so."""

import pytest

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.ordering.collecting import Answer, Collector, Complete

MEMBERS = tuple(map(ProcessId, "abc"))


def collector() -> Collector[Answer]:
    return Collector(MEMBERS[1], MEMBERS)


def answer(number: int, *proposals: int, sender: int = 0) -> Answer:
    return Answer(sender, number, proposals or (1,))


def test_the_last_answer_brings_all_of_them_by_rank() -> None:
    collected = collector()
    assert collected.add(2, answer(0, 5), (2, 1)) is None
    assert collected.add(0, answer(0, 3), (0, 1)) is None
    everything = collected.add(1, answer(0, 4), (1, 1))
    assert everything == Complete([answer(0, 3), answer(0, 4), answer(0, 5)], [(0, 1), (1, 1), (2, 1)])


def test_each_sender_has_its_own_numbers() -> None:
    collected = collector()
    for sender in range(3):
        for number in range(2):
            assert collected.add(0, answer(number, sender=sender), (0, 1)) is None


@pytest.mark.parametrize("number", [0, 2])
def test_an_answer_out_of_line(number: int) -> None:
    collected = collector()
    collected.add(2, answer(0), (2, 1))
    with pytest.raises(PeerFault, match=rf"c#1 answers data \(0, {number}\), where number 1 is next"):
        collected.add(2, answer(number), (2, 2))


def test_an_answer_after_all_have_answered() -> None:
    collected = collector()
    for rank in range(3):
        collected.add(rank, answer(0), (rank, 1))
    with pytest.raises(PeerFault, match="where number 1 is next"):
        collected.add(2, answer(0), (2, 2))


def test_an_answer_to_nobody() -> None:
    with pytest.raises(PeerFault, match="a sender that is no member"):
        collector().add(2, answer(0, sender=3), (2, 1))


@pytest.mark.parametrize("last", [0, 1, 2])
def test_whoever_does_not_answer_to_each_batch_is_named_in_the_end(last: int) -> None:
    """Not the one whose answer is the last."""
    collected = collector()
    answers = {0: answer(0, 2, 2), 1: answer(0, 1, 1), 2: answer(0, 1)}
    for rank in {0, 1, 2} - {last}:
        assert collected.add(rank, answers[rank], (0, 1)) is None
    with pytest.raises(PeerFault, match=r"c#1 does not answer to each batch of data \(0, 0\)"):
        collected.add(last, answers[last], (0, 1))
