"""What a state is: two objects have one digest exactly if nothing but a cache tells them apart.

What cannot be changed goes into a digest by its value; what can be changed, by its content when it is met
first, and by its number when it is met again: so two parts that are one object and two parts that are merely
equal make different digests. No protocol needs to know that it is looked at.
"""

import marshal
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any

import msgspec

from priocast.exploration.numbered import Numbered

#: Attributes that hold nothing which is not known otherwise, or which no later step looks at.
NOT_STATE = frozenset(
    {
        "_handlers",  # by type of input: the same methods for ever
        "_outputs",  # empty between steps
        "_payloads",  # an opened block
        "_tentative",  # what `head` said last
        "_consumable",  # what the queues said last
        "_head_is_known",  # whether they still say so
        "packet_id",  # told anew with every packet
        "scenario",  # the same for ever
        "stalls",  # measures, and decides nothing
    }
)
#: Attributes whose content is never gone through in an order that matters: only looked up, or added up.
UNORDERED = frozenset(
    {
        "Consumption._accounts",
        "CutInsertion.cut",
        "Insertion.packet_ids",
        "Exchange._collected",
        "Exchange.undecided",
        "Station.placed_before",
        "Submissions._number_next",
    }
)
_VALUES = frozenset({int, str, bytes, bool, float, type(None)})
_NO_SHARING = 2  # The version of `marshal` in which equal values have equal bytes.

_CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    list: lambda thing: thing,
    deque: lambda thing: thing,
    dict: lambda thing: (part for item in thing.items() for part in item),
    set: sorted,
    frozenset: sorted,
    bytearray: lambda thing: (bytes(thing),),
}


class Digester:
    """Makes digests that can be compared with each other."""

    def __init__(self) -> None:
        self._constants = Numbered()
        self._met: dict[int, int] = {}
        self._ways: dict[type, Callable[[Any], Any]] = {
            tuple: self._tuple,
            MethodType: lambda thing: ("constant", self._constants.number(thing.__func__)),
        }

    def digest(self, thing: object) -> bytes:
        """The state of an object and of all that it refers to, in 16 bytes.

        That two of a million states have one digest by chance is as likely as 1 in 10^27.
        """
        self._met = {}
        return blake2b(marshal.dumps(self._of(thing), _NO_SHARING), digest_size=16).digest()

    def _of(self, thing: Any) -> Any:
        kind = type(thing)
        if kind in _VALUES:
            return thing
        way = self._ways.get(kind)
        if way is None:
            way = self._ways[kind] = self._way_for(thing)
        return way(thing)

    def _way_for(self, thing: object) -> Callable[[Any], Any]:
        """How things of this type go into a digest."""
        frozen = isinstance(thing, msgspec.Struct) and thing.__struct_config__.frozen
        if frozen or isinstance(thing, type | FunctionType):
            return lambda thing: ("constant", self._constants.number(thing))
        if isinstance(thing, tuple):
            number = self._constants.number(type(thing))
            return lambda thing: (number, self._tuple(thing))
        for kind, content in _CONTENTS.items():
            if isinstance(thing, kind):
                return self._changing(type(thing), content)
        kinds = type(thing).__mro__
        slots = [name for kind in kinds for name in getattr(kind, "__slots__", ())]
        assert slots or hasattr(thing, "__dict__"), f"the state of {thing!r} cannot be seen"
        unordered = {
            name for kind in kinds for name in _names(thing, slots) if f"{kind.__name__}.{name}" in UNORDERED
        }
        return self._changing(type(thing), lambda thing: _attributes(thing, slots, unordered))

    def _changing(self, kind: type, content: Callable[[Any], Iterable[Any]]) -> Callable[[Any], Any]:
        number = self._constants.number(kind)

        def way(thing: Any) -> Any:
            again = self._met.get(id(thing))
            if again is not None:
                return ("again", again)
            self._met[id(thing)] = len(self._met)
            return [number, *[part if type(part) in _VALUES else self._of(part) for part in content(thing)]]

        return way

    def _tuple(self, thing: tuple[Any, ...]) -> Any:
        return tuple([part if type(part) in _VALUES else self._of(part) for part in thing])


def _names(thing: object, slots: list[str]) -> list[str]:
    return [name for name in (*getattr(thing, "__dict__", ()), *slots) if name not in NOT_STATE]


def _attributes(thing: object, slots: list[str], unordered: set[str]) -> list[Any]:
    return [
        _in_order(getattr(thing, name)) if name in unordered else getattr(thing, name)
        for name in _names(thing, slots)
    ]


def _in_order(part: Any) -> tuple[Any, ...]:
    return tuple(sorted(part.items() if isinstance(part, dict) else part))
