"""Members that reject nothing: what a mutant breaks when nobody checks packets.

Correct members reject packets that no correct member sends, so many mutants fail at that check before they
break anything. A mutant shows which guarantee its rule serves only if the others trust it. Here every
`raise PeerFault` of the protocols is removed; nothing else changes.
"""

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from types import CodeType, FunctionType, ModuleType

import pytest

from priocast import protocols
from priocast.core.errors import PeerFault

Patch = Callable[[pytest.MonkeyPatch], None]


def trusting(mutate: Patch) -> Patch:
    """The same mutant, among members that reject nothing."""

    @wraps(mutate)
    def patched(patch: pytest.MonkeyPatch) -> None:
        reject_nothing(patch)
        mutate(patch)

    return patched


def reject_nothing(patch: pytest.MonkeyPatch) -> None:
    """Remove every rejection of a packet from the protocols, wherever a function was imported to."""
    for function, code in _trusting_functions():
        patch.setattr(function, "__code__", code)


@cache
def _trusting_functions() -> tuple[tuple[FunctionType, CodeType], ...]:
    return tuple(
        (function, _without_rejections(function))
        for module in _modules()
        for owner in (module, *vars(module).values())
        if owner is module or (isinstance(owner, type) and owner.__module__ == module.__name__)
        for function in vars(owner).values()
        if isinstance(function, FunctionType)
        and function.__module__ == module.__name__
        and PeerFault.__name__ in function.__code__.co_names
    )


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(protocols.__path__, f"{protocols.__name__}."):
        yield import_module(found.name)


class _Remover(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.stmt:  # named by ast
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        is_rejection = isinstance(raised, ast.Name) and raised.id == PeerFault.__name__
        return ast.copy_location(ast.Pass(), node) if is_rejection else node


def _without_rejections(function: FunctionType) -> CodeType:
    """The code of a function without its rejections; `super()` needs the variable `__class__`."""
    assert function.__code__.co_freevars in ((), ("__class__",)), f"{function.__qualname__} has a closure"
    method = _Remover().visit(ast.parse(textwrap.dedent(inspect.getsource(function)))).body[0]
    factory = ast.parse("def factory(__class__): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [method, ast.Return(ast.Name(function.__name__, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    namespace: dict[str, Callable[[object], FunctionType]] = {}
    code = compile(module, function.__code__.co_filename, "exec")
    exec(code, dict(function.__globals__), namespace)  # noqa: S102  # the project's own source
    return namespace["factory"](None).__code__
