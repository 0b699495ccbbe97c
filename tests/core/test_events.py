"""The events that the application receives."""

from typing import get_args

from core.builders import A
from priocast.core.events import (
    DeliveredBatch,
    Delivery,
    Event,
    Evicted,
    Restored,
    ServiceDelivery,
    ViewChange,
)


def test_a_delivered_batch_knows_the_priority_of_each_message() -> None:
    prioritised = DeliveredBatch(A, 224, 0, 0, [b"x", b"y"], b"")
    plain = DeliveredBatch(A, 0, 0, 0, [b"x", b"y"], bytes([7, 224]))
    assert [prioritised.priority_of(index) for index in (0, 1)] == [224, 224]
    assert [plain.priority_of(index) for index in (0, 1)] == [7, 224]


def test_the_stream_has_messages_views_a_state_and_an_end() -> None:
    assert set(get_args(Event)) == {Delivery, ServiceDelivery, ViewChange, Restored, Evicted}
