"""Rules for names in the source: unique class names, no retired words, shallow protocol hierarchies."""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import priocast.protocols
from priocast.protocols.flow.ordering_protocol import OrderingProtocol

SOURCE = Path(__file__).parent.parent / "src" / "priocast"
PROTOCOL_DEPTH_MAX = 3

#: Class names that occur more than once, with the reason why they may.
SHARED_CLASS_NAMES = {
    "RunHistory": "the same concept in the simulator, in memory, and in the pipeline, as Spark tables",
    "StateEvent": "as RunHistory",
    "ViewEvent": "as RunHistory",
}

#: Words that the glossary replaced, and their replacements. Words with another, current meaning are not here.
RETIRED_WORDS = {
    "agenda": "event queue",
    "census": "counts",
    "chronicle": "history",
    "closure": "flush plan",
    "closures": "flush plans",
    "deliberation": "view change trigger",
    "dice": "seeded random",
    "evidence": "dependencies, or trace tables",
    "expel": "evict",
    "expelled": "evicted",
    "farewell": "departure",
    "inheritance": "unordered messages",
    "ledger": "table",
    "life": "incarnation",
    "lives": "incarnations",
    "obstacle": "stall reason",
    "obstacles": "stall reasons",
    "refusal": "rejection",
    "refusals": "rejections",
    "refuse": "reject",
    "refused": "rejected",
    "remains": "unordered messages",
    "retention": "stability",
    "ripe": "deliverable",
    "slowness": "slow member",
    "stretch": "ordered batch",
    "stretches": "ordered batches",
    "twin": "variant",
    "twins": "variants",
    "unplaced": "unordered",
    "wish": "target view, token request or planned broadcast",
    "wishes": "target views, token requests or planned broadcasts",
}
RETIRED_PHRASES = {
    "held_by": "bottleneck",
    "put_out": "evict",
    "put_right": "correct",
    "rests_on": "depends_on",
    "shorten_pauses": "freeze_gc",
    "turn_away": "reject",
    "turned_away": "rejected",
}
_PRINT_SUFFIX = re.compile(r"\w+_print")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def _identifiers(tree: ast.AST) -> Iterator[str]:
    """Every name that is defined or used, without Python's own (`__name__`)."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found = name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found = name
            case ast.keyword(arg=str(name)):
                found = name
            case _:
                continue
        if not found.startswith("__"):
            yield found


def _retired_in(identifier: str) -> list[str]:
    """The retired words in an identifier, each with its replacement."""
    words = [word.lower() for word in _WORD.findall(identifier)]
    found = [f"{word} -> {RETIRED_WORDS[word]}" for word in words if word in RETIRED_WORDS]
    joined = "_".join(["", *words, ""])
    found += [f"{old} -> {new}" for old, new in RETIRED_PHRASES.items() if f"_{old}_" in joined]
    if _PRINT_SUFFIX.fullmatch(identifier):
        found.append("*_print -> *_hash")
    return found


def _depth(protocol: type) -> int:
    """How many classes there are between a protocol and `Protocol`, including the first."""
    if protocol is OrderingProtocol:
        return 0
    return 1 + max(_depth(base) for base in protocol.__bases__ if issubclass(base, OrderingProtocol))


def _subclasses(protocol: type) -> Iterator[type]:
    children: list[type] = protocol.__subclasses__()
    for each in children:
        yield each
        yield from _subclasses(each)


def test_class_names_are_unique() -> None:
    paths_of: dict[str, list[str]] = defaultdict(list)
    for path, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                paths_of[node.name].append(path)
    repeated = {name: paths for name, paths in paths_of.items() if len(paths) > 1}
    found = [
        f"{name}: {', '.join(paths)}" for name, paths in repeated.items() if name not in SHARED_CLASS_NAMES
    ]
    assert not found, "\n".join(found)


def test_identifiers_use_no_retired_word() -> None:
    found = {
        f"{path}: {identifier} ({', '.join(retired)})"
        for path, tree in _modules()
        for identifier in _identifiers(tree)
        if (retired := _retired_in(identifier))
    }
    assert not found, "\n".join(sorted(found))


def test_file_names_use_no_retired_word() -> None:
    assert not {path: retired for path, _ in _modules() if (retired := _retired_in(Path(path).stem))}


@pytest.mark.parametrize(
    ("identifier", "retired"),
    [
        ("LifeCounter", ["life -> incarnation"]),
        ("_on_refused", ["refused -> rejected"]),
        ("was_put_out", ["put_out -> evict"]),
        ("message_print", ["*_print -> *_hash"]),
        ("print_verdicts", []),
        ("input_output", []),
        ("lifetime", []),
    ],
)
def test_retired_words_are_found_in_identifiers(identifier: str, retired: list[str]) -> None:
    assert _retired_in(identifier) == retired
    assert list(_identifiers(ast.parse(f"{identifier} = 1"))) == [identifier]


def test_protocol_hierarchies_are_shallow() -> None:
    for module in pkgutil.walk_packages(priocast.protocols.__path__, "priocast.protocols."):
        importlib.import_module(module.name)
    ours = [each for each in _subclasses(OrderingProtocol) if each.__module__.startswith("priocast.")]
    assert len(ours) >= len(priocast.protocols.PROTOCOLS)
    assert not {each.__qualname__: _depth(each) for each in ours if _depth(each) > PROTOCOL_DEPTH_MAX}
