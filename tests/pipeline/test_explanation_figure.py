"""The figure of one message: its contents, and that long queues are shortened."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from tools.scripted_group import ScriptedGroup

from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import BACKGROUND, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.pipeline.figures.explanation import draw_explanation, write_explanation
from priocast.trace.explanation import Explanation, explain
from priocast.trace.recorded_run import open_run


def explained(tmp_path: Path, order: str, queued: int, consumed: int = 0) -> Explanation:
    """An urgent message of b, when a has queued some messages and consumed some of them."""
    group = ScriptedGroup("ab", order, OrderingOptions(window=1 if order == "sequencer-ub" else None))
    group.broadcast("a", BACKGROUND, *[b"x"] * queued)
    group.settle()
    group.consume("a", consumed)
    group.broadcast("b", URGENT, b"h")
    group.finish()
    group.write(tmp_path / "run", "run")
    return explain(open_run(tmp_path / "run"), MessageId(ProcessId("b"), URGENT, 0))


def cells(figure: Figure) -> list[FancyBboxPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_each_member_has_its_queue_before_and_after(tmp_path: Path) -> None:
    figure = draw_explanation(explained(tmp_path, "reorder", queued=3, consumed=1))
    found = texts(figure)
    assert found.count("on arrival") == found.count("with it") == 2
    assert {"a#1", "b#1"} <= set(found)
    assert found.count("a#1/32/2") == 4
    assert found.count("b#1/224/0") == 2
    assert len(cells(figure)) == 3 + 4 + 3 + 4


def test_the_message_is_marked_and_what_was_consumed_is_faded(tmp_path: Path) -> None:
    figure = draw_explanation(explained(tmp_path, "reorder", queued=3, consumed=1))
    assert sum(cell.get_linewidth() > 1 for cell in cells(figure)) == 2
    assert sum((cell.get_alpha() or 1.0) < 1 for cell in cells(figure)) == 2


def test_long_queues_are_shortened_around_the_message(tmp_path: Path) -> None:
    figure = draw_explanation(explained(tmp_path, "reorder", queued=200, consumed=50))
    found = texts(figure)
    assert len(cells(figure)) < 70
    assert found.count("b#1/224/0") == 2
    assert "47 more" in found  # of the 50 that are consumed, three are shown


def test_an_empty_queue_says_so(tmp_path: Path) -> None:
    assert texts(draw_explanation(explained(tmp_path, "reorder", queued=2, consumed=2))).count("empty") == 1


def test_other_protocols_have_the_queues_of_sender_and_orderer(tmp_path: Path) -> None:
    found = texts(draw_explanation(explained(tmp_path, "sequencer-ub", queued=4)))
    assert {"sender b#1", "orderer a#1"} <= set(found)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_explanation_gives_the_same_file(tmp_path: Path, suffix: str) -> None:
    explanation = explained(tmp_path, "reorder", queued=3)
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "other")]
    for path in paths:
        write_explanation(explanation, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
