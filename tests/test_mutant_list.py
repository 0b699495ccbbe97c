"""The list of mutants is complete and current."""

import pytest

from mutant_list import LIST, text, undetected


def test_every_mutant_is_used() -> None:
    assert undetected() == []


def test_the_list_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        LIST.write_text(text())
    assert LIST.read_text() == text(), "run: pytest tests/test_mutant_list.py --rewrite"
