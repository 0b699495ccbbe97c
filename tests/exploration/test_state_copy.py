"""A copy of a member's state shares nothing with it that can change, and behaves the same."""

from collections import defaultdict, deque
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
import pytest

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.core.view import View
from priocast.exploration.state_copy import copy_state
from priocast.exploration.state_digest import StateDigester
from priocast.protocols import PROTOCOLS, find_protocol

A, B = ProcessId("a"), ProcessId("b")


class Box:
    def __init__(self, *things: object) -> None:
        self.things = list(things)

    def first(self) -> object:
        return self.things[0]


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: object) -> None:
        self.inner = inner


def _closure(captured: object) -> Callable[[], object]:
    return lambda: captured


class Mutable(msgspec.Struct):
    parts: list[int]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [1, [2, {3: b"x"}]],
        lambda: deque([[1]], maxlen=3),
        lambda: defaultdict(list, {1: [2]}),
        lambda: {1, 2},
        lambda: ([1], "shared"),
        lambda: Box([1], {2: [3]}),
        lambda: Slotted([1]),
        lambda: Mutable([1]),
        lambda: bytearray(b"x"),
    ],
)
def test_a_copy_is_equal_and_independent(make: Callable[[], Any]) -> None:
    digest = StateDigester().digest
    original = make()
    copied = copy_state(original)
    assert type(copied) is type(original)
    assert copied is not original
    assert digest(copied) == digest(original) == digest(make())


def test_changing_a_copy_leaves_the_original_alone() -> None:
    original = Box([1], {2: [3]}, Mutable([4]))
    copied = copy_state(original)
    copied.things[0].append(5)
    copied.things[1][2].append(5)
    copied.things[2].parts.append(5)
    assert original.things[:2] == [[1], {2: [3]}]
    assert original.things[2] == Mutable([4])


def test_two_references_to_one_object_stay_that() -> None:
    shared: list[int] = []
    one, other = copy_state([shared, shared])
    assert one is other
    ring: list[Any] = []
    ring.append(ring)
    copied = copy_state(ring)
    assert copied[0] is copied


def test_a_bound_method_is_bound_to_the_copy() -> None:
    box = Box(1)
    box.things.append(box.first)
    copied = copy_state(box)
    assert copied.things[1].__self__ is copied


def test_frozen_structs_and_classes_are_shared() -> None:
    things = [A, OrderingOptions(), Box, (A, 1)]
    assert all(copy is thing for copy, thing in zip(copy_state(things), things, strict=True))


@pytest.mark.parametrize("thing", [count(), iter([1]), _closure([1]), [].append, object()])
def test_an_object_whose_parts_cannot_be_found_is_rejected(thing: object) -> None:
    with pytest.raises(AssertionError, match="cannot be copied"):
        copy_state(thing)


@pytest.mark.parametrize("order", PROTOCOLS)
def test_every_protocol_can_be_copied(order: str) -> None:
    protocol: Protocol = find_protocol(order)(A, View(1, (A, B)), OrderingOptions())
    digest = StateDigester().digest
    assert digest(copy_state(protocol)) == digest(protocol)
