"""Collecting answers: each member answers once and in order, and to all batches; or else it is told so."""

import msgspec
import pytest

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.membership.options import MEMBERS_MAX
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.protocols.reorder.answers import TOGETHER_MAX, Answer, Collector, Complete, together
from priocast.protocols.reorder.locks import LockAnswer, LockAnswers, ReorderLocks
from priocast.protocols.reorder.message_sets import Run

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


class Weighed(Answer, frozen=True, array_like=True):
    """An answer of any weight."""

    entries: int = 0

    @property
    def weight(self) -> int:
        return self.entries


def test_answers_travel_together_as_far_as_a_frame_has_room() -> None:
    light = [answer(number) for number in range(TOGETHER_MAX + 1)]
    assert list(together(light)) == [tuple(light[:TOGETHER_MAX]), (light[-1],)]
    heavy = [Weighed(0, number, (1,), weight) for number, weight in enumerate((20_000, 12_768, 1, 99_999, 5))]
    assert list(together(heavy)) == [tuple(heavy[:2]), (heavy[2],), (heavy[3],), (heavy[4],)]
    assert list(together([])) == []


def test_the_largest_answer_fits_into_a_frame() -> None:
    """All that may be queued is locked for each batch of a frame, and every sender has used all levels."""
    tail = tuple(Run(200, 60, 1 << 40, 4096) for _ in range(ReorderLocks.QUEUED_MAX))
    batches = ReorderLocks.FRAME_BATCHES_MAX
    history = tuple(
        Run(level, sender, 1 << 40, 4096) for sender in range(MEMBERS_MAX) for level in range(257)
    )
    largest = LockAnswer(60, 1 << 40, (1 << 40,) * batches, (tail,) * batches, history)
    assert len(msgspec.msgpack.encode(LockAnswers((largest,)))) < FRAME_BYTES_MAX
