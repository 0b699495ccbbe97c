"""The queue with locks, without any network: what the reorder paper's figures and each added rule say."""

from functools import partial, reduce
from operator import and_, or_

import pytest

from core.builders import B, batch_of
from priocast.protocols.reorder.lock_block import Lock, LockInsertion
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.message_sets import MessageName, MessageSet

Acknowledged = tuple[int, MessageSet, MessageSet]


def queued(queue: LockQueue) -> list[tuple[MessageName, set[Lock]]]:
    """The messages of a queue, in order, with their locks."""
    return [
        ((*segment.insertion.stream, number), block.locks)
        for block in queue.blocks
        for segment in block.segments
        for number in range(segment.first, segment.end)
    ]


class Replicas:
    """Some queues; messages and acknowledgments arrive when a test says so. A message is a letter."""

    def __init__(self, count: int, **levels: int) -> None:
        self.queues = [LockQueue(rank, count) for rank in range(count)]
        self._levels = levels
        self._insertions: list[dict[str, LockInsertion]] = [{} for _ in range(count)]
        self._acknowledged: dict[str, list[Acknowledged]] = {letter: [] for letter in levels}

    def receive(self, letter: str, *at: int) -> None:
        """These members, or all, receive a message and acknowledge it."""
        rank = list(self._levels).index(letter)
        for each in at or range(len(self.queues)):
            history = self.queues[each].history.messages
            insertion, tail = self.queues[each].lock(batch_of(1, self._levels[letter]), (rank, 0, 0))
            self._insertions[each][letter] = insertion
            self._acknowledged[letter].append((insertion.proposal, tail, history))

    def insert(self, letter: str, *at: int) -> None:
        """These members, or all, have all acknowledgments of a message."""
        acknowledged = self._acknowledged[letter]
        assert len(acknowledged) == len(self.queues), f"a member has not received {letter}"
        common = reduce(and_, (tail for _, tail, _ in acknowledged))
        history = reduce(or_, (history for _, _, history in acknowledged))
        for each in at or range(len(self.queues)):
            queue, insertion = self.queues[each], self._insertions[each][letter]
            point = queue.first_of(common)
            assert queue.has_locked(insertion, point)
            queue.decide(insertion, max(proposal for proposal, _, _ in acknowledged), point, history)

    def insert_everywhere(self, *letters: str) -> None:
        """Insert messages everywhere, one after the other."""
        for letter in letters:
            self.receive(letter)
            self.insert(letter)

    def queue(self, at: int) -> str:
        """The queue of a member; what is locked has a star."""
        return " ".join(self._letter(name) + "*" * bool(locks) for name, locks in queued(self.queues[at]))

    def consume(self, at: int) -> str:
        """What an application may consume, and does."""
        found = self.queues[at].consumable()
        if found is None:
            return ""
        insertion, _ = found
        self.queues[at].consume(insertion, 1)
        return self._letter((*insertion.stream, 0))

    def consume_all(self) -> list[str]:
        """What is left, in order, for each member."""
        return ["".join(iter(partial(self.consume, at), "")) for at in range(len(self.queues))]

    def _letter(self, name: MessageName) -> str:
        return list(self._levels)[name[1]]


def _consumed_at_one_of_two() -> Replicas:
    """One member has consumed l when it receives h; the other has h decided while l waits there."""
    replicas = Replicas(2, l=0, h=9)
    replicas.receive("l")
    replicas.receive("h", 0)
    replicas.insert("l", 1)
    assert replicas.consume(1) == "l"
    replicas.receive("h", 1)
    replicas.insert("h", 0)
    return replicas


