"""The page of a report: one self-contained HTML file, written whole."""

import tempfile
from pathlib import Path

from priocast.pipeline.html import Html, element, render
from priocast.pipeline.report_style import CSS


def page(title: str, *contents: Html) -> str:
    """A whole page with this title."""
    body = element("main", *contents)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{render(title)}</title><style>{CSS}</style></head>"
        f"<body>{body.text}</body></html>\n"
    )


def write_page(text: str, path: Path) -> Path:
    """Write a page to a temporary file and rename it to `path`, so that nobody reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as aside:
        part = Path(aside) / path.name
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)
        return part.replace(path)
