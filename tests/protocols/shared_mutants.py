"""Mutants that apply to more than one protocol."""

from typing import Any

import pytest

from priocast.core.identity import ProcessId
from priocast.core.protocol import Input, Output, Received
from priocast.core.starvation import Starvation
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.ordering_protocol import OrderingProtocol


def a_place_rests_on_the_packet_that_came_last(patch: pytest.MonkeyPatch) -> None:
    def step(self: OrderingProtocol, event: Input, now: int) -> list[Output]:
        if isinstance(event, Received):
            vars(self)["came_last"] = event.packet_id
        return original_step(self, event, now)

    def depends_on(self: OrderingProtocol, packet_id: tuple[int, int]) -> None:
        original(self, vars(self)["came_last"])

    original, original_step = OrderingProtocol.depends_on, OrderingProtocol.step
    patch.setattr(OrderingProtocol, "step", step)
    patch.setattr(OrderingProtocol, "depends_on", depends_on)


def a_sender_sends_what_came_first(patch: pytest.MonkeyPatch) -> None:
    def init(self: OrderingProtocol, *given: object) -> None:
        original(self, *given)  # type: ignore[arg-type]
        self.outgoing._sort_key = lambda *_: 0

    original = OrderingProtocol.__init__
    patch.setattr(OrderingProtocol, "__init__", init)


def sorted_by(patch: pytest.MonkeyPatch, policy: Starvation, owner: type, queue: str = "") -> None:
    """Instances of this class sort by this policy: themselves, or the queue that they have by this name."""

    def init(self: object, *given: object) -> None:
        original(self, *given)
        sorting: Any = getattr(self, queue) if queue else self
        sorting._sort_key = policy.sort_key

    original = vars(owner)["__init__"]
    patch.setattr(owner, "__init__", init)


def the_sequencer_waits_for_the_fastest(patch: pytest.MonkeyPatch) -> None:
    """A bottleneck is evicted after a while: it must not be a member that is ahead of the others."""

    def bottleneck(self: Grants, level: int) -> ProcessId | None:
        slowest = original(self, level)
        return slowest and max(self._consumed, key=lambda member: self._consumed[member])

    original = Grants.bottleneck
    patch.setattr(Grants, "bottleneck", bottleneck)
