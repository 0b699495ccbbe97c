"""The page with the papers' figures beside the code is current."""

from pathlib import Path

from tools.paper_figures import FIGURES, page

from priocast.protocols import PROTOCOLS

PAGE = Path(__file__).parents[1] / "docs" / "paper-figures.md"


def test_page_is_current() -> None:
    assert PAGE.read_text() == page(), "write it anew: make docs"


def test_every_step_of_a_figure_has_code() -> None:
    assert {figure.protocol for figure in FIGURES} <= set(PROTOCOLS)
    assert all(step.functions for figure in FIGURES for step in figure.steps)
