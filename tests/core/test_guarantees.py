"""The names of the guarantees in the code and on the page that defines them are the same."""

from pathlib import Path

from priocast.core import guarantees

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"


def test_page_defines_every_guarantee() -> None:
    text = PAGE.read_text()
    for name, guarantee in vars(guarantees).items():
        if name.isupper():
            assert f"**{guarantee}**" in text or f"*{guarantee}*" in text, name
