"""Replicated objects: classes whose `@replicated` methods are executed at every member of a group.

Objects may contain others: all of them are replicated together, in one order. The state of an object is what
its attributes hold, except for those whose names begin with an underscore.
"""

import typing
from typing import Annotated, Any

import msgspec

from priocast.core.decoding import UNREADABLE, unreadable
from priocast.core.errors import GroupClosed, InvalidInput
from priocast.core.view import View
from priocast.replication.objects.methods import Call, ReplicatedMethod
from priocast.replication.replica import Replica
from priocast.replication.state_machine import Applied, Continue

_encode = msgspec.msgpack.Encoder().encode
_decode_call = msgspec.msgpack.Decoder(Call).decode
_Snapshots = Annotated[list[tuple[str, bytes]], msgspec.Meta(max_length=65_536)]
_decode_snapshots = msgspec.msgpack.Decoder(_Snapshots).decode


class CurrentCall:
    """The call that is executed now, which all objects of a group share; `at` is None outside of one."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at: Applied | None = None


class ReplicatedObject:
    """The base of classes with `@replicated` methods; `replicate` makes one object of a group's instances."""

    _replica: "Replica[ObjectMachine] | None" = None
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


class ObjectMachine:
    """The state machine of a replicated object and all objects in it."""

    def __init__(self, root: ReplicatedObject) -> None:
        self._objects: dict[str, ReplicatedObject] = {}
        self._methods: dict[str, tuple[ReplicatedObject, ReplicatedMethod[..., Any]]] = {}
        self._current = CurrentCall()
        self._add(root, "")

    def _add(self, found: ReplicatedObject, path: str) -> None:
        if found in self._objects.values():
            raise InvalidInput(f"a {type(found).__name__} is contained twice, as {path.rstrip('.')!r} too")
        found.check_state()
        found._path, found._current = path, self._current
        self._objects[path] = found
        for kind in reversed(type(found).__mro__):
            for name, value in vars(kind).items():
                if isinstance(value, ReplicatedMethod):
                    self._methods[f"{path}{name}"] = (found, value)
        for name, value in vars(found).items():
            if isinstance(value, ReplicatedObject):
                self._add(value, f"{path}{name}.")

    def bind(self, replica: "Replica[ObjectMachine] | None") -> None:
        """The calls of all objects go to this replica from now on."""
        for each in self._objects.values():
            each._replica = replica

    def apply(self, command: bytes, at: Applied) -> bytes | Continue:
        """Execute a call."""
        self._current.at = at
        try:
            return self._execute(command, at.sender)
        finally:
            self._current.at = None

    def query(self, command: bytes) -> bytes:
        """Execute the call of a query; its encoded result shares nothing with the state."""
        result = self._execute(command, "this member")
        assert isinstance(result, bytes), "a query has no slots"
        return result

    def _execute(self, command: bytes, source: object) -> bytes | Continue:
        try:
            call = _decode_call(command)
        except UNREADABLE as error:
            raise unreadable(source, "a call", error) from error
        found = self._methods.get(call.path)
        if found is None:
            raise InvalidInput(f"there is no replicated method {call.path!r}")
        instance, method = found
        return method.execute(instance, call.arguments)

    def on_view(self, view: View) -> None:
        """Tell all objects of a view."""
        for each in self._objects.values():
            each.on_view(view)

    def snapshot(self) -> bytes:
        """The states of all objects."""
        return _encode([(path, each.snapshot()) for path, each in self._objects.items()])

    def restore(self, data: bytes) -> None:
        """Replace the states of all objects."""
        for path, state in _decode_snapshots(data):
            if path not in self._objects:
                raise InvalidInput(f"the group has an object {path.rstrip('.')!r} that this member has not")
            self._objects[path].restore(state)
