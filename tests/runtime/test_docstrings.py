"""Every public name has a docstring; in the runtime and the networks, with every parameter and field."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import priocast
from priocast.network import interface, ports

MODULES = ("priocast.runtime", "priocast.network")


def _named(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


PUBLIC = {**_named(priocast), **_named(interface), "OpenPort": ports.OpenPort, "Ports": ports.Ports}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}
METHODS = {
    f"{owner}.{name}": getattr(kind, name)
    for owner, kind in CLASSES.items()
    if kind.__module__
    != "priocast.core.starvation"  # users construct policies, and call none of their methods
    for name, value in vars(kind).items()
    if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
}
FUNCTIONS = {name: value for name, value in {**PUBLIC, **METHODS}.items() if inspect.isfunction(value)}


def _undocumented(names: list[str], documented: Any) -> list[str]:
    text = inspect.getdoc(documented) or ""
    return [name for name in names if name != "self" and not re.search(rf"`{name}\b", text)]


@pytest.mark.parametrize("name", [*CLASSES, *METHODS, *FUNCTIONS])
def test_it_has_a_docstring(name: str) -> None:
    documented = {**CLASSES, **METHODS, **FUNCTIONS}[name]
    assert inspect.getdoc(documented), name


@pytest.mark.parametrize(
    "function", [each for each in FUNCTIONS.values() if each.__module__.startswith(MODULES)]
)
def test_its_docstring_mentions_every_parameter(function: Callable[..., Any]) -> None:
    assert not _undocumented(list(inspect.signature(function).parameters), function)


@pytest.mark.parametrize(
    "kind",
    [
        each
        for each in CLASSES.values()
        if issubclass(each, msgspec.Struct) and each.__module__.startswith(MODULES)
    ],
)
def test_its_docstring_mentions_every_field(kind: type[msgspec.Struct]) -> None:
    assert not _undocumented(list(kind.__struct_fields__), kind)
