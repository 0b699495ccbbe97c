"""Replicated objects: classes whose `@replicated` methods are executed at every member of a group.

Objects may contain others: all of them are replicated together, in one order. The state of an object is what
its attributes hold, except for those whose names begin with an underscore.
"""

import typing
from typing import TYPE_CHECKING, Any

import msgspec

from priocast.core.errors import GroupClosed, InvalidInput
from priocast.core.view import View
from priocast.replication.replica import Replica
from priocast.replication.state_machine import Applied

if TYPE_CHECKING:
    from priocast.replication.objects.object_machine import ObjectMachine

_encode = msgspec.msgpack.Encoder().encode


class CurrentCall:
    """The call that is executed now, which all objects of a group share; `at` is None outside of one."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: Applied | None = None


class ReplicatedObject:
    """The base of classes with `@replicated` methods; `replicate` makes one object of a group's instances."""

    _replica: "Replica[Any] | None" = None
    _current = CurrentCall()
    _path = ""

    @property
    def replica(self) -> "Replica[ObjectMachine]":
        """The replica that executes this object's methods; raises `GroupClosed` if there is none now."""
        if self._replica is None:
            raise GroupClosed(
                f"this {type(self).__name__} is not replicated: use it within 'async with replicate(...)'"
            )
        return self._replica

    @property
    def context(self) -> Applied:
        """Where in the order the current call is: time, seed, sender; only within a `@replicated` method."""
        at = self._current.at
        if at is None:
            raise InvalidInput("context is available within replicated methods only")
        return at

    def path_of(self, method: str) -> str:
        """How calls name a method of this object."""
        return f"{self._path}{method}"

    def on_view(self, view: View) -> None:
        """The group has these members from here on; called at the same place in the order everywhere."""

    def snapshot(self) -> bytes:
        """The state of this object without the objects in it."""
        return _encode(self._fields())

    def restore(self, data: bytes) -> None:
        """Replace the state by that of another replica."""
        hints = typing.get_type_hints(type(self))
        for name, value in msgspec.msgpack.decode(data, type=dict[str, Any]).items():
            setattr(self, name, msgspec.convert(value, hints.get(name, Any)))

    def _fields(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and not isinstance(value, ReplicatedObject)
        }

    def check_state(self) -> None:
        """Raise if the state would not survive a snapshot."""
        before = self._fields()
        try:
            self.restore(self.snapshot())
        except Exception as error:
            raise InvalidInput(
                f"the state of {type(self).__name__} cannot be saved and restored: {error}"
            ) from None
        for name, value in self._fields().items():
            if type(value) is not type(before[name]) or value != before[name]:
                raise InvalidInput(
                    f"{name} of {type(self).__name__} is {value!r} after a snapshot, not {before[name]!r}: "
                    f"declare its type in the class ('{name}: {type(before[name]).__name__}'), or write "
                    "snapshot and restore"
                )