class TestThePapersFigures:
    def test_figure_1_consumes_the_first_unless_it_is_locked(self) -> None:
        replicas = Replicas(1, l=0, h=9)
        assert replicas.consume(0) == ""
        replicas.insert_everywhere("l")
        replicas.receive("h")
        assert (replicas.queue(0), replicas.consume(0)) == ("l*", "")
        replicas.insert("h")
        assert (replicas.queue(0), replicas.consume(0), replicas.consume(0)) == ("h l", "h", "l")

    def test_figure_2_inserts_at_the_head_of_the_fastest(self) -> None:
        replicas = Replicas(3, m=0, n=0, o=0, h=9)
        replicas.insert_everywhere("m", "n", "o")
        assert replicas.consume(0) == "m"
        replicas.receive("h")
        assert [replicas.queue(at) for at in range(3)] == ["n* o*", "m* n* o*", "m* n* o*"]
        replicas.insert("h")
        assert [replicas.queue(at) for at in range(3)] == ["h n o", "m h n o", "m h n o"]

    def test_figure_3_orders_concurrent_messages_by_priority(self) -> None:
        replicas = Replicas(2, l=0, m=5, h=9)
        replicas.insert_everywhere("l")
        replicas.receive("m")
        replicas.receive("h")
        assert [replicas.queue(at) for at in (0, 1)] == ["l*", "l*"]
        replicas.insert("m", 0)
        replicas.insert("h", 1)
        assert [replicas.queue(at) for at in (0, 1)] == ["m* l*", "h l*"]
        replicas.insert("h", 0)
        replicas.insert("m", 1)
        assert [replicas.queue(at) for at in (0, 1)] == ["h m l", "h m l"]

    @pytest.mark.parametrize(
        ("level", "queue"),
        [(0, "h m l k"), (1, "h m l k*"), (3, "h m l* k*"), (5, "h m l* k*"), (9, "h m* l* k*")],
    )
    def test_equation_2_the_target_tail_ends_at_the_last_that_is_as_urgent(
        self, level: int, queue: str
    ) -> None:
        replicas = Replicas(1, h=9, m=5, l=1, k=0, j=level)
        replicas.insert_everywhere("h", "m", "l", "k")
        replicas.receive("j")
        assert replicas.queue(0) == queue


class TestTheRulesThatThePaperLacks:
    def test_wait_rule_2p(self) -> None:
        replicas = _consumed_at_one_of_two()
        assert replicas.consume(0) == ""
        replicas.insert("l", 0)
        replicas.insert("h", 1)
        assert replicas.consume_all() == ["lh", "h"]

    def test_low_unreceived_but_in_history(self) -> None:
        """A member waits for what was consumed elsewhere even if it has not received it."""
        queue = LockQueue(0, 2)
        high, _ = queue.lock(batch_of(1, 9), (0, 0, 0))
        queue.decide(high, 1, None, MessageSet({(0, 1): (0, 2)}))
        assert queue.consumable() is None
        low, _ = queue.lock(batch_of(2), (1, 0, 0))
        assert queue.consumable() is None
        queue.decide(low, 1, None, MessageSet())
        assert [name[0] for name, _ in queued(queue)] == [0, 0, 9]

    def test_deferred_insert_wakeup(self) -> None:
        """An insertion may unblock another one, which unblocks a third one."""
        replicas = Replicas(2, l=0, m=5, h=9)
        replicas.receive("l")
        replicas.receive("m", 0)
        replicas.receive("h", 0)
        replicas.insert("l", 1)
        assert replicas.consume(1) == "l"
        replicas.receive("m", 1)
        replicas.insert("m", 1)
        assert replicas.consume(1) == "m"
        replicas.receive("h", 1)
        replicas.insert("h", 0)
        replicas.insert("m", 0)
        assert replicas.queue(0) == ""
        replicas.insert("l", 0)
        assert replicas.queue(0) == "l m h"

    def test_empty_queue_tail_lock(self) -> None:
        replicas = Replicas(2, h=9, l=0)
        replicas.receive("h", 0)
        replicas.receive("l")
        replicas.insert("l", 0)
        assert (replicas.queue(0), replicas.consume(0)) == ("l*", "")
        replicas.receive("h", 1)
        replicas.insert("h", 1)
        assert replicas.consume(1) == "h"
        replicas.insert("h", 0)
        replicas.insert("l", 1)
        assert replicas.consume_all() == ["hl", "l"]

    def test_same_level_concurrent_insert(self) -> None:
        """The final numbers govern insertion, in whatever order they become known."""
        replicas = Replicas(2, u=9, v=9)
        replicas.receive("u", 0)
        replicas.receive("v", 0)
        replicas.receive("v", 1)
        replicas.receive("u", 1)
        replicas.insert("v", 0)
        assert replicas.queue(0) == ""
        replicas.insert("u", 0)
        replicas.insert("u", 1)
        replicas.insert("v", 1)
        assert [replicas.queue(at) for at in (0, 1)] == ["v u", "v u"]

    def test_low_low_concurrent(self) -> None:
        """The same holds for the lowest level, which also inherits the locks of the tail."""
        replicas = Replicas(2, x=0, y=0, h=9)
        replicas.receive("x", 0)
        replicas.receive("y", 0)
        replicas.receive("y", 1)
        replicas.receive("x", 1)
        replicas.receive("h", 0)
        replicas.insert("y")
        assert [replicas.queue(at) for at in (0, 1)] == ["", "y"]
        replicas.insert("x")
        assert [replicas.queue(at) for at in (0, 1)] == ["y* x*", "y x"]
        assert replicas.consume(1) == "y"
        replicas.receive("h", 1)
        replicas.insert("h")
        assert replicas.consume_all() == ["yhx", "hx"]


