"""Inspecting a protocol: cheap, because slow-member detection does it at every tick."""

import pytest

from core.builders import A, B, batch_of
from priocast.core.inspection import QueueInspection
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import Broadcast, OrderingOptions
from priocast.core.view import View
from priocast.protocols import PROTOCOLS, all_orders, find_protocol


@pytest.mark.parametrize("order", all_orders(PROTOCOLS))
def test_queues_are_counted_only_when_they_are_asked_for(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of waiting batches, counting them at every tick delayed urgent messages."""
    protocol = find_protocol(order)(A, View(1, (A, B)), OrderingOptions())
    protocol.step(Broadcast(batch_of(3, 7, sender=A)), 0)
    counted: list[int] = []
    original = PriorityQueue.inspect

    def inspect(self: PriorityQueue, now: int) -> list[QueueInspection]:
        counted.append(now)
        return original(self, now)

    monkeypatch.setattr(PriorityQueue, "inspect", inspect)
    inspection = protocol.inspect(5)
    assert not counted
    assert len(inspection.queues) <= 1
    assert set(counted) == {5}
