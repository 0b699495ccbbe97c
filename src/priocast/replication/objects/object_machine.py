"""The state machine of replicated objects: a command is the call of one of their methods."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from priocast.core.decoding import UNREADABLE, unreadable
from priocast.core.errors import InvalidInput
from priocast.core.view import View
from priocast.replication.objects.methods import Call, ReplicatedMethod
from priocast.replication.objects.replicated_object import CurrentCall, ReplicatedObject
from priocast.replication.replica import Replica
from priocast.replication.state_machine import Applied, Continue

_encode = msgspec.msgpack.Encoder().encode
_decode_call = msgspec.msgpack.Decoder(Call).decode
_Snapshots = Annotated[list[tuple[str, bytes]], msgspec.Meta(max_length=65_536)]
_decode_snapshots = msgspec.msgpack.Decoder(_Snapshots).decode

_Called = tuple[ReplicatedObject, Callable[..., Any], Callable[[Any], tuple[Any, ...]]]
"""A method that was called before: its object, its function, and what decodes its arguments."""


class ObjectMachine:
    """The state machine of a replicated object and all objects in it."""

    def __init__(self, root: ReplicatedObject) -> None:
        self._objects: dict[str, ReplicatedObject] = {}
        self._methods: dict[str, tuple[ReplicatedObject, ReplicatedMethod[..., Any]]] = {}
        self._called: dict[str, _Called] = {}
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
        instance, function, decode_arguments = self._called.get(call.path) or self._find(call.path)
        result = function(instance, *decode_arguments(call.arguments))
        return result if isinstance(result, Continue) else _encode(result)

    def _find(self, path: str) -> _Called:
        """The method that calls name like this."""
        if path not in self._methods:
            raise InvalidInput(f"there is no replicated method {path!r}")
        instance, method = self._methods[path]
        self._called[path] = called = (instance, method.function, method.decoders()[0])
        return called

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
