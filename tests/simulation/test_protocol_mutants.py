"""The swarm catches broken protocols: each mutant has one fault, and falls to the same seeds that ours pass.

A mutant takes the place of the real class only within its test.
"""

from collections.abc import Sequence

import pytest

import priocast.membership.epoch
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions, PacketId, Protocol
from priocast.core.starvation import FirstInFirstOut
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink, Frame, _UnderWay
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.consumption import Consumed
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.packets import Ordered
from priocast.protocols.flow.window import WINDOW_FIRST
from priocast.protocols.ring.token_ring import TokenRing
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.simulation.draw import Choice, draw
from priocast.simulation.simulator import run_scenario
from priocast.simulation.swarm import run_seed
from simulation.scenarios import HIGH, LOW, group, mean, waits_ms

SEEDS = range(40)
PLENTY = 1 << 40


class LastInFirstOutQueue(PriorityQueue):
    """Of equal ranks, the last that came leaves first."""

    def put(self, batch: Batch, now: int) -> None:
        self._arrivals -= 2
        super().put(batch, now)


class UnstableSequencer(SequencerUb):
    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._incoming = LastInFirstOutQueue(options.policy, PLENTY, PLENTY)


class IndifferentSequencer(SequencerUb):
    """Orders whatever came first."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._incoming = PriorityQueue(FirstInFirstOut(), PLENTY, PLENTY)


class TrustingDestination(SequencerUb):
    """Takes whatever comes next for the next in the order."""

    def _on_ordered(self, sender: ProcessId, ordered: Ordered, packet_id: PacketId) -> None:
        super()._on_ordered(sender, Ordered(self.position_next, ordered.batches), packet_id)


class ReceiptCounter(SequencerUb):
    """Reports what was received, not what was consumed: the window no longer holds anything back."""

    _received = 0

    def append_ordered(self, batches: Sequence[Batch], is_bottleneck: bool) -> None:
        super().append_ordered(batches, is_bottleneck)
        self._received += sum(batch.count for batch in batches)
        self.send(self._sequencer, Consumed(self._received, self.options.window or WINDOW_FIRST))

    def on_consumed(self, batch: Batch, count: int, now: int) -> None:
        pass


class IndifferentSender(SequencerUb):
    """Submits whatever was broadcast first; the sequencer does as it should."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.outgoing = PriorityQueue(FirstInFirstOut(), options.queue_max, options.queue_bytes_max)


class IndifferentHolder(TokenRing):
    """Sends whatever was broadcast first when it has the token."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.outgoing = PriorityQueue(FirstInFirstOut(), options.queue_max, options.queue_bytes_max)


class HoardedCredit(InFlight):
    def ordered(self, batch: Batch) -> None:
        pass


class HoardingSender(SequencerUb):
    """Never returns the credit of a message that is ordered."""

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self.in_flight = HoardedCredit(options.submit_max, options.submit_bytes_max, options.prioritised)


class HastyLink(FifoLink):
    """Hands a body over when it comes, in whatever order that is."""

    def _on_data(self, frame: Frame, now: int) -> list[bytes]:
        known = frame.sequence in self._early
        bodies = super()._on_data(frame, now)
        if frame.sequence in self._early and not known:
            return [frame.body]
        return bodies[:1]


class RepeatingLink(FifoLink):
    """Hands a body over as often as it comes."""

    def _on_data(self, frame: Frame, now: int) -> list[bytes]:
        duplicates = self.duplicates
        bodies = super()._on_data(frame, now)
        return [frame.body] if self.duplicates > duplicates else bodies


class ForgetfulLink(FifoLink):
    """Never sends anything again."""

    def _transmit_again(self, sequence: int, under_way: _UnderWay, now: int) -> None:
        under_way.sent_at = now


def caught_by_swarm(property_name: str, choice: Choice) -> bool:
    """Whether some seed sees this property violated, and says so with its own number."""
    return any(
        violation.property == property_name and f"seed {seed}: {property_name} violated" in str(violation)
        for seed in SEEDS
        for violation in run_seed(seed, choice).violations
    )


@pytest.mark.parametrize("order", ["sequencer-ub", "token-ring"])
def test_what_is_no_mutant_passes_these_seeds(order: str) -> None:
    assert [violation for seed in SEEDS for violation in run_seed(seed, Choice(order)).violations] == []


@pytest.mark.parametrize(
    ("protocol", "link", "property_name"),
    [
        (UnstableSequencer, FifoLink, "FIFO among equals"),
        (IndifferentSequencer, FifoLink, "Priority"),
        (IndifferentSender, FifoLink, "Priority"),
        (IndifferentHolder, FifoLink, "Priority"),
        (TrustingDestination, HastyLink, "Total order"),
        (SequencerUb, HastyLink, "No error"),
        (TrustingDestination, RepeatingLink, "Integrity"),
        (ReceiptCounter, FifoLink, "Bounded window"),
        (HoardingSender, FifoLink, "Liveness"),
        (SequencerUb, ForgetfulLink, "Liveness"),
    ],
)
def test_mutant_is_caught(
    protocol: type[Protocol], link: type[FifoLink], property_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, protocol.NAME, protocol)
    monkeypatch.setattr(priocast.membership.epoch, "FifoLink", link)
    assert caught_by_swarm(property_name, Choice(protocol.NAME))


def test_window_that_counts_receipt_switches_priorities_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adaptive windows are not checked exactly, but the effect of a wrong one can be measured."""
    scenario = group((500, 500), rate_per_second=450, consume_us=1_000, ordering=OrderingOptions(window_ms=1))
    honest = waits_ms(run_scenario(scenario))
    monkeypatch.setitem(PROTOCOLS, "sequencer-ub", ReceiptCounter)
    mutant = waits_ms(run_scenario(scenario))
    assert mean(honest[LOW]) > 2 * mean(honest[HIGH])
    assert mean(mutant[LOW]) < 1.2 * mean(mutant[HIGH])


def test_all_kinds_of_scenario_are_among_the_seeds() -> None:
    """A mutant can only be caught by a seed that is about it."""
    scenarios = [draw(seed) for seed in SEEDS]
    assert any(scenario.ordering.window is not None for scenario in scenarios)
    assert {str(scenario.ordering.starvation).partition(":")[0] for scenario in scenarios} == {
        "none", "ageing", "flush",
    }  # fmt: skip
    assert {scenario.ordering.prioritised for scenario in scenarios} == {True, False}
