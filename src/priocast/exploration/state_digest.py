"""Digests of states: two objects have the same digest exactly if only caches tell them apart.

A value that cannot change enters a digest by its value. An object that can change enters by its content when
it is met first, and by its number when it is met again: so one shared object and two equal objects have
different digests. Protocols need no support for this.
"""

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any

import msgspec

from priocast.exploration.interner import Interner

#: Attributes that follow from others, or that no later step reads.
NOT_STATE = frozenset(
    {
        "_handlers",  # by type of input: always the same methods
        "_outputs",  # empty between steps
        "_payloads",  # a decoded block
        "_tentative",  # the last result of `head`
        "_consumable",  # the last result of the queue
        "_head_is_known",  # whether both are still valid
        "scenario",  # never changes
        "stalls",  # a measurement; decides nothing
    }
)
#: Attributes whose iteration order does not matter: they are only looked up, or summed.
UNORDERED = frozenset(
    {
        "Consumption._accounts",
        "CutInsertion.cut",
        "Insertion.packet_ids",
        "Exchange._collected",
        "Exchange.undecided",
        "MemberModel.ordered_before",
        "SubmissionValidator._number_next",
    }
)
_VALUES = frozenset({int, str, bytes, bool, float, type(None)})
#: The first item of an encoded part says what it is; a type that can be changed has a number from 0 on.
_CONSTANT, _REPEATED, _TUPLE, _FROZENSET = -1, -2, -3, -4

_encode = msgspec.msgpack.Encoder().encode

_CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    list: lambda thing: thing,
    deque: lambda thing: thing,
    dict: lambda thing: (part for item in thing.items() for part in item),
    set: sorted,
    bytearray: lambda thing: (bytes(thing),),
}


class StateDigester:
    """Computes digests that can be compared with each other."""

    def __init__(self) -> None:
        self._constants = Interner()
        self._numbers: dict[int, int] = {}
        self._encoders: dict[type, Callable[[Any], Any]] = {
            tuple: self._tuple,
            frozenset: lambda thing: (_FROZENSET, self._tuple(tuple(sorted(thing)))),
            MethodType: lambda thing: (_CONSTANT, self._constants.number(thing.__func__)),
        }

    def digest(self, thing: object) -> bytes:
        """The state of an object and of all that it refers to, in 16 bytes.

        The probability that two of a million states have the same digest by chance is about 1 in 10^27.
        """
        self._numbers = {}
        return blake2b(_encode(self._of(thing)), digest_size=16).digest()

    def _of(self, thing: Any) -> Any:
        kind = type(thing)
        if kind in _VALUES:
            return thing
        encoder = self._encoders.get(kind)
        if encoder is None:
            encoder = self._encoders[kind] = self._encoder_for(thing)
        return encoder(thing)

    def _encoder_for(self, thing: object) -> Callable[[Any], Any]:
        """How objects of this type are encoded."""
        frozen = isinstance(thing, msgspec.Struct) and thing.__struct_config__.frozen
        if frozen or isinstance(thing, type | FunctionType):
            return lambda thing: (_CONSTANT, self._constants.number(thing))
        if isinstance(thing, tuple):
            number = self._constants.number(type(thing))
            return lambda thing: (number, self._tuple(thing))
        for kind, content in _CONTENTS.items():
            if isinstance(thing, kind):
                return self._mutable(type(thing), content)
        kinds = type(thing).__mro__
        slots = [name for kind in kinds for name in getattr(kind, "__slots__", ())]
        assert slots or hasattr(thing, "__dict__"), f"the state of {thing!r} cannot be read"
        unordered = {
            name for kind in kinds for name in _names(thing, slots) if f"{kind.__name__}.{name}" in UNORDERED
        }
        return self._mutable(type(thing), lambda thing: _attributes(thing, slots, unordered))

    def _mutable(self, kind: type, content: Callable[[Any], Iterable[Any]]) -> Callable[[Any], Any]:
        number = self._constants.number(kind)

        def encoder(thing: Any) -> Any:
            again = self._numbers.get(id(thing))
            if again is not None:
                return (_REPEATED, again)
            self._numbers[id(thing)] = len(self._numbers)
            return [number, *[part if type(part) in _VALUES else self._of(part) for part in content(thing)]]

        return encoder

    def _tuple(self, thing: tuple[Any, ...]) -> Any:
        return [_TUPLE, *[part if type(part) in _VALUES else self._of(part) for part in thing]]


def _names(thing: object, slots: list[str]) -> list[str]:
    return [name for name in (*getattr(thing, "__dict__", ()), *slots) if name not in NOT_STATE]


def _attributes(thing: object, slots: list[str], unordered: set[str]) -> list[Any]:
    return [
        _in_order(getattr(thing, name)) if name in unordered else getattr(thing, name)
        for name in _names(thing, slots)
    ]


def _in_order(part: Any) -> tuple[Any, ...]:
    return tuple(sorted(part.items() if isinstance(part, dict) else part))
