"""Writes the tables of columns in `docs/trace.md` from the lists in the code; the text between them is kept.

python -m tools.trace_page docs/trace.md
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from priocast.pipeline.trace_frames import FRAMES
from priocast.trace.columns import OWN_COLUMNS, PROCESS_COLUMNS, RUN_COLUMN, SEGMENT_COLUMNS, TABLE_NAMES
from priocast.trace.columns import TraceColumn as Column
from priocast.trace.schema import SCHEMA_VERSION

_SECTION = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def generated() -> dict[str, str]:
    """The generated sections, by name."""
    sections = {"shared": _columns((RUN_COLUMN, *PROCESS_COLUMNS, *SEGMENT_COLUMNS))}
    sections |= {TABLE_NAMES[kind]: _columns(columns) for kind, columns in OWN_COLUMNS.items()}
    frames = (f"| `{name}` | {meaning} |" for name, meaning in FRAMES.items())
    sections["frames"] = _table("| table | rows |", frames)
    sections["version"] = f"The schema has version **{SCHEMA_VERSION}**.\n"
    return sections


def page(text: str) -> str:
    """The page with its generated sections as they must be."""
    sections = generated()
    assert {match[2] for match in _SECTION.finditer(text)} == set(sections), "every section is on the page"
    return _SECTION.sub(lambda match: f"{match[1]}{sections[match[2]]}{match[3]}", text)


def _columns(columns: Iterable[Column]) -> str:
    return _table("| column | type | events | meaning |", _rows(columns))


def _rows(columns: Iterable[Column]) -> Iterator[str]:
    for column in columns:
        yield f"| `{column.name}` | {column.type} | {column.events or 'all'} | {column.meaning} |"


def _table(heading: str, rows: Iterable[str]) -> str:
    return "\n".join((heading, "|---" * (heading.count("|") - 1) + "|", *rows, ""))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page(target.read_text()))
