"""Deliberate faults at the end of a view or at the beginning of the next: the lives must find each of them.

They are mistakes in what is left of a view (`unordered`, `unconsumed`), in what is kept for others, and in
what a protocol believes when its view does not begin with message 0 at position 0.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, LIVENESS, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.membership.epoch import Epoch
from priocast.membership.packets import FlushReply
from priocast.membership.stability import Stability
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.sequencer.ub import SequencerUb
from protocols.mutants import Patch, check_found_in_view_sequences, name_of
from protocols.trusting import ignoring, trusting


def what_was_not_submitted_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderingProtocol, "unordered", lambda _: [])


def what_was_submitted_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlight, "unordered", lambda _: [])


def what_was_submitted_is_sent_again_last(patch: pytest.MonkeyPatch) -> None:
    def unordered(self: SequencerUb) -> list[Batch]:
        return OrderingProtocol.unordered(self) + self.in_flight.unordered()

    patch.setattr(SequencerUb, "unordered", unordered)


def a_batch_that_has_half_its_places_is_sent_again_whole(patch: pytest.MonkeyPatch) -> None:
    def unordered(self: InFlight) -> list[Batch]:
        return [in_flight.batch for level in self._sent for in_flight in self._sent[level]]

    patch.setattr(InFlight, "unordered", unordered)


def what_has_a_place_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.unordered

    def unordered(self: SequencerUb) -> list[Batch]:
        own = [
            ordered_batch.batch
            for ordered_batch in self.unconsumed()
            if ordered_batch.batch.sender == self.me
        ]
        return own + original(self)

    patch.setattr(SequencerUb, "unordered", unordered)


def what_is_consumed_in_part_counts_as_consumed(patch: pytest.MonkeyPatch) -> None:
    def unconsumed(self: OrderingProtocol) -> list[OrderedBatch]:
        return [ordered_batch for ordered_batch in self._ordered_batches if not ordered_batch.taken]

    patch.setattr(OrderingProtocol, "unconsumed", unconsumed)


def a_frozen_member_does_not_hear_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Epoch, "freeze", lambda self, _: setattr(self, "frozen", True))


def what_is_supplied_is_noted_and_not_heard(patch: pytest.MonkeyPatch) -> None:
    def on_flush_reply(self: Epoch, reply: FlushReply, now: int) -> None:
        rank = self.ranks[reply.sender]
        for number, body in enumerate(reply.bodies, reply.first):
            if number == self.stability.received[rank] + 1:
                self.stability.add(rank, body)

    patch.setattr(Epoch, "on_flush_reply", on_flush_reply)


def what_is_supplied_is_heard_twice_if_it_comes_twice(patch: pytest.MonkeyPatch) -> None:
    def bodies(self: Stability, rank: int, first: int, last: int, bytes_cut: int) -> list[bytes]:
        found = original(self, rank, max(1, first - 1), last, bytes_cut)
        return found or original(self, rank, first, last, bytes_cut)

    original = Stability.bodies
    patch.setattr(Stability, "bodies", bodies)


def what_anybody_else_holds_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = Stability.report

    def report(self: Stability, rank: int, held: Sequence[int]) -> bool:
        for sender, count in enumerate(held):
            self._received_by_others[sender] = max(self._received_by_others[sender], count)
            self._forget_stable(sender)
        return original(self, rank, held)

    patch.setattr(Stability, "report", report)


def one_s_own_packets_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    original = Stability.add

    def add(self: Stability, rank: int, body: bytes) -> int:
        return self.received[rank] if rank == self._my_rank else original(self, rank, body)

    patch.setattr(Stability, "add", add)


def one_s_own_packets_have_no_mark(patch: pytest.MonkeyPatch) -> None:
    original = Epoch._receive_own

    def receive_own(self: Epoch, now: int) -> None:
        self._own_received = 0
        original(self, now)

    patch.setattr(Epoch, "_receive_own", receive_own)


def a_view_begins_at_position_0(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.__init__

    def init(self: SequencerUb, me: Any, view: Any, options: Any, position: int = 0) -> None:
        original(self, me, view, options, 0)

    patch.setattr(SequencerUb, "__init__", init)


def the_sequencer_numbers_from_0(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb.__init__

    def init(self: SequencerUb, *given: Any) -> None:
        original(self, *given)
        self._number_next = 0

    patch.setattr(SequencerUb, "__init__", init)


def a_sender_s_numbers_begin_with_0_in_each_view(patch: pytest.MonkeyPatch) -> None:
    original = SubmissionValidator.check

    def check(self: SubmissionValidator, sender: ProcessId, batch: Batch) -> None:
        self._number_next.setdefault((sender, batch.level), 0)
        original(self, sender, batch)

    patch.setattr(SubmissionValidator, "check", check)


MUTANTS: list[tuple[Patch, str]] = [
    (what_was_not_submitted_is_lost, INTEGRITY),
    (what_was_submitted_is_lost, INTEGRITY),
    (trusting(what_was_submitted_is_sent_again_last), FIFO_AMONG_EQUALS),
    (a_batch_that_has_half_its_places_is_sent_again_whole, INTEGRITY),
    (what_has_a_place_is_sent_again, INTEGRITY),
    (what_is_consumed_in_part_counts_as_consumed, VIEW_SYNCHRONY),
    (a_frozen_member_does_not_hear_itself, VIEW_SYNCHRONY),
    (what_is_supplied_is_noted_and_not_heard, VIEW_SYNCHRONY),
    (trusting(what_is_supplied_is_heard_twice_if_it_comes_twice), VIEW_SYNCHRONY),
    (what_anybody_else_holds_is_forgotten, LIVENESS),
    (one_s_own_packets_are_not_kept, VIEW_SYNCHRONY),
    (one_s_own_packets_have_no_mark, VIEW_SYNCHRONY),
    (a_view_begins_at_position_0, TOTAL_ORDER),
    (ignoring(the_sequencer_numbers_from_0), LIVENESS),
    (ignoring(a_sender_s_numbers_begin_with_0_in_each_view), LIVENESS),
]


@pytest.mark.parametrize(("mutate", "guarantee"), MUTANTS, ids=map(name_of, MUTANTS))
def test_view_sequences_find_the_mutant(
    mutate: Patch, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    check_found_in_view_sequences("sequencer-ub", {guarantee})
