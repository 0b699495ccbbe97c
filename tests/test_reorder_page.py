"""The page about queue re-ordering is what the program writes, and shows what the paper says."""

from pathlib import Path

import pytest
from tools.reorder_page import FIGURES, SCENES, explanations, figure_2, figure_3, write
from tools.scripted_group import ScriptedGroup

from priocast.trace.schema import DELIVERED, MessageRow

DOCS = Path(__file__).parents[1] / "docs"
ORDERS = ("reorder", "reorder-locks")


def order_of(group: ScriptedGroup) -> list[tuple[str, ...]]:
    """What each member delivered, in its order."""
    return [
        tuple(
            f"{row.sender}/{row.level}/{row.first}"
            for row in member.rows
            if isinstance(row, MessageRow) and row.event == DELIVERED
        )
        for member in group.members.values()
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs")
    write(directory / "reorder.md")
    return directory


def test_the_page_is_up_to_date(written: Path) -> None:
    assert (DOCS / "reorder.md").read_text() == (written / "reorder.md").read_text(), "run: make docs"


def test_the_figures_are_up_to_date(written: Path) -> None:
    drawn = {path.name: path.read_text() for path in (written / FIGURES).glob("*.svg")}
    there = {path.name: path.read_text() for path in (DOCS / FIGURES).glob("reorder-*.svg")}
    assert there == drawn, "run: make docs"
    assert len(drawn) == sum(len(scene.messages) for scene in SCENES)


def test_every_figure_is_shown(written: Path) -> None:
    text = (written / "reorder.md").read_text()
    assert all(f"]({FIGURES}/{path.name})" in text for path in (written / FIGURES).glob("*.svg"))


@pytest.mark.parametrize("order", ORDERS)
def test_figure_2_is_the_papers(order: str) -> None:
    """All three have h before n, and behind m, which one of them had consumed."""
    assert order_of(figure_2(order)) == [("p2/32/0", "p3/224/0", "p2/32/1")] * 3


@pytest.mark.parametrize("order", ORDERS)
def test_figure_3_is_the_papers(order: str) -> None:
    """Both have h, m, l."""
    assert order_of(figure_3(order)) == [("p2/224/0", "p1/96/0", "p1/32/0")] * 2


def test_in_figure_3_the_two_meet_each_other_in_opposite_orders() -> None:
    high, middle = explanations(SCENES[1])
    met = {waited.process: [str(entry.message) for entry in waited.before] for waited in high.waits}
    assert met["p1#1"] == ["p1#1/96/0", "p1#1/32/0"]
    met = {waited.process: [str(entry.message) for entry in waited.before] for waited in middle.waits}
    assert met["p2#1"] == ["p2#1/224/0", "p1#1/32/0"]
