"""What tells two states apart, and what does not."""

import re
from collections import deque
from pathlib import Path

import pytest

import priocast
from priocast.core.identity import ProcessId
from priocast.core.message import pack
from priocast.core.protocol import OrderingOptions, Received, Turn
from priocast.core.protocol_interface import Protocol
from priocast.core.starvation import Strict
from priocast.core.view import View
from priocast.exploration.state_digest import NOT_STATE, UNORDERED, StateDigester
from priocast.protocols.flow.packets import Submit
from priocast.protocols.reorder.level_order import Insertion
from priocast.protocols.sequencer.ub import SequencerUb

A, B = ProcessId("a"), ProcessId("b")


class Box:
    def __init__(self, *things: object) -> None:
        self.things = things


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: object) -> None:
        self.inner = inner


class Inheriting(Slotted):
    __slots__ = ("_payloads", "outer")

    def __init__(self, inner: object, outer: object) -> None:
        super().__init__(inner)
        self.outer = outer
        self._payloads = object()


def same(one: object, other: object) -> bool:
    digest = StateDigester().digest
    return digest(one) == digest(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [1, 2, [3, {}]],
        lambda: {"a": 1, (2, 3): deque([b"x"])},
        lambda: Box(A, Strict(), {1, 2}, bytearray(b"x")),
        lambda: Inheriting([1], {"x": 2}),
        lambda: Box(int, Box.__init__, Strict().sort_key),
        lambda: SequencerUb(A, View(1, (A, B)), OrderingOptions()),
    ],
)
def test_what_is_made_alike_is_one_state(make: object) -> None:
    assert callable(make)
    assert same(make(), make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [2]),
        ([1], (1,)),
        ([1], deque([1])),
        ([1, 2], [2, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Box(1), Box(2)),
        (Box(1), Box(True)),
        (Inheriting(1, 2), Inheriting(1, 3)),
        (Inheriting(1, 2), Inheriting(0, 2)),
        (Slotted(1), Box(1)),
        (Box(A), Box(B)),
        (Box(int), Box(str)),
        ([[], []], [[], [[]]]),
    ],
)
def test_whatever_differs_makes_another_state(one: object, other: object) -> None:
    assert not same(one, other)


def test_one_object_in_two_places_is_not_two_equal_ones() -> None:
    shared: list[int] = [1]
    assert not same([shared, shared], [[1], [1]])
    assert same([shared, shared], [*(2 * [[1]])])


def test_what_refers_to_itself_has_an_end() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    other: list[object] = [1]
    other.append([1, other])
    assert not same(ring, other)


def test_caches_and_orders_that_do_not_matter_are_left_out() -> None:
    batch = pack(A, 7, 0, [b"x", b"y"])
    one, other = Insertion(batch, (0, 0, 0), 1), Insertion(batch, (0, 0, 0), 1)
    one.packet_ids += [(0, 1), (1, 1)]
    other.packet_ids += [(1, 1), (0, 1)]
    one.next(1)
    assert same(one, other)
    other.taken = 1
    assert not same(one, other)


def test_a_value_of_an_unknown_type_is_rejected() -> None:
    with pytest.raises(AssertionError, match="cannot be read"):
        StateDigester().digest([object()])


def test_a_protocol_is_in_another_state_after_a_step() -> None:
    def sequencer() -> Protocol:
        return SequencerUb(A, View(1, (A, B)), OrderingOptions())

    one, other = sequencer(), sequencer()
    one.step(Received(B, Submit((pack(B, 7, 0, [b"x"]),))), 0)
    assert not same(one, other)
    one.step(Turn(), 0)
    assert same(one, one)


def test_every_excluded_or_unordered_attribute_exists() -> None:
    """After a rename, an entry for the old name would exclude nothing, and states would be counted twice."""
    source = "".join(path.read_text() for path in Path(priocast.__file__).parent.rglob("*.py"))
    for name in NOT_STATE:
        assert re.search(rf"self\.{name}\b", source), name
    for class_name, name in (entry.split(".") for entry in UNORDERED):
        body = re.search(rf"^class {class_name}\b.*?(?=^\S|\Z)", source, re.DOTALL | re.MULTILINE)
        assert body, class_name
        assert re.search(rf"self\.{name}\b|^    {name}:", body[0], re.MULTILINE), f"{class_name}.{name}"
