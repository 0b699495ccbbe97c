"""Deliberate faults, each of which the property suite must find: a check that cannot fail is a defect.

Each mutant is one plausible mistake in the protocol, its queue or the assembler; each is listed with
the guarantee that breaks. Several are what the papers' pseudo-code does if taken literally.
"""

from collections import defaultdict
from typing import Any

import pytest

from priocast.core.assembler import Assembler
from priocast.core.guarantees import (
    AGREEMENT,
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
)
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import Broadcast, OrderingOptions
from priocast.core.starvation import Ageing, Strict
from priocast.protocols.flow.consumption import Consumption
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Consumed, Ordered
from priocast.protocols.flow.window import WINDOW_FIRST
from priocast.protocols.sequencer.ub import SequencerUb
from protocols.mutants import (
    PLAIN,
    STRICT,
    Patch,
    Twin,
    check_found_by_waiting,
    check_found_in_schedules,
    name_of,
)
from protocols.schedules import MILLISECOND
from protocols.shared_mutants import the_sequencer_waits_for_the_fastest
from protocols.trusting import ignoring, trusting

AGEING: Twin = (True, Ageing(MILLISECOND))


def last_in_first_out_among_equals(patch: pytest.MonkeyPatch) -> None:
    original = PriorityQueue.put

    def put(self: PriorityQueue, batch: Batch, now: int) -> None:
        self._tails = defaultdict(lambda: None)  # type: ignore[arg-type, return-value]
        self._arrivals -= 2
        original(self, batch, now)

    patch.setattr(PriorityQueue, "put", put)


def only_the_sequencer_ignores_priorities(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.__init__

    def init(self: SequencerUb, *given: Any) -> None:
        original(self, *given)
        self._incoming._sort_key = lambda *_: 0

    patch.setattr(SequencerUb, "__init__", init)


def the_plain_variant_honours_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderingOptions, "policy", property(lambda _: Strict()))
    patch.setattr(Assembler, "_prioritised", property(lambda _: True, lambda *_: None), raising=False)


