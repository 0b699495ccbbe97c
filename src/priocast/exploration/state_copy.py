"""Copies of member states, so that a search can step a member and keep the state from which it started.

Values that cannot change are shared by all copies: numbers, text, packets and other frozen structs, classes.
Everything else is copied part by part, and two references to one object stay two references to one object.
A protocol needs no support for this. An object whose parts cannot be found is an error, never a shared part.
"""

import copy
from collections import defaultdict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import msgspec

#: By object id: the original, which must stay alive while its id is in use, and its copy.
Memo = dict[int, tuple[object, Any]]
_Copy = Callable[[Any, Memo], Any]

#: Types whose objects are shared by all copies; grows as frozen structs are met.
_SHARED: set[type] = {int, str, bytes, bool, float, type(None)}


def copy_state(state: Any) -> Any:
    """An independent copy of an object and of everything mutable that it refers to."""
    return _copy(state, {})


def _copy(thing: Any, memo: Memo) -> Any:
    kind = type(thing)
    if kind in _SHARED:
        return thing
    found = memo.get(id(thing))
    if found is not None:
        return found[1]
    copier = _COPIERS.get(kind)
    if copier is not None:
        return copier(thing, memo)
    if _is_constant(kind):
        _SHARED.add(kind)
        return thing
    _COPIERS[kind] = copier = _copier_of(kind)
    return copier(thing, memo)


def _is_constant(kind: type) -> bool:
    """Whether objects of this type never change: frozen structs, classes, generic classes with arguments."""
    if issubclass(kind, msgspec.Struct):
        return bool(kind.__struct_config__.frozen)
    return issubclass(kind, type) or kind.__module__ == "typing"


def _copy_list(thing: list[Any], memo: Memo) -> list[Any]:
    copied: list[Any] = []
    memo[id(thing)] = (thing, copied)
    copied += [part if type(part) in _SHARED else _copy(part, memo) for part in thing]
    return copied


def _copy_deque(thing: deque[Any], memo: Memo) -> deque[Any]:
    copied: deque[Any] = deque(maxlen=thing.maxlen)
    memo[id(thing)] = (thing, copied)
    copied.extend(_copy(part, memo) for part in thing)
    return copied


def _fill_dict(thing: dict[Any, Any], copied: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    memo[id(thing)] = (thing, copied)
    for key, value in thing.items():
        copied[key if type(key) in _SHARED else _copy(key, memo)] = (
            value if type(value) in _SHARED else _copy(value, memo)
        )
    return copied


def _copy_dict(thing: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    return _fill_dict(thing, {}, memo)


def _copy_defaultdict(thing: defaultdict[Any, Any], memo: Memo) -> dict[Any, Any]:
    return _fill_dict(thing, defaultdict(_copy(thing.default_factory, memo)), memo)


def _copy_set(thing: set[Any], memo: Memo) -> set[Any]:
    copied = {_copy(part, memo) for part in thing}
    memo[id(thing)] = (thing, copied)
    return copied


def _copy_bytearray(thing: bytearray, memo: Memo) -> bytearray:
    copied = bytearray(thing)
    memo[id(thing)] = (thing, copied)
    return copied


def _copy_tuple(thing: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    """A tuple of shared parts is shared itself."""
    parts = [part if type(part) in _SHARED else _copy(part, memo) for part in thing]
    if all(map(_is, parts, thing)):
        return thing
    kind = type(thing)
    copied: tuple[Any, ...] = tuple.__new__(kind, parts)
    memo[id(thing)] = (thing, copied)
    return copied


def _copy_frozenset(thing: frozenset[Any], memo: Memo) -> frozenset[Any]:
    assert all(_copy(part, memo) is part for part in thing), "what is in a frozenset can be changed"
    return thing


def _is(one: object, other: object) -> bool:
    return one is other


def _copy_method(thing: MethodType, memo: Memo) -> MethodType:
    return MethodType(thing.__func__, _copy(thing.__self__, memo))


def _copy_function(thing: FunctionType, _: Memo) -> FunctionType:
    assert thing.__closure__ is None, f"the variables that {thing.__qualname__} captured cannot be copied"
    return thing


def _copy_builtin(thing: BuiltinFunctionType, _: Memo) -> BuiltinFunctionType:
    owner = getattr(thing, "__self__", None)
    assert owner is None or type(owner).__name__ == "module" or isinstance(owner, type), (
        f"{thing.__qualname__} is bound to an object and cannot be copied"
    )
    return thing


def _copy_struct(thing: msgspec.Struct, memo: Memo) -> msgspec.Struct:
    copied = copy.copy(thing)
    memo[id(thing)] = (thing, copied)
    for name in thing.__struct_fields__:
        setattr(copied, name, _copy(getattr(thing, name), memo))
    return copied


def _copy_object(slots: tuple[str, ...]) -> _Copy:
    def copier(thing: Any, memo: Memo) -> Any:
        copied = object.__new__(type(thing))
        memo[id(thing)] = (thing, copied)
        for name in slots:
            if hasattr(thing, name):
                object.__setattr__(copied, name, _copy(getattr(thing, name), memo))
        attributes = getattr(thing, "__dict__", None)
        if attributes is not None:
            vars(copied).update(
                {
                    name: value if type(value) in _SHARED else _copy(value, memo)
                    for name, value in attributes.items()
                }
            )
        return copied

    return copier


_COPIERS: dict[type, _Copy] = {
    list: _copy_list,
    deque: _copy_deque,
    dict: _copy_dict,
    defaultdict: _copy_defaultdict,
    set: _copy_set,
    frozenset: _copy_frozenset,
    bytearray: _copy_bytearray,
    tuple: _copy_tuple,
    MethodType: _copy_method,
    FunctionType: _copy_function,
    BuiltinFunctionType: _copy_builtin,
}


def _copier_of(kind: type) -> _Copy:
    """How objects of this type are copied."""
    if issubclass(kind, msgspec.Struct):
        return _copy_struct
    if issubclass(kind, tuple):
        return _copy_tuple
    slots = tuple(name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))
    has_parts = bool(slots) or kind.__dictoffset__ != 0
    is_container = issubclass(kind, list | dict | set | frozenset | deque | bytearray)
    assert has_parts and not is_container, f"the parts of a {kind.__qualname__} cannot be copied"
    return _copy_object(slots)
