"""The typed keyword parameters: they match the signatures, and type checkers reject a misspelt one."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import priocast
from priocast.advice.choice import AUTO
from priocast.protocols import PROTOCOLS
from priocast.runtime.node import Node, open_node
from priocast.runtime.parameters import GroupParameters, JoinParameters, NodeParameters, OrderName

CORRECT = """\
import priocast

hub = priocast.MemoryHub()
priocast.join("g", member="a", hub=hub, size=1, order="reorder", policy="primary", delivery="safe")
priocast.join("g", member="a", listen="127.0.0.1:7401", peers=[], order="time-parts/sequencer-ub")
priocast.join_blocking("g", member="a", hub=hub, size=1, prioritised=False)
priocast.open_client("g", client="shop", peers=["127.0.0.1:7401"], transport="udp", keys={"g": bytes(32)})
priocast.open_node("a", hub=hub, size=1).join("g", order="auto", start_seconds=1)
"""
WRONG = [
    'priocast.join("g", member="a", hub=hub, size=1, oder="reorder")',
    'priocast.join("g", member="a", hub=hub, size=1, policy="anarchy")',
    'priocast.join("g", member="a", hub=hub, size="1")',
    'priocast.join("g", hub=hub, size=1)',
    'priocast.join_blocking("g", member="a", hub=hub, sise=1)',
    'priocast.open_client("g", client="shop", piers=["127.0.0.1:7401"])',
    'priocast.open_client("g", client="shop", order="reorder")',
    'priocast.open_node("a", listen="127.0.0.1:7401", peers=[], transport="pigeon")',
    'priocast.open_node("a", hub=hub, size=1).join("g", delivery="maybe")',
]


def _keywords(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return {each.name: hints[each.name] for each in parameters if each.kind is each.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("declared", "function"), [(NodeParameters, open_node), (GroupParameters, Node.join)]
)
def test_the_declared_parameters_are_those_of_the_signature(
    declared: type, function: Callable[..., Any]
) -> None:
    assert get_type_hints(declared) == _keywords(function)
    assert list(get_type_hints(declared)) == list(_keywords(function)), "in the same order"


def test_join_takes_the_parameters_of_the_node_and_of_the_group() -> None:
    together = get_type_hints(NodeParameters) | get_type_hints(GroupParameters)
    assert get_type_hints(JoinParameters) == together
    assert len(together) == len(get_type_hints(NodeParameters)) + len(get_type_hints(GroupParameters))


def test_the_order_names_are_the_registered_protocols() -> None:
    assert list(get_args(OrderName)) == [AUTO, *PROTOCOLS]


@pytest.mark.parametrize(
    ("function", "arguments", "complaint"),
    [
        (
            priocast.join,
            {"member": "a", "oder": "reorder"},
            r"join\(\) .* 'oder'; did you mean 'order'\?",
        ),
        (priocast.join_blocking, {"member": "a", "qqq": 1}, r"join_blocking\(\) got an unexpected .* 'qqq'$"),
        (priocast.open_client, {"client": "c", "piers": []}, r"open_client\(\) .*; did you mean 'peers'\?"),
        (priocast.open_client, {"client": "c", "order": "reorder"}, r"open_client\(\) got .* 'order'"),
    ],
)
def test_an_unknown_keyword_is_rejected_at_the_call(
    function: Callable[..., Any], arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(TypeError, match=complaint):
        function("g", **arguments)


def test_mypy_accepts_correct_calls_and_rejects_every_wrong_one(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(CORRECT + "\n".join(WRONG) + "\n")
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            str(tmp_path),
            program,
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(priocast.__file__).parent.parent)},
    )
    errors = [
        line for line in checked.stdout.splitlines() if line.startswith("program.py:") and ": error: " in line
    ]
    rejected = [int(line.split(":")[1]) for line in errors]
    first_wrong = CORRECT.count("\n") + 1
    assert sorted(set(rejected)) == list(range(first_wrong, first_wrong + len(WRONG))), checked.stdout
