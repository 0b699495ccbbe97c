"""The priority queue against a list that is searched from end to end (techniques paper, section 6.1)."""

from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.builders import MILLISECOND, A, B, batch_of, numbered
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX, TO_ALL, Batch, Scope, pack
from priocast.core.priority import CLASS_COUNT, class_of, limits_by_class
from priocast.core.priority_queue import EMPTY, PriorityQueue
from priocast.core.starvation import Ageing, FirstInFirstOut, PeriodicRelease, Starvation, Strict

COUNT_MAX = 64
BYTES_MAX = 1024
MESSAGE_BYTES = 8 + 2  # a numbered payload in a block
POLICIES: list[Starvation] = [Strict(), Ageing(3), PeriodicRelease(10), FirstInFirstOut()]


class Waiting(NamedTuple):
    """A message of the model, sorted in the order of leaving."""

    rank: int
    arrival: int
    sender: ProcessId
    level: int
    number: int
    payload: bytes
    priority: int
    scope: Scope
    entered_at: int
    urgency: int


def _messages(batch: Batch) -> list[tuple[ProcessId, int, int, bytes, int, Scope]]:
    return [
        (batch.sender, batch.level, batch.first + index, payload, batch.priority_of(index), batch.scope)
        for index, payload in enumerate(batch.payloads())
    ]


class QueueMachine(RuleBasedStateMachine):
    """Messages leave by sort key, then in the order of arrival, and are counted throughout."""

    @initialize(policy=st.sampled_from(POLICIES))
    def start(self, policy: Starvation) -> None:
        self.policy = policy
        self.queue = PriorityQueue(policy, COUNT_MAX, BYTES_MAX)
        self.plain = isinstance(policy, FirstInFirstOut)
        self.waiting: list[Waiting] = []
        self.arrivals = 0
        self.next_number: dict[tuple[ProcessId, int], int] = {}
        self.now = 0

    @rule(
        sender=st.sampled_from([A, B]),
        priority=st.sampled_from([0, 1, 63, 64, 128, 192, 255]),
        count=st.integers(1, 20),
        scope=st.sampled_from([TO_ALL, TO_ALL, Scope(safe=True)]),
        in_line=st.sampled_from([False, False, True]),
    )
    def put(self, sender: ProcessId, priority: int, count: int, scope: Scope, in_line: bool) -> None:
        level = 0 if self.plain else priority
        first = self.next_number.get((sender, level), 0)
        self.next_number[sender, level] = first + count
        payloads = numbered(first + count)[first:]
        told = self.plain or in_line
        priorities = bytes([priority] * count * told)
        self.queue.put(pack(sender, level, first, payloads, priorities, scope), self.now)
        self.arrivals += 1
        urgency = 255 if told else level
        rank = self.policy.sort_key(urgency, self.now)
        self.waiting += [
            Waiting(rank, self.arrivals, sender, level, number, payload, priority, scope, self.now, urgency)
            for number, payload in enumerate(payloads, first)
        ]
        self.waiting.sort(key=lambda message: (message.rank, message.arrival, message.number))

    @rule(nanoseconds=st.integers(1, 20))
    def wait(self, nanoseconds: int) -> None:
        self.now += nanoseconds

    @precondition(lambda self: self.waiting)
    @rule(count_max=st.integers(1, 50))
    def take(self, count_max: int) -> None:
        assert self.queue.head_level == self.waiting[0].urgency
        taken = self.queue.take(count_max)
        assert 1 <= taken.count <= count_max
        expected, self.waiting = self.waiting[: taken.count], self.waiting[taken.count :]
        assert _messages(taken) == [message[2:8] for message in expected]

    @rule()
    def drain(self) -> None:
        drained = [message for batch in self.queue.drain() for message in _messages(batch)]
        assert drained == [message[2:8] for message in self.waiting]
        self.waiting = []

    @invariant()
    def what_waits_is_counted(self) -> None:
        assert bool(self.queue) == bool(self.waiting)
        assert self.queue.count == len(self.waiting)
        # A message counts for its share of the block that it arrived in, whatever was cut or joined since.
        least = len(self.waiting) * MESSAGE_BYTES
        assert least <= self.queue.bytes <= least + 9 * len(self.waiting)

    @invariant()
    def room_is_what_the_class_may_still_fill(self) -> None:
        limits = zip(
            limits_by_class(COUNT_MAX, not self.plain),
            limits_by_class(BYTES_MAX, not self.plain),
            strict=True,
        )
        for of_class, (count_limit, bytes_limit) in enumerate(limits):
            room = self.queue.room(of_class * 256 // CLASS_COUNT, count=3, size=50)
            full = self.queue.bytes + 50 >= bytes_limit
            assert room == (0 if full else count_limit - self.queue.count - 3)

    @invariant()
    def what_waits_is_told_by_level_the_highest_first(self) -> None:
        levels = sorted({message.level for message in self.waiting}, reverse=True)
        told = self.queue.inspect(self.now)
        assert [level for level, _, _ in told] == levels
        for level, count, waited in told:
            entered = [message.entered_at for message in self.waiting if message.level == level]
            assert count == len(entered)
            # A batch that joined others is as old as the first of them, which may have left.
            assert self.now - min(entered) <= waited <= self.now


TestQueueAgainstTheModel = QueueMachine.TestCase
TestQueueAgainstTheModel.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)


