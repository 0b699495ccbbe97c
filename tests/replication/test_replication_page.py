"""The code on the page about replicated objects runs as it stands."""

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

import priocast
from support.waiting import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "replication.md"
BLOCKS = [block.split("```", 1)[0] for block in PAGE.read_text().split("```python\n")[1:]]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str) -> None:
    code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def test() -> None:
        names: dict[str, Any] = {"asyncio": asyncio, "priocast": priocast, "__name__": __name__}
        result = eval(code, names)  # noqa: S307  # our own page
        assert inspect.iscoroutine(result), "every block awaits something"
        await result

    run(test)


def test_there_is_an_example_for_every_building_block() -> None:
    assert len(BLOCKS) >= 9
