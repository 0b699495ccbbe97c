"""Executes the cells of a notebook, and stores what they print as their outputs, without Jupyter.

python -m tools.notebook_page docs/notebooks/traces.ipynb
"""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from priocast.pipeline.session import spark_session


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now; they are executed in order, in one namespace."""
    namespace: dict[str, Any] = {}
    cells = [
        _executed(cell, namespace) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]
    ]
    return notebook | {"cells": cells}


def _executed(cell: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("".join(cell["source"]), "cell", "exec"), namespace)  # noqa: S102 (our own notebook)
    text = printed.getvalue().splitlines(keepends=True)
    outputs = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    return cell | {"outputs": outputs}


if __name__ == "__main__":
    target = Path(sys.argv[1])
    with spark_session():
        done = executed(json.loads(target.read_text()))
    target.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n")