def test_a_flood_of_routine_messages_leaves_the_reserve_of_the_classes_above() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, 10**6)
    queue.put(batch_of(queue.room(0), level=0), now=0)
    assert [queue.room(level) for level in (0, 64, 128, 192)] == [0, 4, 8, 12]
    assert class_of(192) == CLASS_COUNT - 1


def test_bytes_are_reserved_by_class_like_messages() -> None:
    queue = PriorityQueue(Strict(), 1_000, BYTES_MAX)
    queue.put(pack(A, 0, 0, [bytes(13 * BYTES_MAX // 16)]), now=0)
    assert [queue.room(level) > 0 for level in (0, 64, 128, 192)] == [False, True, True, True]


def test_counting_bytes_does_not_drift_while_the_queue_never_empties() -> None:
    # Found by the machine above: the parts of a cut batch are longer than the batch, and the
    # excess was corrected only when the queue was empty, so a lasting backlog lost its bound in bytes.
    queue = PriorityQueue(Strict(), 10**6, 10**6)
    kept = batch_of(1, level=0, size=100)
    queue.put(kept, now=0)
    for first in range(0, 20_000, 20):
        queue.put(pack(A, 1, first, numbered(20)), now=0)
        for _ in range(10):
            queue.take(2)
    assert queue.bytes == len(kept.block)


def test_a_window_cuts_a_batch_and_the_rest_stays_at_the_head() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    queue.put(batch_of(3, level=5), now=0)
    queue.put(batch_of(1, level=5, sender=B), now=0)
    taken = [queue.take(2), queue.take(2), queue.take(2)]
    assert [str(batch) for batch in taken] == ["a#1/5/0+2", "a#1/5/2+1", "b#1/5/0+1"]


def test_batches_that_follow_each_other_leave_as_one() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    queue.put(batch_of(3, level=5), now=0)
    queue.put(batch_of(2, level=5, first=3), now=1)
    assert queue.take(9) == batch_of(5, level=5)


@pytest.mark.parametrize(
    "second",
    [
        batch_of(2, level=5, first=4),
        batch_of(2, level=5, first=3, sender=B),
        batch_of(BATCH_COUNT_MAX - 2, level=5, first=3),
        batch_of(1, level=5, first=3, size=BATCH_BYTES_CUT),
        pack(A, 5, 3, [b"x"], scope=Scope(safe=True)),
    ],
    ids=["gap", "sender", "count", "bytes", "scope"],
)
def test_batches_that_do_not_follow_or_do_not_fit_leave_apart(second: Batch) -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    first = batch_of(3, level=5)
    queue.put(first, now=0)
    queue.put(second, now=0)
    assert [queue.take(BATCH_COUNT_MAX) for _ in range(2)] == [first, second]


@pytest.mark.parametrize("told_first", [True, False])
def test_batches_with_one_priority_per_message_do_not_join_others(
    told_first: bool,
) -> None:
    # Found in review: joined, they were a batch with too few priorities, and its sender was evicted for it.
    queue = PriorityQueue(FirstInFirstOut(), COUNT_MAX, BYTES_MAX)
    batches = [batch_of(3), pack(A, 0, 3, [b"x"], bytes([5]))]
    if told_first:
        batches = [pack(A, 0, 0, [b"x"], bytes([5])), batch_of(3, first=1)]
    for batch in batches:
        queue.put(batch, now=0)
    assert queue.drain() == batches


@pytest.mark.parametrize("policy", [Strict(), Ageing(3), PeriodicRelease(10)])
def test_messages_of_a_plain_view_precede_all_others_in_their_order(
    policy: Starvation,
) -> None:
    queue = PriorityQueue(policy, COUNT_MAX, BYTES_MAX)
    in_line = [pack(A, 0, 0, [b"x"], bytes([5])), pack(A, 5, 3, [b"x", b"y"], bytes([5, 5]))]
    queue.put(batch_of(1, level=254, sender=B), now=0)
    for batch in in_line:
        queue.put(batch, now=0)
    queue.put(batch_of(1, level=255, first=9), now=1)
    assert queue.head_level == 255
    assert [str(batch) for batch in queue.drain()] == ["a#1/0/0+1", "a#1/5/3+2", "a#1/255/9+1", "b#1/254/0+1"]


def test_levels_that_have_aged_to_one_sort_key_leave_apart() -> None:
    queue = PriorityQueue(Ageing(10), COUNT_MAX, BYTES_MAX)
    queue.put(batch_of(1, level=5), now=0)
    queue.put(batch_of(1, level=6, first=1), now=10)
    assert [queue.take(9).level for _ in range(2)] == [5, 6]


def test_a_cut_batch_can_be_overtaken() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    queue.put(batch_of(3, level=5), now=0)
    queue.take(1)
    queue.put(batch_of(1, level=6), now=MILLISECOND)
    assert [queue.take(9).level for _ in range(2)] == [6, 5]


def test_a_whole_batch_leaves_without_being_decoded() -> None:
    damaged = Batch(A, 0, 0, 2, b"not a block")
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    queue.put(damaged, now=0)
    assert queue.take(2) is damaged


def test_a_damaged_batch_that_a_window_cuts_has_empty_messages() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    queue.put(Batch(A, 0, 0, 2, b"not a block"), now=0)
    assert queue.take(1).payloads() == [b""]
    assert queue.take(1).payloads() == [b""]


def test_an_inspection_has_the_waiting_time_of_the_oldest_message() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    assert queue.inspect(now=9) == []
    queue.put(batch_of(3, level=5), now=10)
    queue.put(batch_of(2, level=200), now=20)
    queue.put(batch_of(1, level=5, sender=B), now=30)
    assert queue.inspect(now=100) == [(200, 2, 80), (5, 4, 90)]
    queue.take(9)
    queue.take(2)
    assert queue.inspect(now=100) == [(5, 2, 90)]
    queue.take(1)
    assert queue.inspect(now=100) == [(5, 1, 70)]


def test_a_queue_is_drained_by_sort_key_in_whole_batches() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    assert queue.drain() == []
    queue.put(batch_of(3, level=5), now=0)
    queue.put(batch_of(2, level=200), now=0)
    queue.take(1)
    queue.take(1)
    queue.take(1)
    assert [str(batch) for batch in queue.drain()] == ["a#1/5/1+2"]
    assert (queue.count, queue.bytes, bool(queue)) == (0, 0, False)


def test_an_empty_queue_has_nothing_to_take() -> None:
    queue = PriorityQueue(Strict(), COUNT_MAX, BYTES_MAX)
    with pytest.raises(AssertionError):
        queue.take(1)
    assert queue.head_level == EMPTY