class TestLocks:
    def test_lock_inheritance(self) -> None:
        """What is inserted at a point inherits the locks of more urgent ones on it, and no others."""
        replicas = Replicas(2, l=0, j=3, m=5, h=9)
        replicas.insert_everywhere("l")
        replicas.receive("j", 0)
        replicas.receive("h", 0)
        replicas.receive("m")
        replicas.insert("m", 0)
        assert {lock[0] for lock in replicas.queues[0].blocks[1].locks} == {9}
        assert {lock[0] for lock in replicas.queues[0].blocks[2].locks} == {3, 9}

    def test_no_lower_lock_blocks_high(self) -> None:
        """Step 3: everything before h loses the locks of less urgent messages."""
        replicas = Replicas(2, l=0, m=5, h=9)
        replicas.insert_everywhere("l")
        assert replicas.consume(1) == "l"
        replicas.receive("m", 0)
        replicas.receive("h")
        replicas.insert("h")
        assert (replicas.queue(0), replicas.consume_all()) == ("l h", ["lh", "h"])

    def test_equals_do_not_block_each_other(self) -> None:
        """The order of a level is known when its first message is inserted, which waits for no other."""
        replicas = Replicas(2, l=0, u=9, v=9)
        replicas.insert_everywhere("l")
        replicas.receive("u")
        replicas.receive("v", 0)
        replicas.insert("u", 0)
        assert (replicas.queue(0), replicas.consume(0)) == ("u l*", "u")

    def test_what_is_inserted_behind_an_urgent_one_stays_locked_by_what_is_in_between(self) -> None:
        replicas = Replicas(2, l=0, m=5, h=9)
        replicas.receive("m", 0)
        replicas.insert_everywhere("h", "l")
        assert replicas.queue(0) == "h l*"


class TestBatches:
    def test_a_batch_is_inserted_as_a_whole_after_what_a_member_had_consumed(self) -> None:
        queues = LockQueue(0, 2), LockQueue(1, 2)
        lows = [queue.lock(batch_of(3), (0, 0, 0))[0] for queue in queues]
        for queue, low in zip(queues, lows, strict=True):
            queue.decide(low, 1, None, MessageSet())
            assert queue.consumable() == (low, 3)
        queues[1].consume(lows[1], 1)
        highs = [queue.lock(batch_of(2, 9, sender=B), (1, 0, 0)) for queue in queues]
        common = highs[0][1] & highs[1][1]
        assert common == MessageSet({(0, 0): (1, 3)})
        for queue, (high, _) in zip(queues, highs, strict=True):
            queue.decide(high, 1, queue.first_of(common), MessageSet({(0, 0): (0, 1)}))
        assert [name for name, _ in queued(queues[0])] == [
            (0, 0, 0),
            (9, 1, 0),
            (9, 1, 1),
            (0, 0, 1),
            (0, 0, 2),
        ]
        assert queues[0].consumable() == (lows[0], 1)
        assert queues[1].consumable() == (highs[1][0], 2)
        assert [queue.waiting for queue in queues] == [5, 4]

    def test_numbers_count_the_messages_of_a_sender_and_level(self) -> None:
        """Whatever number a batch begins with: one of an earlier view may have another level."""
        queue = LockQueue(0, 2)
        insertions = [
            queue.lock(batch_of(2, 9, first=7), (0, 0, 0))[0],
            queue.lock(batch_of(1, 0, first=40).in_line(), (0, 1, 0))[0],
            queue.lock(batch_of(1, 0, first=41), (0, 2, 0))[0],
        ]
        assert [(insertion.stream, insertion.first) for insertion in insertions] == [
            ((9, 0), 0),
            ((255, 0), 0),
            ((0, 0), 0),
        ]


