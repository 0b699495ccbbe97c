"""The page about traces and its notebook: generated, and executed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tools.notebook_page import executed
from tools.trace_page import page

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_has_the_columns_of_the_code() -> None:
    text = (DOCS / "trace.md").read_text()
    assert page(text) == text, "make docs"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_every_cell_of_the_notebook_works() -> None:
    """The outputs that it shows are of the day when it was written: what is simulated may change."""
    notebook = json.loads((DOCS / "notebooks" / "traces.ipynb").read_text())
    found = executed(notebook)
    assert _has_output(found) == _has_output(notebook)
    assert "0 positions at which two processes of a view delivered different messages" in json.dumps(found)


def _has_output(notebook: dict[str, Any]) -> list[bool]:
    return [bool(cell.get("outputs")) for cell in notebook["cells"]]
