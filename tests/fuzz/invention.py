"""Invents well-formed datagrams and packets: any type, with contents that make sense here and there.

What was seen in a live group goes into a pool. A field of an invented struct is either something from the
pool or invented in turn, so that the result comes close to what members expect, and differs in a few places.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import msgspec
from msgspec import inspect

NAMES = ("a", "b", "c", "d", "e", "k", "x", "z")
_TEXTS = (
    "",
    "none",
    "auto",
    "ageing:20ms",
    "flush:1s",
    "flush:0s",
    "reorder",
    "time-parts/time-parts/reorder",
)
_NUMBERS = (0, 0, 1, 1, 2, 3, 4, 7, 16, 255, 256, 4096, 65_535, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62)
_POOL_MAX = 24
_ITEMS_MAX = 5
_DEPTH_MAX = 8
_ATTEMPTS = 20


class Inventor:
    """Draws values of any type that can be decoded."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pool: dict[type, list[Any]] = {}

    def see(self, value: object) -> None:
        """Add a value and everything in it to the pool."""
        if isinstance(value, msgspec.Struct):
            kept = self._pool.setdefault(type(value), [])
            if len(kept) < _POOL_MAX:
                kept.append(value)
            else:
                kept[self._random.randrange(_POOL_MAX)] = value
            for field in value.__struct_fields__:
                self.see(getattr(value, field))
        elif isinstance(value, tuple | list):
            for item in value[:_ITEMS_MAX]:
                self.see(item)

    def seen(self, kinds: tuple[type, ...]) -> Any:
        """Something of one of these types that was seen, if anything was."""
        kept = [each for kind in kinds for each in self._pool.get(kind, ())]
        return self._random.choice(kept) if kept else None

    def vary(self, value: Any) -> Any:
        """The same struct with one to three fields invented anew."""
        fields = list(value.__struct_fields__)
        for _ in range(self._random.choice((1, 1, 2, 3))):
            field = self._random.choice(fields)
            cls: type = type(value)
            kind = _field_types(cls)[field]
            inner = getattr(value, field)
            if isinstance(inner, msgspec.Struct) and inner.__struct_fields__ and self._random.random() < 0.6:
                changed = self.vary(inner)
            else:
                changed = self.invent(kind)
            with suppress(ValueError):
                value = type(value)(*(changed if name == field else getattr(value, name) for name in fields))
        return value

    def invent(self, kind: inspect.Type, depth: int = 0) -> Any:
        """A value of this type."""
        match kind:
            case inspect.StructType() | inspect.NamedTupleType():
                return self._struct(kind, depth)
            case inspect.UnionType(types=types):
                return self.invent(self._random.choice(types), depth)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                return tuple(self.invent(item, depth + 1) for _ in range(self._length(kind, depth)))
            case inspect.TupleType(item_types=items):
                return tuple(self.invent(item, depth + 1) for item in items)
            case inspect.DictType(key_type=key, value_type=value):
                length = self._length(kind, depth)
                return {self.invent(key, depth + 1): self.invent(value, depth + 1) for _ in range(length)}
            case _:
                return self._scalar(kind)

    def _struct(self, kind: inspect.StructType | inspect.NamedTupleType, depth: int) -> Any:
        kept = self._pool.get(kind.cls)
        if kept and (depth >= _DEPTH_MAX or self._random.random() < 0.6):
            return self._random.choice(kept)
        for _ in range(_ATTEMPTS):
            with suppress(ValueError):  # a struct that checks itself, such as a view
                return kind.cls(*(self.invent(field.type, depth + 1) for field in kind.fields))
        return self._random.choice(self._pool[kind.cls])

    def _scalar(self, kind: inspect.Type) -> Any:
        random = self._random
        match kind:
            case inspect.IntType(ge=ge, le=le):
                number = random.choice(_NUMBERS)
                return max(ge or 0, number if le is None else min(number, le))
            case inspect.StrType(min_length=shortest, max_length=longest):
                text = random.choice(NAMES if shortest else (*NAMES, *_TEXTS))
                return text[:longest]
            case inspect.BytesType(min_length=shortest, max_length=longest):
                return random.randbytes(random.choice((shortest or 0, min(longest or 40, 40))))
        return random.choice(_choices(kind))

    def _length(self, kind: Any, depth: int) -> int:
        longest = _ITEMS_MAX if depth < _DEPTH_MAX else 1
        return self._random.randint(kind.min_length or 0, max(kind.min_length or 0, longest))


def _choices(kind: inspect.Type) -> Sequence[Any]:
    """The values of a type that has few of them, or some of its values."""
    match kind:
        case inspect.EnumType(cls=cls):
            return list(cls)
        case inspect.FloatType():
            return (0.5, 20.0, 60_000.0)
        case inspect.BoolType():
            return (True, False)
        case inspect.LiteralType(values=values):
            return values
        case inspect.NoneType():
            return (None,)
    raise AssertionError(f"cannot invent {kind}")


@cache
def type_of(cls: type) -> inspect.StructType:
    """The fields of a struct, as its decoder sees them."""
    found = inspect.type_info(cls)
    assert isinstance(found, inspect.StructType)
    return found


@cache
def _field_types(cls: type) -> dict[str, inspect.Type]:
    return {field.name: field.type for field in type_of(cls).fields}