class TestBlocks:
    """Consecutive messages of a level are one block, so a long queue has no more parts than a short one."""

    @staticmethod
    def _inserted(queue: LockQueue, sender: int, level: int, number: int = 0) -> LockInsertion:
        insertion, tail = queue.lock(batch_of(2, level), (sender, number, 0))
        queue.decide(insertion, insertion.proposal, queue.first_of(tail), queue.history.messages)
        return insertion

    def test_the_number_of_blocks_does_not_grow_with_the_queue(self) -> None:
        queue = LockQueue(0, 1)
        for number in range(100):
            for sender, level in enumerate((0, 9, 5, 0)):
                self._inserted(queue, sender, level, number)
        assert [block.level for block in queue.blocks[1:-1]] == [9, 5, 0]
        assert [len(block.spans) for block in queue.blocks[1:-1]] == [1, 1, 2]
        assert queue.waiting == len(queued(queue)) == 800

    def test_a_block_is_split_where_somebody_has_stopped_consuming(self) -> None:
        """In the middle of a batch, which continues behind what was inserted."""
        queue = LockQueue(0, 2)
        first, second = self._inserted(queue, 0, 0), self._inserted(queue, 1, 0)
        high, tail = queue.lock(batch_of(1, 9), (0, 1, 0))
        consumed_elsewhere = MessageSet({(0, 0): (0, 2), (0, 1): (0, 1)})
        assert tail == MessageSet({(0, 0): (0, 2), (0, 1): (0, 2)})
        queue.decide(high, high.proposal, (0, 1, 1), consumed_elsewhere)
        assert [name for name, _ in queued(queue)] == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (9, 0, 0), (0, 1, 1)]
        for expected in ((first, 2), (second, 1), (high, 1), (second, 1)):
            assert queue.consumable() == expected
            queue.consume(*expected)
        assert (queue.waiting, len(queue.blocks)) == (0, 2)

    def test_what_a_set_names_of_a_block(self) -> None:
        queue = LockQueue(0, 1)
        for sender in (0, 1):
            self._inserted(queue, sender, 0)
        block = queue.blocks[1]
        part = MessageSet({(0, 0): (0, 2), (0, 1): (0, 1)})
        assert (block.overlaps(part), block.ends_in(part), block.first_after(part)) == (
            True,
            False,
            (0, 1, 1),
        )
        assert block.first_in(MessageSet({(0, 1): (1, 2)})) == (0, 1, 1)
        assert not block.overlaps(MessageSet({(0, 0): (2, 3), (9, 1): (0, 1)}))
        assert block.ends_in(MessageSet({(0, 1): (1, 2)}))


class TestTheEnd:
    def test_what_is_not_decided_is_forgotten(self) -> None:
        """And its locks."""
        replicas = Replicas(2, l=0, h=9)
        replicas.insert_everywhere("l")
        replicas.receive("h", 0)
        queue = replicas.queues[0]
        queue.end()
        assert (replicas.queue(0), queue.waiting) == ("l", 1)

    def test_nobody_waits_for_what_is_lost_with_its_consumer(self) -> None:
        """A departed member has consumed l; nobody else knows its number. What follows is inserted."""
        replicas = Replicas(2, l=0, k=0, h=9)
        replicas.receive("l")
        replicas.receive("k")
        replicas.receive("h", 0)
        replicas.insert("l", 1)
        assert replicas.consume(1) == "l"
        replicas.receive("h", 1)
        replicas.insert("h", 0)
        replicas.insert("k", 0)
        assert replicas.queue(0) == ""
        queue = replicas.queues[0]
        queue.end()
        assert (replicas.queue(0), queue.waiting) == ("h k", 2)
        assert queue.consumable() is not None

    def test_what_is_decided_still_waits_for_what_was_consumed_before(self) -> None:
        replicas = _consumed_at_one_of_two()
        replicas.insert("l", 0)
        replicas.queues[0].end()
        assert replicas.queue(0) == "l h"