def ageing_runs_backwards(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.__init__

    def init(self: SequencerUb, *given: Any) -> None:
        original(self, *given)
        self._incoming._sort_key = lambda priority, now: -now - priority * MILLISECOND

    patch.setattr(SequencerUb, "__init__", init)


def the_sequencer_orders_at_once(patch: pytest.MonkeyPatch) -> None:
    """The cost paper's figure 1 as it is written: there is no window."""
    patch.setattr(Grants, "room", lambda *_: 1_000)


def the_window_has_no_bytes(patch: pytest.MonkeyPatch) -> None:
    original = Grants.ordered

    def ordered(self: Grants, batch: Batch) -> None:
        original(self, batch)
        self._in_flight_bytes = 0

    patch.setattr(Grants, "ordered", ordered)


def receipt_counts_as_consumption(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb._on_ordered

    def on_ordered(self: SequencerUb, sender: Any, ordered: Ordered, packet_id: Any) -> None:
        original(self, sender, ordered, packet_id)
        self.send(self._sequencer, Consumed(self.position_next, self.options.window or WINDOW_FIRST))

    patch.setattr(SequencerUb, "_on_ordered", on_ordered)
    patch.setattr(SequencerUb, "on_consumed", lambda *_: None)


def consumption_is_never_reported(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequencerUb, "on_consumed", lambda *_: None)


def only_messages_are_worth_a_report(patch: pytest.MonkeyPatch) -> None:
    """Once a bug: a window of large messages ran out of bytes long before a quarter of it was consumed."""
    original = Consumption.__init__

    def init(self: Consumption, *given: Any) -> None:
        original(self, *given)
        self._bytes_max = 10**9

    patch.setattr(Consumption, "__init__", init)


def the_loop_ends_when_nothing_is_left(patch: pytest.MonkeyPatch) -> None:
    """The techniques paper's figure 2: `while incoming is not empty`."""
    original = SequencerUb._order

    def order(self: SequencerUb) -> None:
        if not getattr(self, "ended", False):
            original(self)
            self.ended = self._number_next > 0 and not self._incoming  # type: ignore[attr-defined]

    patch.setattr(SequencerUb, "_order", order)


def batches_are_numbered_instead_of_messages(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.send_all

    def send_all(self: SequencerUb, packet: Any) -> None:
        """The loop adds the messages of a packet to the number after it has sent the packet."""
        original(self, packet)
        self._number_next += len(packet.batches) - sum(batch.count for batch in packet.batches)

    patch.setattr(SequencerUb, "send_all", send_all)


def a_sender_delivers_its_own_messages_at_once(patch: pytest.MonkeyPatch) -> None:
    def on_broadcast(self: SequencerUb, event: Broadcast, now: int) -> None:
        self.queue_ordered(event.batch)
        self._consumption.announced(self._sequencer, event.batch.count, len(event.batch.block))
        self._consumption.window.queued(event.batch.count, is_bottleneck=False)
        original(self, event, now)

    def on_ordered(self: SequencerUb, sender: Any, ordered: Ordered, packet_id: Any) -> None:
        for batch in ordered.batches:
            if batch.sender == self.me:
                self.in_flight.ordered(batch)
            else:
                self.append_ordered((batch,), is_bottleneck=False)

    original = SequencerUb.on_broadcast
    patch.setattr(SequencerUb, "on_broadcast", on_broadcast)
    patch.setattr(SequencerUb, "_on_ordered", on_ordered)


def a_cut_batch_loses_its_rest(patch: pytest.MonkeyPatch) -> None:
    original = PriorityQueue.take

    def take(self: PriorityQueue, count_max: int) -> Batch:
        waiting = self._heap[0][2]
        taken = original(self, count_max)
        if waiting.cut and waiting.cut < waiting.count:
            original(self, waiting.count)
        return taken

    patch.setattr(PriorityQueue, "take", take)


def a_cut_batch_repeats_its_beginning(patch: pytest.MonkeyPatch) -> None:
    original = PriorityQueue.take

    def take(self: PriorityQueue, count_max: int) -> Batch:
        waiting = self._heap[0][2]
        taken = original(self, count_max)
        if waiting.cut and taken.first != waiting.batches[0].first:
            return Batch(taken.sender, taken.level, waiting.batches[0].first, taken.count, taken.block)
        return taken

    patch.setattr(PriorityQueue, "take", take)


def numbers_restart_with_each_turn(patch: pytest.MonkeyPatch) -> None:
    original = Assembler.close

    def close(self: Assembler) -> list[Batch]:
        self._next_number.clear()
        return original(self)

    patch.setattr(Assembler, "close", close)


def one_member_misses_what_others_get(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb._on_ordered

    def on_ordered(self: SequencerUb, sender: Any, ordered: Ordered, packet_id: Any) -> None:
        if self.me == self.view.members[-1] != self._sequencer:
            return
        original(self, sender, ordered, packet_id)

    patch.setattr(SequencerUb, "_on_ordered", on_ordered)


def the_sequencer_names_no_bottleneck(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grants, "bottleneck", lambda *_: None)


MUTANTS: list[tuple[Patch, Twin, str]] = [
    (last_in_first_out_among_equals, STRICT, FIFO_AMONG_EQUALS),
    (last_in_first_out_among_equals, PLAIN, FIFO_AMONG_EQUALS),
    (only_the_sequencer_ignores_priorities, STRICT, PRIORITY),
    (ageing_runs_backwards, AGEING, PRIORITY),
    (the_plain_variant_honours_priorities, PLAIN, FIFO_AMONG_EQUALS),
    (the_sequencer_orders_at_once, STRICT, BOUNDED_WINDOW),
    (the_window_has_no_bytes, STRICT, BOUNDED_WINDOW),
    (receipt_counts_as_consumption, STRICT, BOUNDED_WINDOW),
    (consumption_is_never_reported, STRICT, LIVENESS),
    (only_messages_are_worth_a_report, STRICT, LIVENESS),
    (the_loop_ends_when_nothing_is_left, STRICT, LIVENESS),
    (ignoring(batches_are_numbered_instead_of_messages), STRICT, LIVENESS),
    (a_sender_delivers_its_own_messages_at_once, STRICT, TOTAL_ORDER),
    (a_cut_batch_loses_its_rest, STRICT, LIVENESS),
    (a_cut_batch_repeats_its_beginning, STRICT, INTEGRITY),
    (trusting(numbers_restart_with_each_turn), STRICT, INTEGRITY),
    (one_member_misses_what_others_get, STRICT, AGREEMENT),
]


@pytest.mark.parametrize("mutate", [the_sequencer_names_no_bottleneck, the_sequencer_waits_for_the_fastest])
def test_the_property_of_waiting_finds_the_mutant(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    check_found_by_waiting("sequencer-ub", {LIVENESS})


@pytest.mark.parametrize(("mutate", "twin", "guarantee"), MUTANTS, ids=map(name_of, MUTANTS))
def test_the_property_suite_finds_the_mutant(
    mutate: Patch, twin: Twin, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_schedules("sequencer-ub", {guarantee}, twin)
