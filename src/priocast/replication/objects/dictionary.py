"""A replicated dictionary."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject

K = TypeVar("K")
V = TypeVar("V")


class ReplicatedDict(ReplicatedObject, Generic[K, V]):
    """A dictionary with the same items at every member; keys and values are what msgpack can carry.

    Reads are linearizable. `local` is this member's copy: it costs nothing to read and may be behind.
    """

    def __init__(self) -> None:
        self._items: dict[K, V] = {}

    @property
    def local(self) -> Mapping[K, V]:
        """This member's copy, to read."""
        return MappingProxyType(self._items)

    @replicated
    def set(self, key: K, value: V) -> None:
        """Set an item."""
        self._items[key] = value

    @replicated
    def update(self, items: dict[K, V]) -> None:
        """Set several items at once."""
        self._items.update(items)

    @replicated
    def setdefault(self, key: K, value: V) -> V:
        """Set an item if there is none with this key; return the one that is there then."""
        return self._items.setdefault(key, value)

    @replicated
    def compare_and_set(self, key: K, expected: V | None, value: V) -> bool:
        """Set an item if it is as expected (None: there is none); return whether it was."""
        if self._items.get(key) != expected:
            return False
        self._items[key] = value
        return True

    @replicated
    def pop(self, key: K, default: V | None = None) -> V | None:
        """Remove an item and return it; the default if there is none."""
        return self._items.pop(key, default)

    @replicated
    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    @query
    def get(self, key: K, default: V | None = None) -> V | None:
        """The item with this key; the default if there is none."""
        return self._items.get(key, default)

    @query
    def contains(self, key: K) -> bool:
        """Whether there is an item with this key."""
        return key in self._items

    @query
    def length(self) -> int:
        """How many items there are."""
        return len(self._items)

    @query
    def items(self) -> list[tuple[K, V]]:
        """All items, in the order in which their keys were first set."""
        return list(self._items.items())

    def snapshot(self) -> bytes:
        """All items."""
        return msgspec.msgpack.encode(list(self._items.items()))

    def restore(self, data: bytes) -> None:
        """Replace all items."""
        self._items = dict(msgspec.msgpack.decode(data, type=list[tuple[Any, Any]]))
