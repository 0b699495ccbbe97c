"""Members that treat forbidden packets otherwise than real ones: what a mutant breaks then.

Correct members reject packets that no correct member sends, so many mutants fail at that check before they
break anything. A mutant shows which guarantee its rule serves only if the others trust it: `trusting` removes
every `raise PeerFault` of the protocols, and lets members carry on where they rely on the check.

A mutant of a check rejects correct members. What that costs shows if members carry on without those whom they
reject: `ignoring`.
"""

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from priocast import protocols
from priocast.core.errors import PeerFault
from priocast.core.message import Batch, OrderedBatch, Reference
from priocast.core.protocol import Input, Output, PacketId, Received
from priocast.core.view import ViewId
from priocast.protocols.flow.credit import InFlight
from priocast.protocols.flow.message_store import _Stream
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.numbering.giver import NumberGiver
from priocast.protocols.reorder.lock_block import LockInsertion
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.reordering import ReorderingProtocol

Patch = Callable[[pytest.MonkeyPatch], None]


def trusting(mutate: Patch) -> Patch:
    """The same mutant, among members that reject nothing."""

    @wraps(mutate)
    def patched(patch: pytest.MonkeyPatch) -> None:
        reject_nothing(patch)
        mutate(patch)

    return patched


def ignoring(mutate: Patch) -> Patch:
    """The same mutant, among members that ignore for the rest of a view whom they have rejected."""

    @wraps(mutate)
    def patched(patch: pytest.MonkeyPatch) -> None:
        def step(self: OrderingProtocol, event: Input, now: int) -> list[Output]:
            rejected = vars(self).setdefault("rejected", {})
            if not isinstance(event, Received):
                return original(self, event, now)
            if event.sender in rejected:
                return []
            try:
                return original(self, event, now)
            except PeerFault:
                rejected[event.sender] = True
                return []

        original = OrderingProtocol.step
        patch.setattr(OrderingProtocol, "step", step)
        mutate(patch)

    return patched


def reject_nothing(patch: pytest.MonkeyPatch) -> None:
    """Remove every rejection of a packet from the protocols, wherever a function was imported to."""
    for function, code in _trusting_functions():
        patch.setattr(function, "__code__", code)
    _carry_on(patch)


def _carry_on(patch: pytest.MonkeyPatch) -> None:
    """Make members do something where they rely on what they did not check."""
    _keep_ordered_messages(patch)
    _count_only_what_is_in_flight(patch)
    _insert_and_end_in_any_case(patch)
    patch.setattr(NumberGiver, "check_used", lambda *_: None)


def _keep_ordered_messages(patch: pytest.MonkeyPatch) -> None:
    """A message that is ordered again can be delivered again."""

    def put(self: _Stream, batch: Batch, packet_id: PacketId) -> None:
        vars(self).setdefault("kept", []).append((batch, packet_id))
        original_put(self, batch, packet_id)

    def take(self: _Stream, reference: Reference) -> tuple[list[Batch], PacketId]:
        if reference.first == self._number_first:
            return original_take(self, reference)
        last = reference.first + reference.count
        taken = []
        for batch, packet_id in vars(self)["kept"]:
            start, end = max(reference.first, batch.first), min(last, batch.first + batch.count)
            if start < end:
                ordered = OrderedBatch(ViewId(0, batch.sender), 0, batch)
                taken.append((ordered.cut(start - batch.first, end - start), packet_id))
        return [batch for batch, _ in taken], taken[-1][1]

    original_put, original_take = _Stream.put, _Stream.take
    patch.setattr(_Stream, "put", put)
    patch.setattr(_Stream, "take", take)


def _count_only_what_is_in_flight(patch: pytest.MonkeyPatch) -> None:
    """A message that is ordered again takes no credit again, from its sender or from those who check it."""

    def ordered(self: InFlight, batch: Batch) -> None:
        if sum(each.count for each in self._sent.get(batch.level, ())) >= batch.count:
            original(self, batch)

    def checked(self: SubmissionValidator, batch: Batch) -> None:
        self._unordered[batch.sender] -= min(batch.count, self._unordered[batch.sender])

    original = InFlight.ordered
    patch.setattr(InFlight, "ordered", ordered)
    patch.setattr(SubmissionValidator, "ordered", checked)


def _insert_and_end_in_any_case(patch: pytest.MonkeyPatch) -> None:
    """What has lost its insertion point goes to the tail; what waits when a view ends is left."""

    def insert(self: LockQueue, insertion: LockInsertion) -> None:
        if self._index(insertion.point) is None:
            insertion.point = None
        original(self, insertion)

    def close(self: ReorderingProtocol[Any, Any, Any]) -> None:
        self._queue.end()
        self._tentative = self._consumable = None
        self._head_is_known = True
        while (found := self._queue.consumable()) is not None:
            self._commit(*found)

    original = LockQueue._insert
    patch.setattr(LockQueue, "_insert", insert)
    patch.setattr(ReorderingProtocol, "close", close)


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
